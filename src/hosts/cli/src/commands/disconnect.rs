//! The endpoint out of the file of another application again.

use std::path::PathBuf;

use portcullis::display::escape;
use portcullis_apps::connect::{self, Client, EditError};
use serde_json::json;

use super::connect::{
    client, clients, entry_name,
    file::{Before, ClientFile},
    untouched,
};
use crate::{app::App, error::CliError};

/// Take the endpoint out of the file of an application again.
///
/// Where nothing else changed since `connect --write`, the file becomes what it was, byte for byte.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// The application.
    #[arg(value_name = "CLIENT", value_parser = clients())]
    pub client: String,
    /// The entry that shows this group.
    #[arg(long, value_name = "ID")]
    pub group: Option<String>,
    /// This file instead of the one of the person.
    #[arg(long, value_name = "FILE")]
    pub file: Option<PathBuf>,
}

/// Runs the command.
///
/// # Errors
///
/// A file that cannot be read or changed.
pub async fn run(args: &Args, app: &App) -> Result<u8, CliError> {
    let client = client(&args.client)?;
    let name = entry_name(args.group.as_deref());
    let file = ClientFile::find(client, args.file.as_deref(), app)?;
    let now = file.text()?;
    let wrong = |error| untouched(&file, &error);
    let entry = connect::entry(client, &now, &name).map_err(wrong)?;
    let mut restored = false;
    if let Some(entry) = &entry {
        let before = file.before(&name)?;
        let (origin, is_known) = match &before {
            Before::Text(text) => (text.as_slice(), true),
            Before::Nothing => (&[][..], true),
            Before::Unknown => (&[][..], false),
        };
        // What `connect` made of the copy is what stands there: nobody changed anything since.
        let is_as_made = || connect::put(client, origin, &name, entry).is_ok_and(|made| made.as_bytes() == now);
        restored = is_known && is_as_made();
        let after = match before {
            Before::Nothing if restored => None,
            Before::Text(text) if restored => Some(text),
            before => Some(without(client, &now, &name, &before).map_err(wrong)?),
        };
        file.disconnect(&now, after.as_deref(), &name)?;
    }
    let path = file.path.display().to_string();
    if app.output.json {
        let changed = entry.is_some();
        app.output.json(&json!({
            "client": client.app.id, "name": name, "file": path, "changed": changed, "restored": restored,
        }));
        return Ok(0);
    }
    let path = escape(&path);
    app.output.data(&match (entry, restored) {
        (None, _) => format!("{} is not connected: {path}", client.app.name),
        (Some(_), true) => format!("{} is disconnected, and its file is as it was: {path}", client.app.name),
        (Some(_), false) => format!("{} is disconnected: {path}", client.app.name),
    });
    Ok(0)
}

/// What stands there now, with the entry of this name that a person had written before, or none.
fn without(client: &Client, now: &[u8], name: &str, before: &Before) -> Result<Vec<u8>, EditError> {
    let own = match before {
        Before::Text(text) => connect::entry(client, text, name).ok().flatten(),
        Before::Nothing | Before::Unknown => None,
    };
    let text = match own {
        Some(own) => connect::put(client, now, name, &own)?,
        None => connect::take(client, now, name)?.unwrap_or_default(),
    };
    Ok(text.into_bytes())
}
