//! What a server offers to be read.

use portcullis::{serde_json::value::RawValue, session::ListKind};
use serde::Deserialize;
use serde_json::json;

use crate::{app::App, error::CliError, remote, render::listing};

/// List the resources of a server, and the templates of more.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// The server.
    pub server: String,
}

#[derive(Deserialize, Default)]
#[serde(default, rename_all = "camelCase")]
struct Resource {
    uri: String,
    uri_template: String,
    name: String,
    description: String,
    mime_type: String,
}

/// Runs the command.
///
/// # Errors
///
/// What the gate says.
pub async fn run(args: &Args, app: &App) -> Result<u8, CliError> {
    let resources = remote::list(app, &args.server, ListKind::Resources).await?;
    // Few servers have any, and an old one may not know the method.
    let templates = remote::list(app, &args.server, ListKind::ResourceTemplates).await.unwrap_or_default();
    if app.output.json {
        app.output.json(&json!({"resources": resources, "resourceTemplates": templates}));
        return Ok(0);
    }
    let items = |raw: &[Box<RawValue>]| {
        let read = raw.iter().map(|item| serde_json::from_str::<Resource>(item.get()).unwrap_or_default());
        read.map(|item| {
            let address = if item.uri.is_empty() { item.uri_template } else { item.uri };
            listing::Item { id: address, kind: item.mime_type, title: item.name, words: item.description }
        })
        .collect::<Vec<_>>()
    };
    let all = [items(&resources), items(&templates)].concat();
    app.output.data(&listing::text(&all, "resources"));
    Ok(0)
}
