//! Blueprints: what a project is to become, as files beside it.
//!
//! ```text
//! .blueprint/manifest.yaml     name, description, platform, techStack, modules
//! .blueprint/modules/<m>.md    task cards: a heading and fields
//! .blueprint/RULES.md          the rules of the project's group, between marks
//! ```
//!
//! A person writes them, or an agent that was given the [`prompt`](prompt::prompt); [`status`](status::status) says
//! how far things are and what does not fit.

mod cards;
mod manifest;
mod prompt;
mod rules;
mod status;

pub use self::{
    cards::{Card, State},
    manifest::Manifest,
    prompt::prompt,
    rules::{Rules, Synced, sync},
    status::{Module, Problem, Status, status},
};

use crate::{Folder, ProjectError};

/// The folder of a blueprint.
const FOLDER: &str = ".blueprint";
const MANIFEST: &str = ".blueprint/manifest.yaml";
const MODULES: &str = ".blueprint/modules";
const RULES: &str = ".blueprint/RULES.md";
/// Most modules of one blueprint.
const MODULES_READ: usize = 500;

/// The manifest and the text that it was read from.
///
/// # Errors
///
/// [`ProjectError::NoBlueprint`], [`ProjectError::Manifest`], or what keeps the file from being read.
pub fn manifest(folder: &Folder) -> Result<(Manifest, String), ProjectError> {
    let text = folder.text(MANIFEST).map_err(|error| match error {
        ProjectError::NotFound => ProjectError::NoBlueprint,
        error => error,
    })?;
    let manifest = Manifest::parse(&text).map_err(ProjectError::Manifest)?;
    Ok((manifest, text))
}

fn module_path(module: &str) -> String {
    format!("{MODULES}/{module}.md")
}

#[cfg(test)]
mod tests;
