//! Files beneath one folder, opened so that nothing leads out of it.

use std::{
    io::{self, Read as _, Write as _},
    path::{Component, Path},
    sync::atomic::{AtomicU64, Ordering},
};

use cap_std::{
    ambient_authority,
    fs::{Dir, File, Metadata, OpenOptions},
};

use crate::{Allowed, ProjectError, secrets};

/// Longest file that is given out, in bytes.
pub const FILE_BYTES: u64 = 262_144;

/// The folder of a project.
#[derive(Debug)]
pub struct Folder(Dir);

impl Folder {
    /// Opens it.
    ///
    /// # Errors
    ///
    /// [`ProjectError::Root`].
    pub fn open(path: &Path) -> Result<Self, ProjectError> {
        Dir::open_ambient_dir(path, ambient_authority()).map(Self).map_err(ProjectError::Root)
    }

    /// The text of a file, whole.
    ///
    /// # Errors
    ///
    /// [`ProjectError`]: a path that leads out, something that is no file, more than [`FILE_BYTES`], no text, a
    /// file that may hold secrets and that `allowed` does not name.
    pub fn read(&self, path: &str, allowed: &Allowed) -> Result<String, ProjectError> {
        let relative = relative(path)?;
        // By both names: the one that was said, and the one that it leads to.
        let real = self.0.canonicalize(relative).map_err(|error| failed(error, "read"))?;
        for name in [relative, real.as_path()] {
            if let Some(why) = secrets::by_name(name)
                && !allowed.has(name)
            {
                return Err(ProjectError::Secret(why));
            }
        }
        // What the name led to a moment ago is what is given out, and nothing that stands there by now.
        let file = self.file(&real)?;
        let opened = file.metadata().map_err(|error| failed(error, "read"))?;
        let now = self.0.symlink_metadata(&real).map_err(|error| failed(error, "read"))?;
        let again = self.0.canonicalize(&real).map_err(|error| failed(error, "read"))?;
        if !is_same(&opened, &now) || again != real {
            return Err(ProjectError::NotFound);
        }
        let text = text_of(file)?;
        match secrets::by_content(&text) {
            Some(why) if !allowed.has(&real) => Err(ProjectError::Secret(why)),
            _ => Ok(text),
        }
    }

    /// The text of a file, whatever it is called.
    pub(crate) fn text(&self, path: &str) -> Result<String, ProjectError> {
        text_of(self.file(relative(path)?)?)
    }

    /// A regular file, opened without waiting for anybody: a pipe without a writer would wait for ever.
    fn file(&self, path: &Path) -> Result<File, ProjectError> {
        let mut options = OpenOptions::new();
        options.read(true);
        #[cfg(unix)]
        {
            use cap_std::fs::OpenOptionsExt as _;
            options.custom_flags(rustix::fs::OFlags::NONBLOCK.bits().cast_signed());
        }
        let file = match self.0.open_with(path, &options) {
            Ok(file) => file,
            // A socket cannot be opened.
            Err(_) if self.0.metadata(path).is_ok_and(|found| !found.is_file() && !found.is_dir()) => {
                return Err(ProjectError::NotAFile("a socket, a pipe or a device"));
            }
            Err(error) => return Err(failed(error, "read")),
        };
        let metadata = file.metadata().map_err(|error| failed(error, "read"))?;
        match kind(&metadata) {
            Some(what) => Err(ProjectError::NotAFile(what)),
            None if metadata.len() > FILE_BYTES => Err(ProjectError::TooLong { limit: FILE_BYTES }),
            None => Ok(file),
        }
    }

    /// Whether there is something of this path beneath the folder.
    pub(crate) fn has(&self, path: &str) -> bool {
        relative(path).is_ok_and(|path| self.0.metadata(path).is_ok())
    }

    /// The names of the files in a folder, sorted; none where there is no folder.
    pub(crate) fn files(&self, path: &str, most: usize) -> Vec<String> {
        let entries = self.0.read_dir(path).into_iter().flatten().flatten().take(most);
        let names = entries.filter(|entry| entry.file_type().is_ok_and(|kind| !kind.is_dir()));
        let mut names: Vec<_> = names.filter_map(|entry| entry.file_name().into_string().ok()).collect();
        names.sort();
        names
    }

    /// Writes a file whole or not at all, and the folder that it is in; not at all, and false, where `is_due` says so
    /// at the last moment.
    pub(crate) fn write(
        &self,
        folder: &str,
        name: &str,
        text: &str,
        is_due: impl FnOnce() -> Result<bool, ProjectError>,
    ) -> Result<bool, ProjectError> {
        let written = |error| failed(error, "written");
        self.0.create_dir_all(folder).map_err(written)?;
        let folder = self.0.open_dir(folder).map_err(written)?;
        // Of this one alone: two may write at one time.
        static NUMBER: AtomicU64 = AtomicU64::new(0);
        let beside =
            format!(".{name}.{}-{}.portcullis-tmp", std::process::id(), NUMBER.fetch_add(1, Ordering::Relaxed));
        let mut file = folder.open_with(&beside, OpenOptions::new().write(true).create_new(true)).map_err(written)?;
        let done = file.write_all(text.as_bytes()).and_then(|()| file.sync_all()).map_err(written);
        let done = done.and_then(|()| match is_due()? {
            true => folder.rename(&beside, &folder, name).map_err(written).map(|()| true),
            false => Ok(false),
        });
        if !matches!(done, Ok(true)) {
            let _ = folder.remove_file(&beside);
        }
        done
    }
}

fn text_of(file: File) -> Result<String, ProjectError> {
    let mut bytes = Vec::new();
    let limit = FILE_BYTES;
    file.take(limit + 1).read_to_end(&mut bytes).map_err(|error| failed(error, "read"))?;
    if bytes.len() as u64 > limit {
        return Err(ProjectError::TooLong { limit });
    }
    String::from_utf8(bytes).ok().filter(|text| !text.contains('\0')).ok_or(ProjectError::NotText)
}

fn is_same(one: &Metadata, other: &Metadata) -> bool {
    #[cfg(unix)]
    let same = {
        use cap_std::fs::MetadataExt as _;
        (one.dev(), one.ino()) == (other.dev(), other.ino())
    };
    // Elsewhere an open file cannot be told from another by what the standard library says of it.
    #[cfg(not(unix))]
    let same = one.len() == other.len() && one.created().ok() == other.created().ok();
    same
}

fn kind(metadata: &Metadata) -> Option<&'static str> {
    match () {
        () if metadata.is_file() => None,
        () if metadata.is_dir() => Some("a folder"),
        () => Some("a socket, a pipe or a device"),
    }
}

/// A path that stays beneath, as far as it says so itself.
fn relative(path: &str) -> Result<&Path, ProjectError> {
    if path.is_empty() {
        return Err(ProjectError::Path("it is empty"));
    }
    if path.contains('\0') {
        return Err(ProjectError::Path("it holds a NUL"));
    }
    let path = Path::new(path);
    for component in path.components() {
        match component {
            Component::Normal(_) | Component::CurDir => {}
            Component::ParentDir => return Err(ProjectError::Outside),
            Component::RootDir | Component::Prefix(_) => return Err(ProjectError::Path("it is absolute")),
        }
    }
    Ok(path)
}

fn failed(error: io::Error, attempt: &'static str) -> ProjectError {
    match error.kind() {
        io::ErrorKind::NotFound | io::ErrorKind::NotADirectory => ProjectError::NotFound,
        // What cap-std says of a path that leads out, and the kernel of links that turn in circles.
        io::ErrorKind::PermissionDenied if error.raw_os_error().is_none() => ProjectError::Outside,
        #[cfg(unix)]
        _ if error.raw_os_error() == Some(rustix::io::Errno::XDEV.raw_os_error()) => ProjectError::Outside,
        _ => ProjectError::Io { attempt, source: error },
    }
}

#[cfg(test)]
mod tests;
