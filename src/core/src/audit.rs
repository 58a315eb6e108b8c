//! The trail of what was asked, decided and called.
//!
//! One line of JSON for each event, written by every host of an application into one file. A line
//! never holds arguments (their hash stands for them) nor a secret.

use std::{
    fmt::Debug,
    fs::{self, File, OpenOptions},
    io::{self, Read, Seek, SeekFrom, Write},
    path::{Path, PathBuf},
    sync::{Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use serde::{Deserialize, Serialize};

use crate::store::{Lock, LockFailure, create_folder};

/// How long the file of the trail grows before it is put aside, in bytes.
pub const AUDIT_BYTES: u64 = 5 << 20;
/// How many files that were put aside are kept.
pub const AUDIT_FILES: usize = 3;
/// Longest line, in bytes; `detail` is cut to fit.
pub const AUDIT_LINE_BYTES: usize = 16 << 10;

/// What happened.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum AuditEvent {
    /// A person is asked about a call.
    Question,
    /// A person answered.
    Answer,
    /// The pipeline decided.
    Verdict,
    /// A call was sent and ended.
    Call,
    /// A resource or a prompt was read.
    Read,
    /// A person consented to a definition.
    Trust,
    /// A consent was taken back.
    Untrust,
    /// A server was enabled.
    Enable,
    /// A server was disabled.
    Disable,
    /// An "always" was given.
    Grant,
    /// An "always" was taken back.
    Revoke,
    /// A server was added.
    Add,
    /// The definition of a server changed.
    Change,
    /// A server was removed.
    Remove,
    /// A server was started or connected.
    Start,
    /// A server was stopped, or ended.
    Stop,
    /// Something that only a newer version knows.
    #[serde(other)]
    Other,
}

/// One line of the trail. Holds no secret and no arguments: whoever makes one sees to that.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct AuditLine {
    /// When, as RFC 3339 in UTC.
    pub at: String,
    /// What happened.
    pub event: AuditEvent,
    /// The server's name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub server: Option<String>,
    /// The tool, as its server calls it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tool: Option<String>,
    /// Who asked for it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub caller: Option<String>,
    /// HMAC of the arguments as they were approved, under the key of the store, in hexadecimal.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub arguments_hash: Option<String>,
    /// What was decided: `allow`, `ask`, `deny`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub verdict: Option<String>,
    /// Which policy, grant or answer decided.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rule: Option<String>,
    /// How it ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub outcome: Option<String>,
    /// How long it took, in milliseconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub duration_ms: Option<u64>,
    /// Whatever else a reader should know.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub detail: Option<String>,
}

impl AuditLine {
    /// A line of now that says nothing but what happened.
    #[must_use]
    pub fn now(event: AuditEvent) -> Self {
        Self {
            at: jiff::Timestamp::now().to_string(),
            event,
            server: None,
            tool: None,
            caller: None,
            arguments_hash: None,
            verdict: None,
            rule: None,
            outcome: None,
            duration_ms: None,
            detail: None,
        }
    }
}

/// Why the trail could not be written or read.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum AuditError {
    /// The operating system did not let us.
    #[error("the audit trail at `{}` could not be {attempt}", .path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// What was attempted: `written`, `read`, `put aside`.
        attempt: &'static str,
        /// What the operating system said.
        #[source]
        source: io::Error,
    },
    /// Another host holds the lock and does not let go.
    #[error("another program has been holding `{}` for {seconds} s; end it, or try again", .path.display())]
    Busy {
        /// The lock file.
        path: PathBuf,
        /// How long was waited.
        seconds: u64,
    },
    /// It was not read to its end.
    #[error("the audit trail could not be read: {problem}")]
    Failed {
        /// Why.
        problem: String,
    },
    /// More in one line than is kept.
    #[error("a line of the audit trail would have {bytes} bytes, more than {AUDIT_LINE_BYTES}")]
    TooLong {
        /// Its size.
        bytes: usize,
    },
}

/// Where the trail goes.
///
/// # Behaviour
///
/// - A line that was recorded is whole, whoever else records at the same time.
/// - Lines stand in the order in which they were handed over, by whichever method.
/// - Blocks for as long as a small file takes to write.
#[cfg_attr(any(test, feature = "mocks"), mockall::automock)]
pub trait AuditSink: Debug + Send + Sync {
    /// Adds one line.
    ///
    /// # Errors
    ///
    /// [`AuditError`] where it was not recorded; whether what it is about may go on is up to the
    /// caller.
    fn record(&self, line: &AuditLine) -> Result<(), AuditError>;

    /// Adds one line about what has happened already, with the next one or at the next
    /// [`flush`](Self::flush), whichever is first.
    ///
    /// # Errors
    ///
    /// [`AuditError`] where it certainly will not be recorded.
    fn record_soon(&self, line: &AuditLine) -> Result<(), AuditError>;

    /// Writes what was handed over and is not yet recorded.
    ///
    /// # Errors
    ///
    /// [`AuditError`] where it was not recorded; it is tried again with the next line.
    fn flush(&self) -> Result<(), AuditError>;

    /// The newest `limit` lines, newest last. What is not a whole line is left out.
    ///
    /// # Errors
    ///
    /// [`AuditError::File`] where there is a trail and it cannot be read.
    fn newest(&self, limit: usize) -> Result<Vec<AuditLine>, AuditError>;
}

/// The file of the newest lines.
const NEWEST: &str = "audit.jsonl";

/// The trail in files: `audit.jsonl`, and what was put aside as `audit.1.jsonl` (newest) and on.
#[derive(Debug)]
pub struct AuditFile {
    folder: PathBuf,
    /// Where the newest lines lie.
    newest: PathBuf,
    rotate_at: u64,
    /// The file of our last line, and its condition since: while that fits, nobody else wrote.
    open: Mutex<Option<(File, Condition)>>,
    /// Lines that are recorded with the next one.
    soon: Mutex<Vec<u8>>,
}

/// Most that waits for the next line, in bytes.
const SOON_BYTES: usize = 256 << 10;

impl AuditFile {
    /// A trail in `folder`, which is made with the first line.
    #[must_use]
    pub fn new(folder: impl Into<PathBuf>) -> Self {
        Self::rotating(folder, AUDIT_BYTES)
    }

    fn rotating(folder: impl Into<PathBuf>, rotate_at: u64) -> Self {
        let folder = folder.into();
        Self { newest: folder.join(NEWEST), folder, rotate_at, open: Mutex::new(None), soon: Mutex::default() }
    }

    fn path(&self, number: usize) -> PathBuf {
        match number {
            0 => self.newest.clone(),
            _ => self.folder.join(format!("audit.{number}.jsonl")),
        }
    }

    fn lock_path(&self) -> PathBuf {
        self.folder.join("audit.lock")
    }

    fn rotate(&self) -> io::Result<()> {
        for number in (0..AUDIT_FILES).rev() {
            match fs::rename(self.path(number), self.path(number + 1)) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
                _ => {}
            }
        }
        Ok(())
    }

    /// Adds a line to the file that is open already, if it still lies at `path`, has room, and nobody
    /// else wrote. One write of a file opened to append: lines of several hosts do not mix, and a
    /// file that is put aside meanwhile keeps the line.
    fn append_to_open(&self, path: &Path, line: &[u8]) -> bool {
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        let Some((file, condition)) = open.as_mut() else { return false };
        let grown = condition.size + line.len() as u64;
        if grown > self.rotate_at || Condition::at(path) != Some(*condition) || file.write_all(line).is_err() {
            return false;
        }
        condition.size = grown;
        true
    }

    fn append(&self, path: &Path, line: &[u8]) -> io::Result<()> {
        let mut file = open_to_append(path)?;
        // A host that was killed while writing leaves half a line; ours is not glued to it.
        let mut last = [b'\n'];
        if file.metadata()?.len() > 0 {
            file.seek(SeekFrom::End(-1))?;
            file.read_exact(&mut last)?;
        }
        if last == *b"\n" {
            file.write_all(line)?;
        } else {
            file.write_all(&[b"\n", line].concat())?;
        }
        let condition = Condition::of(&file.metadata()?);
        *self.open.lock().unwrap_or_else(PoisonError::into_inner) = condition.map(|condition| (file, condition));
        Ok(())
    }
}

/// Which file lies at the trail's place, and how long it is; none unless its owner alone may use it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Condition {
    device: u64,
    inode: u64,
    size: u64,
}

impl Condition {
    fn at(path: &Path) -> Option<Self> {
        Self::of(&fs::symlink_metadata(path).ok()?)
    }

    #[cfg(unix)]
    fn of(metadata: &fs::Metadata) -> Option<Self> {
        use std::os::unix::fs::MetadataExt as _;

        let private = metadata.mode() & 0o077 == 0;
        private.then(|| Self { device: metadata.dev(), inode: metadata.ino(), size: metadata.len() })
    }

    #[cfg(not(unix))]
    fn of(_metadata: &fs::Metadata) -> Option<Self> {
        None
    }
}

/// How long another host may hold the lock.
const LOCK_WAIT: Duration = Duration::from_secs(5);

impl AuditFile {
    /// Records whole lines.
    fn write(&self, bytes: &[u8]) -> Result<(), AuditError> {
        if self.append_to_open(&self.newest, bytes) {
            return Ok(());
        }
        let path = self.path(0);
        let failed = |attempt, source| AuditError::File { path: path.clone(), attempt, source };
        create_folder(&self.folder).map_err(|source| failed("written", source))?;
        let lock = Lock::acquire(&self.lock_path(), LOCK_WAIT).map_err(|failure| match failure {
            LockFailure::Busy => AuditError::Busy { path: self.lock_path(), seconds: LOCK_WAIT.as_secs() },
            LockFailure::Io(source) => failed("written", source),
        })?;
        let size = fs::symlink_metadata(&path).map_or(0, |metadata| metadata.len());
        if size > 0 && size + bytes.len() as u64 > self.rotate_at {
            self.rotate().map_err(|source| failed("put aside", source))?;
        }
        let written = self.append(&path, bytes).map_err(|source| failed("written", source));
        drop(lock);
        written
    }

    fn soon(&self) -> MutexGuard<'_, Vec<u8>> {
        self.soon.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl AuditSink for AuditFile {
    fn record(&self, line: &AuditLine) -> Result<(), AuditError> {
        let bytes = encode(line)?;
        // Held while writing: lines keep their order.
        let mut soon = self.soon();
        let before = soon.len();
        soon.extend_from_slice(&bytes);
        let written = self.write(&soon);
        // What this line is about does not happen if it could not be written, so it is not tried again.
        if written.is_ok() {
            soon.clear();
        } else {
            soon.truncate(before);
        }
        written
    }

    fn record_soon(&self, line: &AuditLine) -> Result<(), AuditError> {
        let bytes = encode(line)?;
        let mut soon = self.soon();
        soon.extend_from_slice(&bytes);
        if soon.len() < SOON_BYTES {
            return Ok(());
        }
        let written = self.write(&soon);
        soon.clear();
        written
    }

    fn flush(&self) -> Result<(), AuditError> {
        let mut soon = self.soon();
        if soon.is_empty() {
            return Ok(());
        }
        self.write(&soon)?;
        soon.clear();
        Ok(())
    }

    fn newest(&self, limit: usize) -> Result<Vec<AuditLine>, AuditError> {
        // Keeps others from putting files aside meanwhile; where it cannot be had (a folder that
        // is only readable), nobody does.
        let _lock = if self.folder.is_dir() { Lock::acquire(&self.lock_path(), LOCK_WAIT).ok() } else { None };
        let mut newest_first = Vec::new();
        for number in 0..=AUDIT_FILES {
            if newest_first.len() >= limit {
                break;
            }
            let path = self.path(number);
            let bytes = match fs::read(&path) {
                Ok(bytes) => bytes,
                Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
                Err(source) => return Err(AuditError::File { path, attempt: "read", source }),
            };
            let lines = bytes.split(|byte| *byte == b'\n').rev();
            let missing = limit - newest_first.len();
            newest_first.extend(lines.filter_map(|line| serde_json::from_slice(line).ok()).take(missing));
        }
        newest_first.reverse();
        Ok(newest_first)
    }
}

impl Drop for AuditFile {
    fn drop(&mut self) {
        if let Err(error) = self.flush() {
            tracing::error!(%error, "the audit trail cannot be written");
        }
    }
}

fn encode(line: &AuditLine) -> Result<Vec<u8>, AuditError> {
    let encoded = |line: &AuditLine| {
        let mut bytes = Vec::with_capacity(512);
        // Texts and numbers always have a form.
        let _ = serde_json::to_writer(&mut bytes, line);
        bytes.push(b'\n');
        bytes
    };
    let bytes = encoded(line);
    if bytes.len() <= AUDIT_LINE_BYTES {
        return Ok(bytes);
    }
    let Some(detail) = &line.detail else { return Err(AuditError::TooLong { bytes: bytes.len() }) };
    let excess = bytes.len() - AUDIT_LINE_BYTES + '…'.len_utf8();
    let kept = detail.floor_char_boundary(detail.len().saturating_sub(excess));
    let bytes = encoded(&AuditLine { detail: Some(format!("{}…", &detail[..kept])), ..line.clone() });
    if bytes.len() > AUDIT_LINE_BYTES {
        // What was left is longer in JSON than what was cut.
        return encode(&AuditLine { detail: None, ..line.clone() });
    }
    Ok(bytes)
}

#[cfg(unix)]
fn open_to_append(path: &Path) -> io::Result<File> {
    use std::os::unix::fs::{OpenOptionsExt as _, PermissionsExt as _};

    // A link could lead to where others read.
    let no_follow = rustix::fs::OFlags::NOFOLLOW.bits().cast_signed();
    let file =
        OpenOptions::new().read(true).append(true).create(true).mode(0o600).custom_flags(no_follow).open(path)?;
    if file.metadata()?.permissions().mode() & 0o077 != 0 {
        file.set_permissions(fs::Permissions::from_mode(0o600))?;
    }
    Ok(file)
}

#[cfg(not(unix))]
fn open_to_append(path: &Path) -> io::Result<File> {
    OpenOptions::new().read(true).append(true).create(true).open(path)
}

/// The trail in memory: for tests, and for hosts that keep nothing.
#[derive(Debug, Default)]
pub struct AuditMemory {
    lines: Mutex<Vec<AuditLine>>,
}

impl AuditMemory {
    /// Everything recorded so far.
    #[must_use]
    pub fn lines(&self) -> Vec<AuditLine> {
        self.lines.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

impl AuditSink for AuditMemory {
    fn record(&self, line: &AuditLine) -> Result<(), AuditError> {
        self.lines.lock().unwrap_or_else(PoisonError::into_inner).push(line.clone());
        Ok(())
    }

    fn record_soon(&self, line: &AuditLine) -> Result<(), AuditError> {
        self.record(line)
    }

    fn flush(&self) -> Result<(), AuditError> {
        Ok(())
    }

    fn newest(&self, limit: usize) -> Result<Vec<AuditLine>, AuditError> {
        let lines = self.lines();
        Ok(lines[lines.len().saturating_sub(limit)..].to_vec())
    }
}

#[cfg(test)]
mod tests;
