//! What does not work with a project, for the person or the agent that wanted it.

use std::io;

/// Why something of a project is not there.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ProjectError {
    /// The project's own folder cannot be opened.
    #[error("the folder of the project cannot be opened")]
    Root(#[source] io::Error),
    /// A path that cannot be one of a file in the project.
    #[error("the path is not one of a file in the project: {0}")]
    Path(&'static str),
    /// It leads out of the project.
    #[error("the path leads out of the project")]
    Outside,
    /// There is no such file.
    #[error("there is no such file in the project")]
    NotFound,
    /// It is something else than a file.
    #[error("it is no file but {0}")]
    NotAFile(&'static str),
    /// It is longer than is given out.
    #[error("the file has more than {limit} bytes, and nothing is cut")]
    TooLong {
        /// The limit, in bytes.
        limit: u64,
    },
    /// It is no text.
    #[error("the file is no UTF-8 text")]
    NotText,
    /// It may hold secrets, and no rule of the person allows it.
    #[error("the file is not given out, since {0}")]
    Secret(&'static str),
    /// What the operating system said.
    #[error("the file cannot be {attempt}")]
    Io {
        /// `read`, `written`.
        attempt: &'static str,
        /// Its words.
        #[source]
        source: io::Error,
    },
    /// The rules of a group cannot be put between their marks.
    #[error("`.blueprint/RULES.md` has one of the marks around the rules and not the other")]
    Marks,
    /// The project has no blueprint.
    #[error("the project has no blueprint: there is no `.blueprint/manifest.yaml`")]
    NoBlueprint,
    /// The manifest cannot be read.
    #[error("`.blueprint/manifest.yaml` cannot be read: {0}")]
    Manifest(String),
}

impl ProjectError {
    /// A stable code, for programs.
    #[must_use]
    pub fn code(&self) -> &'static str {
        match self {
            Self::Root(_) => "project-folder",
            Self::Path(_) => "path",
            Self::Outside => "outside",
            Self::NotFound => "no-file",
            Self::NotAFile(_) => "not-a-file",
            Self::TooLong { .. } => "too-long",
            Self::NotText => "not-text",
            Self::Secret(_) => "secret-file",
            Self::Io { .. } => "io",
            Self::Marks => "marks",
            Self::NoBlueprint => "no-blueprint",
            Self::Manifest(_) => "manifest",
        }
    }

    /// What to do.
    #[must_use]
    pub fn help(&self) -> Option<&'static str> {
        Some(match self {
            Self::Root(_) => "register the project again where it is now, or unregister it",
            Self::Path(_) | Self::Outside => "name a file by its path from the project's folder, with `/`",
            Self::TooLong { .. } => "open it in an editor, or split it",
            Self::Secret(_) => "a person can allow it with the setting `projectFilesAllow`",
            Self::Marks => "repair or remove the marks by hand, then sync again",
            Self::NoBlueprint | Self::Manifest(_) => {
                "`portcullis projects prompt`, or the tool `generate_blueprint_prompt`, says how one is written"
            }
            _ => return None,
        })
    }
}
