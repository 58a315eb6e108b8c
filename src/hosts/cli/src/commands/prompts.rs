//! The prompts that a server offers.

use portcullis::session::ListKind;
use serde::Deserialize;

use crate::{app::App, error::CliError, remote, render::listing};

/// List the prompts of a server.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// The server.
    pub server: String,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct Prompt {
    name: String,
    title: String,
    description: String,
    arguments: Vec<Argument>,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct Argument {
    name: String,
    required: bool,
}

/// Runs the command.
///
/// # Errors
///
/// What the gate says.
pub async fn run(args: &Args, app: &App) -> Result<u8, CliError> {
    let prompts = remote::list(app, &args.server, ListKind::Prompts).await?;
    if app.output.json {
        app.output.json(&prompts);
        return Ok(0);
    }
    let items = prompts.iter().map(|raw| serde_json::from_str::<Prompt>(raw.get()).unwrap_or_default());
    let items: Vec<_> = items
        .map(|prompt| {
            let arguments = prompt.arguments.iter().map(|argument| {
                if argument.required { format!("{}=…", argument.name) } else { format!("[{}=…]", argument.name) }
            });
            let kind = arguments.collect::<Vec<_>>().join(" ");
            listing::Item { id: prompt.name, kind, title: prompt.title, words: prompt.description }
        })
        .collect();
    app.output.data(&listing::text(&items, "prompts"));
    Ok(0)
}
