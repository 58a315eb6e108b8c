//! The lock beside a file.
//!
//! The lock is a file of its own that is never renamed nor removed: whoever locks a file that
//! others replace holds what nobody looks at any more.

use std::{
    fs::{self, File, OpenOptions, TryLockError},
    io,
    path::Path,
    thread,
    time::{Duration, Instant},
};

/// Held until dropped, or until the process ends in whatever way.
#[derive(Debug)]
pub(crate) struct Lock {
    _file: File,
}

/// Why a lock was not had.
#[derive(Debug)]
pub(crate) enum LockFailure {
    /// Somebody else held it all the time.
    Busy,
    /// The operating system did not let us.
    Io(io::Error),
}

impl Lock {
    /// Takes the lock, waiting for `wait` at most. Blocks.
    pub(crate) fn acquire(path: &Path, wait: Duration) -> Result<Self, LockFailure> {
        let file = open(path).map_err(LockFailure::Io)?;
        let started = Instant::now();
        let mut pause = Duration::from_micros(200);
        loop {
            match file.try_lock() {
                Ok(()) => return Ok(Self { _file: file }),
                Err(TryLockError::WouldBlock) if started.elapsed() < wait => {
                    // Polled, since a lock that is waited for cannot be given up.
                    thread::sleep(pause);
                    pause = (pause * 2).min(Duration::from_millis(5));
                }
                Err(TryLockError::WouldBlock) => return Err(LockFailure::Busy),
                Err(TryLockError::Error(error)) => return Err(LockFailure::Io(error)),
            }
        }
    }

    /// Takes the lock without holding up the runtime this runs on, if any.
    pub(crate) async fn acquire_async(path: &Path, wait: Duration) -> Result<Self, LockFailure> {
        match Self::acquire(path, Duration::ZERO) {
            Err(LockFailure::Busy) => {}
            other => return other,
        }
        let Ok(runtime) = tokio::runtime::Handle::try_current() else { return Self::acquire(path, wait) };
        let path = path.to_owned();
        let waiting = runtime.spawn_blocking(move || Self::acquire(&path, wait));
        waiting.await.unwrap_or_else(|error| Err(LockFailure::Io(io::Error::other(error))))
    }
}

#[cfg(unix)]
fn open(path: &Path) -> io::Result<File> {
    use std::os::unix::fs::OpenOptionsExt as _;

    let no_follow = rustix::fs::OFlags::NOFOLLOW.bits().cast_signed();
    OpenOptions::new()
        .read(true)
        .write(true)
        .create(true)
        .truncate(false)
        .mode(0o600)
        .custom_flags(no_follow)
        .open(path)
}

#[cfg(not(unix))]
fn open(path: &Path) -> io::Result<File> {
    OpenOptions::new().read(true).write(true).create(true).truncate(false).open(path)
}

/// Makes a folder that only its owner can look into; one that is there stays as it is.
pub(crate) fn create_folder(folder: &Path) -> io::Result<()> {
    if folder.is_dir() {
        return Ok(());
    }
    let mut builder = fs::DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.create(folder)
}
