//! Tokens that open an endpoint, and the note that says where one is.
//!
//! Both lie beside the store, in files that only their owner can read.

use std::{
    path::{Path, PathBuf},
    time::Duration,
};

use base64::{Engine as _, prelude::BASE64_URL_SAFE_NO_PAD};
use serde::{Deserialize, Serialize};

use super::{
    Lock, LockFailure, StoreError, create_folder,
    disk::{self, Found, LocalDisk},
};
use crate::secret::Secret;

/// Largest file of a token or a note, in bytes.
const FILE_BYTES: u64 = 4 << 10;
/// How long another program may take to make a token.
const WAIT: Duration = Duration::from_secs(5);
/// How long a claim waits for programs that only look whether there is one: each holds the lock for a moment.
const LOOKED: Duration = Duration::from_millis(100);
/// Fewest characters of a token: 32 random bytes in Base64.
const TOKEN_LENGTH: usize = 43;

/// What a token opens.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TokenPurpose {
    /// The MCP endpoint.
    Mcp,
    /// The management API.
    Management,
}

impl TokenPurpose {
    fn file(self) -> &'static str {
        match self {
            Self::Mcp => "mcp-token",
            Self::Management => "management-token",
        }
    }

    /// The file of the token in the folder of a store.
    #[must_use]
    pub fn path(self, folder: &Path) -> PathBuf {
        folder.join(self.file())
    }
}

/// The token for `purpose`, made of 32 random bytes where there is none yet. Blocks.
///
/// # Errors
///
/// [`StoreError`] where it cannot be read or kept, or is none.
pub fn endpoint_token(folder: &Path, purpose: TokenPurpose) -> Result<Secret, StoreError> {
    let path = purpose.path(folder);
    if let Some(token) = read(&path)? {
        return Ok(token);
    }
    create_folder(folder).map_err(|source| StoreError::Read { path: folder.to_owned(), source })?;
    let _lock = lock(&folder.join("token.lock"), WAIT)?;
    if let Some(token) = read(&path)? {
        return Ok(token);
    }
    let mut bytes = [0; 32];
    getrandom::fill(&mut bytes).map_err(|_| StoreError::Random)?;
    let token = Secret::new(BASE64_URL_SAFE_NO_PAD.encode(bytes));
    disk::replace(&LocalDisk, &path, format!("{}\n", token.reveal()).as_bytes(), None)?;
    Ok(token)
}

fn read(path: &Path) -> Result<Option<Secret>, StoreError> {
    let Found::File { real, bytes } = disk::read(path, FILE_BYTES)? else { return Ok(None) };
    disk::close_to_others(&real);
    let text = String::from_utf8(bytes).unwrap_or_default();
    let token = text.trim();
    if token.len() < TOKEN_LENGTH || !token.bytes().all(|byte| byte.is_ascii_graphic()) {
        let problem = format!(
            "it holds no token; remove it, and a new one is made at the next start of {}",
            "`portcullis serve`"
        );
        return Err(StoreError::Unusable { path: path.to_owned(), problem });
    }
    Ok(Some(Secret::new(token)))
}

fn lock(path: &Path, wait: Duration) -> Result<Lock, StoreError> {
    Lock::acquire(path, wait).map_err(|failure| {
        let source = match failure {
            LockFailure::Busy => std::io::Error::from(std::io::ErrorKind::ResourceBusy),
            LockFailure::Io(source) => source,
        };
        StoreError::Read { path: path.to_owned(), source }
    })
}

/// Where the endpoint of a store is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct EndpointNote {
    /// The port on loopback.
    pub port: u16,
    /// The process.
    pub process: u32,
}

/// As long as it lives, other programs of the store find the endpoint.
#[derive(Debug)]
pub struct EndpointClaim {
    path: PathBuf,
    _lock: Lock,
}

impl EndpointClaim {
    /// Notes where the endpoint is; nothing where another process has one already.
    ///
    /// # Errors
    ///
    /// [`StoreError`] where it cannot be noted.
    pub fn take(folder: &Path, note: &EndpointNote) -> Result<Option<Self>, StoreError> {
        create_folder(folder).map_err(|source| StoreError::Read { path: folder.to_owned(), source })?;
        let lock = match Lock::acquire(&folder.join("endpoint.lock"), LOOKED) {
            Ok(lock) => lock,
            Err(LockFailure::Busy) => return Ok(None),
            Err(LockFailure::Io(source)) => {
                return Err(StoreError::Read { path: folder.join("endpoint.lock"), source });
            }
        };
        let path = folder.join("endpoint.json");
        let text = serde_json::to_string(note).unwrap_or_default();
        let old = match disk::read(&path, FILE_BYTES)? {
            Found::File { bytes, .. } => Some(bytes),
            Found::Nothing => None,
        };
        disk::replace(&LocalDisk, &path, text.as_bytes(), old.as_deref())?;
        Ok(Some(Self { path, _lock: lock }))
    }
}

impl Drop for EndpointClaim {
    fn drop(&mut self) {
        // Before the lock is given back: whoever takes it next writes a note of its own.
        let _ = std::fs::remove_file(&self.path);
    }
}

/// Where the endpoint of the store in `folder` is, if a process that lives has one. A note that nobody holds is
/// none: whoever listens there by now is somebody else.
#[must_use]
pub fn endpoint_note(folder: &Path) -> Option<EndpointNote> {
    if !folder.join("endpoint.json").exists() {
        return None;
    }
    match Lock::acquire(&folder.join("endpoint.lock"), Duration::ZERO) {
        Err(LockFailure::Busy) => {}
        _ => return None,
    }
    match disk::read(&folder.join("endpoint.json"), FILE_BYTES) {
        Ok(Found::File { bytes, .. }) => serde_json::from_slice(&bytes).ok(),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn s47_a_token_is_made_once_of_32_random_bytes_and_closed_to_others() {
        let folder = tempfile::tempdir().unwrap();
        let token = endpoint_token(folder.path(), TokenPurpose::Mcp).unwrap();
        assert_eq!(BASE64_URL_SAFE_NO_PAD.decode(token.reveal()).unwrap().len(), 32);
        assert_eq!(endpoint_token(folder.path(), TokenPurpose::Mcp).unwrap(), token);
        assert_ne!(endpoint_token(folder.path(), TokenPurpose::Management).unwrap(), token);
        #[cfg(unix)]
        {
            use std::os::unix::fs::PermissionsExt as _;
            let mode = std::fs::metadata(TokenPurpose::Mcp.path(folder.path())).unwrap().permissions().mode();
            assert_eq!(mode & 0o777, 0o600);
        }
        for wrong in ["", "short\n", &"a b".repeat(30)] {
            std::fs::write(TokenPurpose::Mcp.path(folder.path()), wrong).unwrap();
            assert!(endpoint_token(folder.path(), TokenPurpose::Mcp).is_err(), "{wrong}");
        }
    }

    #[test]
    fn an_endpoint_is_found_as_long_as_its_process_holds_it() {
        let folder = tempfile::tempdir().unwrap();
        let note = EndpointNote { port: 27190, process: 1 };
        assert_eq!(endpoint_note(folder.path()), None);
        let claim = EndpointClaim::take(folder.path(), &note).unwrap().unwrap();
        assert_eq!(endpoint_note(folder.path()), Some(note.clone()));
        assert!(EndpointClaim::take(folder.path(), &note).unwrap().is_none());
        drop(claim);
        assert_eq!(endpoint_note(folder.path()), None);
        // Left behind by a process that was killed.
        std::fs::write(folder.path().join("endpoint.json"), r#"{"port":1,"process":2}"#).unwrap();
        assert_eq!(endpoint_note(folder.path()), None);
        assert!(EndpointClaim::take(folder.path(), &note).unwrap().is_some());
    }
}
