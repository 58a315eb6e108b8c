//! Folders of projects as context for agents.
//!
//! What a project is made of ([`describe`]), its files ([`Folder::read`]), projects that nobody registered yet
//! ([`scan`]), and its blueprint ([`blueprint`]). Every file is opened beneath the project's folder by its inode: no
//! link, however often it is changed meanwhile, leads out of it.

pub mod blueprint;
mod detect;
mod error;
mod folder;
mod scan;
mod secrets;

use std::path::PathBuf;

/// What a host says of itself and what a person set.
#[derive(Debug, Clone, Default)]
pub struct ProjectOptions {
    /// The system that it runs on.
    pub machine: Machine,
    /// Folders below which projects are looked for.
    pub roots: Vec<PathBuf>,
    /// Files that are given out though they may hold secrets.
    pub allowed: Allowed,
}

pub use self::{
    detect::{Machine, Platform, TechStack, describe},
    error::ProjectError,
    folder::{FILE_BYTES, Folder},
    scan::{Found, SCAN_DEPTH, Scanned, scan},
    secrets::Allowed,
};
