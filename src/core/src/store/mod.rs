//! What a person's choices are kept in: servers, trust, selections, grants, and known tools.
//!
//! A [`StateStore`] holds one [`State`], shared by every host of the application. Changes are
//! closures that are repeated on whatever revision is newest, so that hosts side by side lose
//! nothing; only saving a whole document can conflict, and then says what changed. What a person
//! granted is sealed under the store's key: an edited file gains nothing (see [`State::distrusted`]).
//!
//! - [`FileStore`] keeps it in one JSON file, [`MemoryStore`] in memory.
//! - [`reconcile()`] puts a document into a state, and decides what that costs in trust.
//! - [`change`] is how callers update: with a value on success, and an error of their own.

mod disk;
mod file;
mod key;
mod lock;
mod memory;
mod projects;
mod reconcile;
mod secrets;
mod seen;
mod state;
#[cfg(test)]
mod tests;
mod token;
mod tools;
mod wire;

use std::{fmt::Debug, io, path::PathBuf, sync::Arc};

use async_trait::async_trait;

pub use file::{FileStore, STATE_BYTES};
pub(crate) use lock::{Lock, LockFailure, create_folder};
pub use memory::MemoryStore;
pub(crate) use projects::new_id;
pub use projects::{Group, Project};
pub use reconcile::{How, ReconcileError, Reconciled, reconcile};
pub use secrets::{FileSecrets, SECRETS_FILE_BYTES};
pub use state::{Grant, Mode, Runtime, State};
pub use token::{EndpointClaim, EndpointNote, TokenPurpose, endpoint_note, endpoint_token};
pub use tools::{CachedTools, ToolCache};

use crate::definition::StoreKey;

/// The answer of a [`Change`] that does not want to be saved.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Refused;

/// A change of the state: repeated on the newest revision, saved unless it refuses.
///
/// It may run more than once, each time on a fresh state, and must do nothing else.
pub type Change<'a> = &'a mut (dyn FnMut(&mut State) -> Result<(), Refused> + Send);

/// Where the state of an application is kept.
///
/// # Behaviour
///
/// - All or nothing: after an error, what is kept is what was kept before.
/// - Several hosts may use one store at once; every acknowledged change is there afterwards.
/// - A server whose definition (or a declared input that it refers to) is no longer the one it
///   had loses its [`Runtime`] with the save, whatever the change says.
#[cfg_attr(any(test, feature = "mocks"), mockall::automock)]
#[async_trait]
pub trait StateStore: Debug + Send + Sync {
    /// The store's key, made on first use.
    ///
    /// # Errors
    ///
    /// [`StoreError`] where there is a key that cannot be read, or none can be kept.
    async fn key(&self) -> Result<StoreKey, StoreError>;

    /// The newest state; an empty one where nothing was ever saved. Writes nothing.
    ///
    /// # Errors
    ///
    /// [`StoreError::Read`], [`StoreError::Unusable`], [`StoreError::Key`]. What is kept is left
    /// untouched; no trust is to be assumed.
    async fn load(&self) -> Result<Arc<State>, StoreError>;

    /// Applies `change` to the newest state and saves it; answers with what is kept then.
    ///
    /// A change that leaves everything as it was saves nothing. Callers use [`change`].
    ///
    /// # Errors
    ///
    /// [`StoreError::Refused`] when the change refused, otherwise what kept it from being saved.
    async fn update<'a>(&self, change: Change<'a>) -> Result<State, StoreError>;

    /// Saves `state` as a whole if the newest revision is still `expected`.
    ///
    /// # Errors
    ///
    /// [`StoreError::Conflict`], which names the servers that changed since, otherwise what kept it
    /// from being saved.
    async fn compare_and_swap(&self, expected: u64, state: State) -> Result<State, StoreError>;
}

/// Applies `change` to the newest state of `store` and saves it; answers with the state that is
/// kept then, and with what the change made of its last run.
///
/// # Errors
///
/// [`ChangeError::Refused`] with the change's own error, in which case nothing was saved;
/// [`ChangeError::Store`] where the store could not be read or written.
pub async fn change<T: Send, E: Send>(
    store: &dyn StateStore,
    mut change: impl FnMut(&mut State) -> Result<T, E> + Send,
) -> Result<(State, T), ChangeError<E>> {
    let mut outcome = None;
    let mut run = |state: &mut State| {
        let result = change(state);
        let refused = result.is_err();
        outcome = Some(result);
        if refused { Err(Refused) } else { Ok(()) }
    };
    let kept = store.update(&mut run).await;
    match (kept, outcome) {
        (Ok(state), Some(Ok(value))) => Ok((state, value)),
        (Err(StoreError::Refused), Some(Err(error))) => Err(ChangeError::Refused(error)),
        (Err(error), _) => Err(ChangeError::Store(error)),
        // A store that did not run the change: only one that breaks its contract.
        (Ok(_), _) => Err(ChangeError::Store(StoreError::Refused)),
    }
}

/// Why a [`change`] was not saved.
#[derive(Debug, thiserror::Error)]
pub enum ChangeError<E> {
    /// The change itself did not want it.
    #[error(transparent)]
    Refused(E),
    /// The store could not.
    #[error(transparent)]
    Store(StoreError),
}

/// Why a store could not be read or written, in words for the person whose store it is.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StoreError {
    /// The change refused; its caller knows why.
    #[error("the change was not made")]
    Refused,
    /// Another host saved in between; load again and repeat the change.
    #[error("the store at `{}` changed since it was read (revision {found}, expected {expected}){}", .path.display(), named(.changed))]
    Conflict {
        /// The store.
        path: PathBuf,
        /// The newest revision.
        found: u64,
        /// The revision that was to be replaced.
        expected: u64,
        /// The servers that changed since.
        changed: Vec<String>,
    },
    /// The operating system did not let us read it.
    #[error("`{}` cannot be read; it was left untouched", .path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// What the operating system said.
        #[source]
        source: io::Error,
    },
    /// It was read, and is no state of version 2.
    #[error("the store at `{}` cannot be used: {problem}; it was left untouched. Move it away to start with an empty one", .path.display())]
    Unusable {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        problem: String,
    },
    /// The store's key is no key.
    #[error("the store's key at `{}` cannot be used: {problem}; it was left untouched. Without it every server has to be trusted anew: move it away to do so", .path.display())]
    Key {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        problem: String,
    },
    /// The key lies in a keyring that cannot be used now.
    #[error(
        "the store's key lies in the keyring, which cannot be used now: {reason}. No new one was made; nothing was changed"
    )]
    KeyLost {
        /// The file that says so.
        path: PathBuf,
        /// Why not.
        reason: String,
    },
    /// The key lies where the setting does not want to look.
    #[error("the store's key lies in {place}, and the setting `secrets` does not allow that; change the setting, or move `{}` away to start over with trust", .path.display())]
    KeyElsewhere {
        /// The file that holds it, or leads to it.
        path: PathBuf,
        /// Where it lies.
        place: &'static str,
    },
    /// A save failed; what was kept before still is.
    #[error("`{}` could not be saved ({step}); nothing was changed", .path.display())]
    Save {
        /// The file.
        path: PathBuf,
        /// Where it failed, in words.
        step: &'static str,
        /// What the operating system said.
        #[source]
        source: io::Error,
    },
    /// A save could neither be completed nor be taken back.
    #[error("`{}` was replaced, but it is not certain that it outlasts a power failure ({step})", .path.display())]
    Uncertain {
        /// The file.
        path: PathBuf,
        /// Where it failed, in words.
        step: &'static str,
        /// What the operating system said.
        #[source]
        source: io::Error,
    },
    /// Saving would put secrets where others could reach them.
    #[error("`{}` was not written: {reason}", .path.display())]
    Unsafe {
        /// The file.
        path: PathBuf,
        /// Why.
        reason: String,
    },
    /// Another host holds the lock and does not let go.
    #[error("another program has been holding `{}` for {seconds} s; end it, or try again", .path.display())]
    Busy {
        /// The lock file.
        path: PathBuf,
        /// How long was waited.
        seconds: u64,
    },
    /// The operating system has no random numbers for us.
    #[error("the operating system gave no random numbers, so no key was made")]
    Random,
}

fn named(servers: &[String]) -> String {
    if servers.is_empty() {
        return String::new();
    }
    let names: Vec<_> = servers.iter().map(|name| format!("`{}`", crate::display::escape(name))).collect();
    format!(": {}", names.join(", "))
}
