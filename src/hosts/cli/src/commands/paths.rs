//! Where things are kept.

use portcullis::store::FileStore;
use serde_json::json;

use crate::{app::App, error::CliError};

/// Print where settings, store and log are kept; make nothing.
#[derive(Debug, clap::Args)]
pub struct Args {}

/// Runs the command.
///
/// # Errors
///
/// Where there is no place to keep things.
pub async fn run(_: &Args, app: &App) -> Result<u8, CliError> {
    let Some(folders) = &app.folders else { return Err(portcullis_settings::FoldersError::NoHome.into()) };
    let store = FileStore::open(&folders.data);
    let paths = [
        ("settings", folders.settings_path()),
        ("store", store.state_path()),
        ("key", store.key_path()),
        ("log", folders.state.join("audit.jsonl")),
    ];
    if app.output.json {
        let entry = |(name, path): &(&str, std::path::PathBuf)| ((*name).to_owned(), json!(path));
        app.output.json(&serde_json::Value::Object(paths.iter().map(entry).collect()));
    } else {
        for (name, path) in paths {
            app.output.data(&format!("{name:<10} {}", portcullis::display::escape(&path.display().to_string())));
        }
    }
    Ok(0)
}
