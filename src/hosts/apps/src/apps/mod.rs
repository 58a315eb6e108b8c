//! The applications, one file each; those that read the same dialect share one.

mod claude_code;
mod claude_desktop;
mod cline;
mod codex;
mod continue_dev;
mod cursor;
mod gemini;
mod goose;
mod kiro;
mod lm_studio;
mod opencode;
mod roo;
mod vscode;
mod windsurf;
mod zed;

pub(crate) use self::{
    claude_code::APP as CLAUDE_CODE, claude_desktop::APP as CLAUDE_DESKTOP, codex::APP as CODEX, cursor::APP as CURSOR,
    gemini::APP as GEMINI, vscode::APP as VSCODE,
};
use crate::App;

/// All applications, by name.
pub const APPS: &[&App] = &[
    &claude_code::APP,
    &claude_desktop::APP,
    &cline::APP,
    &codex::APP,
    &continue_dev::APP,
    &cursor::APP,
    &gemini::APP,
    &goose::APP,
    &kiro::APP,
    &lm_studio::APP,
    &opencode::APP,
    &roo::APP,
    &vscode::APP,
    &windsurf::APP,
    &zed::APP,
];

/// The application of this id.
#[must_use]
pub fn app(id: &str) -> Option<&'static App> {
    APPS.iter().copied().find(|app| app.id == id)
}
