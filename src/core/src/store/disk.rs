//! How a file is replaced as a whole.
//!
//! A new file beside it is created exclusively, readable for its owner alone, written, brought to
//! the disk, renamed over the old one, and the folder is brought to the disk. Whatever fails, and
//! wherever the power goes, there is the old file or the new one.

use std::{
    fmt::Debug,
    fs::{self, File},
    io::{self, Write},
    path::{Path, PathBuf},
    time::Duration,
};

use tempfile::NamedTempFile;

use super::StoreError;

/// How temporary files begin.
const PREFIX: &str = ".state-";
/// How old a temporary file is that its writer left behind for good.
const STALE: Duration = Duration::from_secs(3600);

/// The calls that a save makes, so that tests can fail each of them.
pub(super) trait Disk: Debug + Send + Sync {
    /// Creates a file that did not exist, with a name nobody can guess, 0600 whatever the umask.
    fn create(&self, folder: &Path) -> io::Result<NamedTempFile>;
    fn write(&self, file: &mut NamedTempFile, bytes: &[u8]) -> io::Result<()>;
    fn sync(&self, file: &NamedTempFile) -> io::Result<()>;
    fn rename(&self, file: NamedTempFile, target: &Path) -> io::Result<()>;
    fn sync_folder(&self, folder: &Path) -> io::Result<()>;
}

/// The disk of this computer.
#[derive(Debug)]
pub(super) struct LocalDisk;

impl Disk for LocalDisk {
    fn create(&self, folder: &Path) -> io::Result<NamedTempFile> {
        // O_CREAT | O_EXCL with mode 0600, of which a umask only takes.
        tempfile::Builder::new().prefix(PREFIX).rand_bytes(12).tempfile_in(folder)
    }

    fn write(&self, file: &mut NamedTempFile, bytes: &[u8]) -> io::Result<()> {
        file.write_all(bytes)?;
        file.flush()
    }

    fn sync(&self, file: &NamedTempFile) -> io::Result<()> {
        file.as_file().sync_all()
    }

    fn rename(&self, file: NamedTempFile, target: &Path) -> io::Result<()> {
        // Dropping the error's file removes it.
        file.persist(target).map(|_| ()).map_err(|error| error.error)
    }

    fn sync_folder(&self, folder: &Path) -> io::Result<()> {
        if cfg!(not(unix)) {
            return Ok(());
        }
        match File::open(folder)?.sync_all() {
            // Some file systems have nothing to bring to the disk there.
            Err(error) if matches!(error.kind(), io::ErrorKind::InvalidInput | io::ErrorKind::Unsupported) => Ok(()),
            other => other,
        }
    }
}

/// What a path leads to.
#[derive(Debug)]
pub(super) enum Found {
    Nothing,
    File { real: PathBuf, bytes: Vec<u8> },
}

/// Reads a file of at most `limit` bytes. A link is followed, since people keep their files
/// elsewhere; anything but a file is refused unread.
pub(super) fn read(path: &Path, limit: u64) -> Result<Found, StoreError> {
    let failed = |source| StoreError::Read { path: path.to_owned(), source };
    let unusable = |problem: &str| StoreError::Unusable { path: path.to_owned(), problem: problem.to_owned() };
    let real = match fs::canonicalize(path) {
        Ok(real) => real,
        Err(error) if is_nothing(&error) => {
            return match fs::symlink_metadata(path) {
                Err(error) if is_nothing(&error) => Ok(Found::Nothing),
                Err(source) => Err(failed(source)),
                // To save would put a file where somebody else once pointed to.
                Ok(_) => Err(unusable("it is a link to a file that does not exist")),
            };
        }
        Err(source) => return Err(failed(source)),
    };
    let metadata = fs::metadata(&real).map_err(failed)?;
    if !metadata.is_file() {
        return Err(unusable("it is not a file"));
    }
    let too_large = || unusable(&format!("it is larger than {} MiB", limit >> 20));
    if metadata.len() > limit {
        return Err(too_large());
    }
    // Room for all of it at once; what grew meanwhile is read all the same.
    let mut bytes = Vec::with_capacity(usize::try_from(metadata.len()).unwrap_or_default() + 1);
    let file = File::open(&real).map_err(failed)?;
    io::Read::read_to_end(&mut io::Read::take(file, limit + 1), &mut bytes).map_err(failed)?;
    if bytes.len() as u64 > limit {
        return Err(too_large());
    }
    Ok(Found::File { real, bytes })
}

/// No such file, or a file where its folder should be.
fn is_nothing(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory)
}

/// Replaces `target` by `bytes`; `old` is what was there, to be put back.
///
/// To be called under the lock only: another writer in between would be lost.
pub(super) fn replace(disk: &dyn Disk, target: &Path, bytes: &[u8], old: Option<&[u8]>) -> Result<(), StoreError> {
    let folder = target.parent().unwrap_or(Path::new("."));
    refuse_open_folder(target, folder)?;
    remove_stale(folder);
    put(disk, target, folder, bytes)?;
    let Err(source) = disk.sync_folder(folder) else { return Ok(()) };
    // The new file is there, and it is told as a failure: so the old one has to come back.
    let step = "while bringing its folder to the disk";
    let path = target.to_owned();
    let back = match old {
        Some(old) => put(disk, target, folder, old).is_ok(),
        None => fs::remove_file(target).is_ok(),
    };
    Err(if back { StoreError::Save { path, step, source } } else { StoreError::Uncertain { path, step, source } })
}

/// The same for what can be had again: whole or not at all for whoever reads it, but after a power failure it may be
/// gone, or be nothing that can be read. Costs no wait for the disk.
pub(super) fn replace_cached(disk: &dyn Disk, target: &Path, bytes: &[u8]) -> Result<(), StoreError> {
    let folder = target.parent().unwrap_or(Path::new("."));
    refuse_open_folder(target, folder)?;
    remove_stale(folder);
    let failed = |step| move |source| StoreError::Save { path: target.to_owned(), step, source };
    let mut file = disk.create(folder).map_err(failed("while creating a new file beside it"))?;
    disk.write(&mut file, bytes).map_err(failed("while writing a new file beside it"))?;
    disk.rename(file, target).map_err(failed("while putting the new file in its place"))
}

fn put(disk: &dyn Disk, target: &Path, folder: &Path, bytes: &[u8]) -> Result<(), StoreError> {
    let failed = |step| move |source| StoreError::Save { path: target.to_owned(), step, source };
    let mut file = disk.create(folder).map_err(failed("while creating a new file beside it"))?;
    disk.write(&mut file, bytes).map_err(failed("while writing a new file beside it"))?;
    disk.sync(&file).map_err(failed("while bringing the new file to the disk"))?;
    disk.rename(file, target).map_err(failed("while putting the new file in its place"))
}

/// A folder in which anybody can replace files is no place for one that is trusted.
#[cfg(unix)]
fn refuse_open_folder(target: &Path, folder: &Path) -> Result<(), StoreError> {
    use std::os::unix::fs::PermissionsExt as _;

    let open = fs::metadata(folder).is_ok_and(|metadata| metadata.permissions().mode() & 0o1002 == 0o002);
    if open {
        return Err(StoreError::Unsafe {
            path: target.to_owned(),
            reason: format!("everybody may replace files in `{}`; take that right away (chmod o-w)", folder.display()),
        });
    }
    Ok(())
}

#[cfg(not(unix))]
fn refuse_open_folder(_target: &Path, _folder: &Path) -> Result<(), StoreError> {
    Ok(())
}

/// Removes what writers left behind that were killed. Whatever does not work out is left for later.
fn remove_stale(folder: &Path) {
    let Ok(entries) = fs::read_dir(folder) else { return };
    for entry in entries.flatten() {
        let ours = entry.file_name().to_str().is_some_and(|name| name.starts_with(PREFIX));
        if ours && entry.metadata().is_ok_and(|metadata| metadata.is_file() && is_stale(&metadata)) {
            let _ = fs::remove_file(entry.path());
        }
    }
}

fn is_stale(metadata: &fs::Metadata) -> bool {
    metadata.modified().is_ok_and(|modified| modified.elapsed().is_ok_and(|age| age > STALE))
}

/// Takes the rights of others away from a file that holds secrets.
#[cfg(unix)]
pub(super) fn close_to_others(path: &Path) {
    use std::os::unix::fs::PermissionsExt as _;

    let Ok(metadata) = fs::metadata(path) else { return };
    if metadata.permissions().mode() & 0o077 != 0 {
        let outcome = fs::set_permissions(path, fs::Permissions::from_mode(0o600));
        tracing::warn!(path = %path.display(), closed = outcome.is_ok(), "other users could read this file, which may hold secrets");
    }
}

#[cfg(not(unix))]
pub(super) fn close_to_others(_path: &Path) {}
