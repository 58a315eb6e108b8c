//! A store that is gone with its host: for tests, and for hosts that keep nothing.

use std::{
    collections::BTreeMap,
    path::PathBuf,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use async_trait::async_trait;

use super::{CachedTools, Change, State, StateStore, StoreError, ToolCache, wire};
use crate::definition::{Fingerprint, StoreKey};

/// State, key and known tools in memory.
#[derive(Debug)]
pub struct MemoryStore {
    key: StoreKey,
    state: Mutex<Arc<State>>,
    tools: Mutex<BTreeMap<Fingerprint, CachedTools>>,
}

impl MemoryStore {
    /// An empty store with a key of its own.
    ///
    /// # Errors
    ///
    /// [`StoreError::Random`] where the operating system has no random numbers.
    pub fn new() -> Result<Self, StoreError> {
        Ok(Self::with_key(wire::random_key()?))
    }

    /// An empty store with this key.
    #[must_use]
    pub fn with_key(key: StoreKey) -> Self {
        let state = State { id: wire::store_id(&key), ..State::default() };
        Self { key, state: Mutex::new(state.into()), tools: Mutex::default() }
    }

    fn save(&self, mut kept: MutexGuard<'_, Arc<State>>, mut state: State) -> State {
        if state.says_the_same(&kept) {
            return State::clone(&kept);
        }
        state.settle(&kept, &self.key);
        *kept = Arc::new(state.clone());
        state
    }
}

/// What a panic left behind is whole: every change is made on a copy.
fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[async_trait]
impl StateStore for MemoryStore {
    async fn key(&self) -> Result<StoreKey, StoreError> {
        Ok(self.key.clone())
    }

    async fn load(&self) -> Result<Arc<State>, StoreError> {
        Ok(locked(&self.state).clone())
    }

    async fn update<'a>(&self, change: Change<'a>) -> Result<State, StoreError> {
        let kept = locked(&self.state);
        let mut state = State::clone(&kept);
        change(&mut state).map_err(|_| StoreError::Refused)?;
        Ok(self.save(kept, state))
    }

    async fn compare_and_swap(&self, expected: u64, state: State) -> Result<State, StoreError> {
        let kept = locked(&self.state);
        if kept.revision != expected {
            return Err(StoreError::Conflict {
                path: PathBuf::from("memory"),
                found: kept.revision,
                expected,
                changed: kept.changed_since(expected, &state),
            });
        }
        Ok(self.save(kept, state))
    }
}

#[async_trait]
impl ToolCache for MemoryStore {
    async fn load(&self, fingerprint: Fingerprint) -> Option<CachedTools> {
        locked(&self.tools).get(&fingerprint).cloned()
    }

    async fn save(&self, fingerprint: Fingerprint, tools: &CachedTools) -> Result<(), StoreError> {
        locked(&self.tools).insert(fingerprint, tools.clone());
        Ok(())
    }

    async fn remove(&self, fingerprint: Fingerprint) -> Result<(), StoreError> {
        locked(&self.tools).remove(&fingerprint);
        Ok(())
    }
}
