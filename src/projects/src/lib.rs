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

pub use self::{
    detect::{Machine, Platform, TechStack, describe},
    error::ProjectError,
    folder::{FILE_BYTES, Folder},
    scan::{Found, SCAN_DEPTH, Scanned, scan},
    secrets::Allowed,
};
