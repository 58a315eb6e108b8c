//! The endpoint out of the file of another application again.

use std::{fs, path::PathBuf};

use portcullis::display::escape;
use portcullis_apps::connect;
use serde_json::json;

use super::connect::{client, clients, entry_name, file::ClientFile, untouched};
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
        let copy = file.before(&name)?;
        let origin = copy.clone().unwrap_or_default();
        // What `connect` made of the copy is what stands there: nobody changed anything since.
        restored = connect::put(client, &origin, &name, entry).is_ok_and(|made| made.as_bytes() == now);
        if restored && copy.is_none() {
            fs::remove_file(&file.path).map_err(|error| file.cannot(&error))?;
        } else {
            let after = match restored {
                true => origin,
                false => connect::take(client, &now, &name).map_err(wrong)?.unwrap_or_default().into_bytes(),
            };
            file.write(&now, &after, &name, false)?;
        }
        file.forget_copy(&name);
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
