//! What was read from a file, kept for as long as the file is certainly the same.
//!
//! A running host asks for the state with every call; a look at the file's identity costs a
//! microsecond, reading and verifying it a hundred. Clocks of file systems are coarse: a file that
//! was changed just before it was read may be changed again without a trace, so such a reading is
//! not kept.

use std::{
    path::Path,
    sync::{Mutex, PoisonError},
    time::{Duration, SystemTime},
};

/// Coarser than the clock of any file system we know of.
const COARSE: Duration = Duration::from_millis(100);

/// Which file it was, in which condition.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Stamp {
    device: u64,
    inode: u64,
    size: u64,
    changed: Duration,
}

impl Stamp {
    /// The stamp of what `path` leads to; none where there is nothing or the system does not say.
    #[cfg(unix)]
    pub(super) fn of(path: &Path) -> Option<Self> {
        use std::os::unix::fs::MetadataExt as _;

        let metadata = std::fs::metadata(path).ok()?;
        let changed = Duration::new(metadata.ctime().try_into().ok()?, metadata.ctime_nsec().try_into().ok()?);
        Some(Self { device: metadata.dev(), inode: metadata.ino(), size: metadata.size(), changed })
    }

    #[cfg(not(unix))]
    pub(super) fn of(_path: &Path) -> Option<Self> {
        None
    }

    /// Whether any later change would give another stamp.
    fn is_settled(&self, now: SystemTime) -> bool {
        let now = now.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        now.checked_sub(self.changed).is_some_and(|age| age > COARSE)
    }
}

/// The last reading of one or more files, by their stamps.
#[derive(Debug)]
pub(super) struct Seen<K, T>(Mutex<Option<(K, T)>>);

impl<K, T> Default for Seen<K, T> {
    fn default() -> Self {
        Self(Mutex::new(None))
    }
}

impl<K: PartialEq + AsRef<[Stamp]>, T: Clone> Seen<K, T> {
    /// The reading, if it is of exactly these files.
    pub(super) fn get(&self, stamps: &K) -> Option<T> {
        let seen = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        seen.as_ref().filter(|(seen, _)| seen == stamps).map(|(_, value)| value.clone())
    }

    /// Keeps a reading. `stamps` were taken before it was read, at `now`.
    pub(super) fn keep(&self, stamps: K, now: SystemTime, value: &T) {
        if stamps.as_ref().iter().all(|stamp| stamp.is_settled(now)) {
            *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some((stamps, value.clone()));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reading_is_kept_only_of_a_file_that_was_left_alone_for_a_while() {
        let seen = Seen::default();
        let stamp = |changed: u64| [Stamp { device: 1, inode: 2, size: 3, changed: Duration::from_millis(changed) }];
        let now = SystemTime::UNIX_EPOCH + Duration::from_millis(10_000);
        seen.keep(stamp(9_900), now, &"fresh");
        assert_eq!(seen.get(&stamp(9_900)), None);
        seen.keep(stamp(10_500), now, &"from the future");
        assert_eq!(seen.get(&stamp(10_500)), None);
        seen.keep(stamp(9_899), now, &"settled");
        assert_eq!(seen.get(&stamp(9_899)), Some("settled"));
        assert_eq!(seen.get(&stamp(9_898)), None);
    }
}
