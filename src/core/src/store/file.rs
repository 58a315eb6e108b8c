//! The store as files of one folder.
//!
//! | file | holds |
//! |---|---|
//! | `state.json` | the state; replaced as a whole, 0600. May be a link: the file it leads to is replaced, in its own folder |
//! | `state.lock` | nothing; whoever writes holds its lock. Never renamed, never removed |
//! | `key` | the store's key, 0600, or where in the keyring it lies; nothing where a host keeps it |
//! | `tools/<fingerprint>.json` | known tools of one definition |
//!
//! Reading takes no lock and makes nothing. Against a program of the same user the key is safe
//! only in a keyring that asks who wants it ([`FileStore::with_keyring`]).
//!
//! The calls block: the files are small and local, a save takes a few milliseconds, and changes
//! borrow from their caller and so cannot move to another thread. Only the wait for another host's
//! lock, which may take seconds, goes to the runtime's threads for that.

use std::{
    fs, io,
    path::{Path, PathBuf},
    sync::{Arc, Mutex, PoisonError},
    time::{Duration, SystemTime},
};

use async_trait::async_trait;

use super::{
    CachedTools, Change, Lock, LockFailure, State, StateStore, StoreError, ToolCache, create_folder,
    disk::{self, Disk, Found, LocalDisk},
    key::Keys,
    seen::{Seen, Stamp},
    wire,
};
use crate::{
    definition::{Fingerprint, StoreKey},
    secret::{Keyring, KeyringUse},
};

/// Largest state that is read or written, in bytes.
pub const STATE_BYTES: u64 = 64 << 20;
/// Largest file of known tools that is read, in bytes.
const TOOLS_BYTES: u64 = 256 << 20;
/// How long another host may hold the lock.
const LOCK_WAIT: Duration = Duration::from_secs(20);

/// A store in a folder, shared by all hosts of the application.
#[derive(Debug)]
pub struct FileStore {
    folder: PathBuf,
    state_path: PathBuf,
    key_path: PathBuf,
    keys: Keys,
    disk: Arc<dyn Disk>,
    wait: Duration,
    seen_state: Seen<[Stamp; 2], Arc<State>>,
    /// What was verified last: the same bytes under the same key are the same state.
    verified: Mutex<Option<Verified>>,
}

/// What lies on the disk, and the bytes it was read from.
struct OnDisk {
    state: Arc<State>,
    bytes: Option<Arc<Vec<u8>>>,
    real: PathBuf,
}

/// A state, and what it was made of.
#[derive(Debug)]
struct Verified {
    bytes: Arc<Vec<u8>>,
    key: Option<StoreKey>,
    state: Arc<State>,
}

impl FileStore {
    /// The store in `folder`; folder and files are made when something is saved.
    #[must_use]
    pub fn open(folder: impl Into<PathBuf>) -> Self {
        let folder = folder.into();
        Self::with(Keys::new(&folder), folder)
    }

    /// The same with a key that the host keeps.
    #[must_use]
    pub fn with_key(folder: impl Into<PathBuf>, key: StoreKey) -> Self {
        let folder = folder.into();
        Self::with(Keys::given(&folder, key), folder)
    }

    /// The same with its key in a keyring: where that can be used when the key is made, or always.
    #[must_use]
    pub fn with_keyring(folder: impl Into<PathBuf>, keyring: Arc<dyn Keyring>, want: KeyringUse) -> Self {
        let folder = folder.into();
        Self::with(Keys::with_keyring(&folder, keyring, want), folder)
    }

    fn with(keys: Keys, folder: PathBuf) -> Self {
        Self {
            state_path: folder.join("state.json"),
            key_path: keys.path().to_owned(),
            folder,
            keys,
            disk: Arc::new(LocalDisk),
            wait: LOCK_WAIT,
            seen_state: Seen::default(),
            verified: Mutex::default(),
        }
    }

    #[cfg(test)]
    pub(super) fn on(folder: impl Into<PathBuf>, disk: Arc<dyn Disk>, wait: Duration) -> Self {
        Self { disk, wait, ..Self::open(folder) }
    }

    /// The folder.
    #[must_use]
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// Where the state lies.
    #[must_use]
    pub fn state_path(&self) -> PathBuf {
        self.state_path.clone()
    }

    /// Where the key lies, unless the host keeps it.
    #[must_use]
    pub fn key_path(&self) -> PathBuf {
        self.key_path.clone()
    }

    /// Whether the key lies in the keyring; `None` where there is no key yet. Asks no keyring.
    ///
    /// # Errors
    ///
    /// [`StoreError::Key`], [`StoreError::Read`].
    pub fn key_is_in_keyring(&self) -> Result<Option<bool>, StoreError> {
        self.keys.is_in_keyring()
    }

    fn lock_path(&self) -> PathBuf {
        self.folder.join("state.lock")
    }

    fn tools_path(&self, fingerprint: Fingerprint) -> PathBuf {
        self.folder.join("tools").join(format!("{fingerprint}.json"))
    }

    fn make_folder(&self, folder: &Path) -> Result<(), StoreError> {
        create_folder(folder).map_err(|source| StoreError::Save {
            path: self.state_path(),
            step: "while making its folder",
            source,
        })
    }

    async fn lock(&self) -> Result<Lock, StoreError> {
        self.make_folder(&self.folder)?;
        let path = self.lock_path();
        Lock::acquire_async(&path, self.wait).await.map_err(|failure| match failure {
            LockFailure::Busy => StoreError::Busy { path, seconds: self.wait.as_secs() },
            LockFailure::Io(source) => StoreError::Save { path, step: "while locking it", source },
        })
    }

    fn read(&self, key: Option<&StoreKey>) -> Result<OnDisk, StoreError> {
        let path = self.state_path();
        match disk::read(&path, STATE_BYTES)? {
            Found::Nothing => {
                let id = key.map(wire::store_id).unwrap_or_default();
                Ok(OnDisk { state: State { id, ..State::default() }.into(), bytes: None, real: path })
            }
            Found::File { real, bytes } => {
                disk::close_to_others(&real);
                let (bytes, state) =
                    self.decode(bytes, key).map_err(|problem| StoreError::Unusable { path, problem })?;
                Ok(OnDisk { state, bytes: Some(bytes), real })
            }
        }
    }

    /// What these bytes say. Right after a change the file is read again and again, since its stamp is not to be
    /// relied on yet; to verify each seal of it again would take a hundred times as long.
    fn decode(&self, bytes: Vec<u8>, key: Option<&StoreKey>) -> Result<(Arc<Vec<u8>>, Arc<State>), String> {
        let mut verified = self.verified.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = verified.as_ref()
            && known.key.as_ref().map(StoreKey::bytes) == key.map(StoreKey::bytes)
            && *known.bytes == bytes
        {
            return Ok((known.bytes.clone(), known.state.clone()));
        }
        let state = Arc::new(wire::decode(&bytes, key)?);
        let bytes = Arc::new(bytes);
        *verified = Some(Verified { bytes: bytes.clone(), key: key.cloned(), state: state.clone() });
        Ok((bytes, state))
    }

    fn write(&self, kept: &OnDisk, mut state: State, key: &StoreKey) -> Result<State, StoreError> {
        if state.says_the_same(&kept.state) {
            return Ok(State::clone(&kept.state));
        }
        state.settle(&kept.state, key);
        let bytes = wire::encode(&state, key);
        if bytes.len() as u64 > STATE_BYTES {
            return Err(StoreError::Save {
                path: self.state_path(),
                step: "before writing",
                source: io::Error::new(
                    io::ErrorKind::FileTooLarge,
                    format!("it would be larger than {} MiB", STATE_BYTES >> 20),
                ),
            });
        }
        disk::replace(&*self.disk, &kept.real, &bytes, kept.bytes.as_deref().map(Vec::as_slice))?;
        Ok(state)
    }
}

#[async_trait]
impl StateStore for FileStore {
    async fn key(&self) -> Result<StoreKey, StoreError> {
        if let Some(key) = self.keys.known().await? {
            return Ok(key);
        }
        let lock = self.lock().await?;
        self.keys.under(&lock, &*self.disk).await
    }

    async fn load(&self) -> Result<Arc<State>, StoreError> {
        let now = SystemTime::now();
        let stamps = Stamp::of(&self.state_path).zip(Stamp::of(&self.key_path)).map(|(state, key)| [state, key]);
        if let Some(state) = stamps.and_then(|stamps| self.seen_state.get(&stamps)) {
            return Ok(state);
        }
        let key = self.keys.known().await?;
        let kept = self.read(key.as_ref())?;
        if key.is_none() && kept.bytes.is_some() {
            // The key is made before the first state: another host may just have made both.
            return Ok(self.read(self.keys.known().await?.as_ref())?.state);
        }
        let state = kept.state;
        if let Some(stamps) = stamps {
            self.seen_state.keep(stamps, now, &state);
        }
        Ok(state)
    }

    async fn update<'a>(&self, change: Change<'a>) -> Result<State, StoreError> {
        let lock = self.lock().await?;
        let key = self.keys.under(&lock, &*self.disk).await?;
        let kept = self.read(Some(&key))?;
        let mut state = State::clone(&kept.state);
        change(&mut state).map_err(|_| StoreError::Refused)?;
        self.write(&kept, state, &key)
    }

    async fn compare_and_swap(&self, expected: u64, state: State) -> Result<State, StoreError> {
        let lock = self.lock().await?;
        let key = self.keys.under(&lock, &*self.disk).await?;
        let kept = self.read(Some(&key))?;
        if kept.state.revision != expected {
            return Err(StoreError::Conflict {
                path: self.state_path(),
                found: kept.state.revision,
                expected,
                changed: kept.state.changed_since(expected, &state),
            });
        }
        self.write(&kept, state, &key)
    }
}

#[async_trait]
impl ToolCache for FileStore {
    async fn load(&self, fingerprint: Fingerprint) -> Option<CachedTools> {
        let path = self.tools_path(fingerprint);
        let problem = match disk::read(&path, TOOLS_BYTES) {
            Ok(Found::Nothing) => return None,
            Ok(Found::File { bytes, .. }) => match serde_json::from_slice(&bytes) {
                Ok(tools) => return Some(tools),
                Err(error) => format!("line {}, column {}", error.line(), error.column()),
            },
            Err(error) => error.to_string(),
        };
        tracing::warn!(path = %path.display(), problem, "known tools cannot be read; their server will be asked again");
        None
    }

    async fn save(&self, fingerprint: Fingerprint, tools: &CachedTools) -> Result<(), StoreError> {
        let path = self.tools_path(fingerprint);
        let lock = self.lock().await?;
        self.make_folder(&self.folder.join("tools"))?;
        // Texts and raw JSON always have a form.
        let bytes = serde_json::to_vec(tools).unwrap_or_default();
        let saved = disk::replace_cached(&*self.disk, &path, &bytes);
        drop(lock);
        saved
    }

    async fn remove(&self, fingerprint: Fingerprint) -> Result<(), StoreError> {
        let path = self.tools_path(fingerprint);
        match fs::remove_file(&path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                Err(StoreError::Save { path, step: "while removing it", source: error })
            }
            _ => Ok(()),
        }
    }
}
