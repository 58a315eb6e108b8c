//! One file of another application, and the copy of it from before.

use std::{
    fs,
    io::{self, Read as _, Write as _},
    path::{Path, PathBuf},
};

use portcullis::display::escape;
use portcullis_apps::{FILE_BYTES, Roots, connect::Client};

use crate::{app::App, error::CliError, file};

/// The file of a client.
#[derive(Debug)]
pub(in crate::commands) struct ClientFile {
    /// Where it is, or will be.
    pub(in crate::commands) path: PathBuf,
}

/// How a file was before an entry was written into it.
#[derive(Debug)]
pub(in crate::commands) enum Before {
    /// So.
    Text(Vec<u8>),
    /// It was not there.
    Nothing,
    /// Nobody knows: the entry was put in by hand.
    Unknown,
}

impl ClientFile {
    /// The one of a person's that is there, otherwise the one that the client would make.
    pub(in crate::commands) fn find(client: &Client, named: Option<&Path>, app: &App) -> Result<Self, CliError> {
        if let Some(path) = named {
            return Ok(Self { path: path.to_owned() });
        }
        let roots = Roots::here(app.surroundings.clone());
        let paths: Vec<_> = client.places().filter_map(|place| roots.path(place)).collect();
        let there = paths.iter().find(|path| path.is_file());
        match there.or_else(|| paths.iter().find(|path| path.parent().is_some_and(Path::is_dir))).or(paths.first()) {
            Some(path) => Ok(Self { path: path.clone() }),
            None => {
                Err(CliError::usage("no-file", format!("where {} keeps its servers is not known", client.app.name))
                    .help("name its file with `--file`"))
            }
        }
    }

    /// What stands in it; nothing where there is none.
    pub(in crate::commands) fn text(&self) -> Result<Vec<u8>, CliError> {
        read(&self.path).map(Option::unwrap_or_default)
    }

    /// Where the copy from before is kept.
    fn copy(&self, entry: &str) -> PathBuf {
        self.beside("before", entry)
    }

    /// What says that there was no file before.
    fn mark(&self, entry: &str) -> PathBuf {
        self.beside("made-for", entry)
    }

    fn beside(&self, what: &str, entry: &str) -> PathBuf {
        let mut name = self.path.file_name().unwrap_or_default().to_owned();
        name.push(format!(".{what}-{entry}"));
        self.path.with_file_name(name)
    }

    /// Writes `after` with the entry, unless the file is no longer as it was read. What was there before the first
    /// time is kept beside it, where only its owner reads it; `is_first` says that it surely is.
    pub(in crate::commands) fn connect(
        &self,
        before: &[u8],
        after: &[u8],
        entry: &str,
        is_first: bool,
    ) -> Result<Option<PathBuf>, CliError> {
        let cannot = |error: io::Error| self.cannot(&error);
        let Some(real) = self.real()? else {
            create(&self.path, after).map_err(cannot)?;
            replace_private(&self.mark(entry), &[]).map_err(cannot)?;
            return Ok(None);
        };
        let (copy, mark) = (self.copy(entry), self.mark(entry));
        let keeps = is_first || !(copy.exists() || mark.exists());
        if keeps {
            replace_private(&copy, before).map_err(cannot)?;
            let _ = fs::remove_file(mark);
        }
        file::replace(&real, before, after)?;
        Ok(keeps.then_some(copy))
    }

    /// Writes `after` without the entry, or takes the file away; what was kept of it has served.
    pub(in crate::commands) fn disconnect(
        &self,
        before: &[u8],
        after: Option<&[u8]>,
        entry: &str,
    ) -> Result<(), CliError> {
        match (after, self.real()?) {
            (Some(after), Some(real)) => file::replace(&real, before, after)?,
            (Some(_), None) => {}
            (None, _) => fs::remove_file(&self.path).map_err(|error| self.cannot(&error))?,
        }
        let _ = fs::remove_file(self.copy(entry));
        let _ = fs::remove_file(self.mark(entry));
        Ok(())
    }

    /// What is known of the file from before.
    pub(in crate::commands) fn before(&self, entry: &str) -> Result<Before, CliError> {
        Ok(match read(&self.copy(entry))? {
            Some(text) => Before::Text(text),
            None if self.mark(entry).exists() => Before::Nothing,
            None => Before::Unknown,
        })
    }

    /// Whether others of this machine may read it.
    pub(in crate::commands) fn is_open_to_others(&self) -> bool {
        #[cfg(unix)]
        {
            use std::os::unix::fs::PermissionsExt as _;
            fs::metadata(&self.path).is_ok_and(|metadata| metadata.permissions().mode() & 0o077 != 0)
        }
        #[cfg(not(unix))]
        false
    }

    fn real(&self) -> Result<Option<PathBuf>, CliError> {
        match fs::canonicalize(&self.path) {
            Ok(path) => Ok(Some(path)),
            // A link that leads nowhere is not written over.
            Err(error) if error.kind() == io::ErrorKind::NotFound && self.path.symlink_metadata().is_err() => Ok(None),
            Err(error) => Err(self.cannot(&error)),
        }
    }

    pub(in crate::commands) fn cannot(&self, error: &io::Error) -> CliError {
        let path = escape(&self.path.display().to_string()).into_owned();
        let failure = |why: &str| CliError::usage("client-file", format!("`{path}` cannot be written{why}"));
        match self.path.parent() {
            Some(folder) if !folder.as_os_str().is_empty() && !folder.is_dir() => {
                failure(", since its folder is not there")
                    .help("start the application once, or name another file with `--file`")
            }
            _ => failure("; it is as it was").because(error),
        }
    }
}

fn read(path: &Path) -> Result<Option<Vec<u8>>, CliError> {
    let failed = |error: io::Error| {
        let path = escape(&path.display().to_string()).into_owned();
        CliError::usage("client-file", format!("`{path}` cannot be read")).because(&error)
    };
    let file = match fs::File::open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(failed(error)),
    };
    if !file.metadata().is_ok_and(|metadata| metadata.is_file()) {
        return Err(failed(io::Error::new(io::ErrorKind::InvalidInput, "it is no file")));
    }
    let mut text = Vec::new();
    file.take(FILE_BYTES + 1).read_to_end(&mut text).map_err(failed)?;
    if text.len() as u64 > FILE_BYTES {
        return Err(failed(io::ErrorKind::FileTooLarge.into()));
    }
    Ok(Some(text))
}

/// A new file that only its owner reads, complete or not at all.
fn create(path: &Path, text: &[u8]) -> io::Result<()> {
    private(path, text)?.persist_noclobber(path)?;
    Ok(())
}

fn replace_private(path: &Path, text: &[u8]) -> io::Result<()> {
    private(path, text)?.persist(path)?;
    Ok(())
}

fn private(path: &Path, text: &[u8]) -> io::Result<tempfile::NamedTempFile> {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    // Readable by its owner alone, as every file of this kind is made.
    let mut new = tempfile::Builder::new().prefix(".portcullis-").suffix(".tmp").tempfile_in(folder)?;
    new.write_all(text)?;
    new.as_file().sync_all()?;
    Ok(new)
}
