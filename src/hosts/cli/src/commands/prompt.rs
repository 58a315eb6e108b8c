//! One prompt of a server, filled in.

use portcullis::display::{escape, escape_json};
use serde::Deserialize;
use serde_json::{Map, Value, value::RawValue};

use crate::{app::App, error::CliError, remote, render};

/// Get a prompt of a server, filled in. Its words are the server's.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// The server.
    pub server: String,
    /// The prompt, as its server calls it.
    pub name: String,
    /// Arguments, each a text.
    #[arg(value_name = "KEY=VALUE")]
    pub pairs: Vec<String>,
}

#[derive(Deserialize)]
struct Prompt<'a> {
    #[serde(borrow, default)]
    messages: Vec<Message<'a>>,
}

#[derive(Deserialize)]
struct Message<'a> {
    #[serde(default)]
    role: String,
    #[serde(borrow)]
    content: &'a RawValue,
}

/// Runs the command.
///
/// # Errors
///
/// What the gate says.
pub async fn run(args: &Args, app: &App) -> Result<u8, CliError> {
    let mut members = Map::new();
    for pair in &args.pairs {
        let (key, value) = pair
            .split_once('=')
            .ok_or_else(|| CliError::usage("usage", format!("`{}` is not KEY=VALUE", escape(pair))))?;
        members.insert(key.to_owned(), Value::from(value));
    }
    let arguments = (!members.is_empty()).then(|| RawValue::from_string(Value::Object(members).to_string()));
    let arguments = arguments.transpose().map_err(|error| CliError::internal(error.to_string()))?;
    let result = remote::prompt(app, &args.server, &args.name, arguments.as_deref()).await?;
    if app.output.json {
        app.output.data(&escape_json(result.get()));
        return Ok(0);
    }
    let Ok(prompt) = serde_json::from_str::<Prompt<'_>>(result.get()) else {
        return Err(CliError::new(4, "protocol", "the server's answer is no prompt"));
    };
    let shown = prompt.messages.iter().map(|message| {
        let content = render::result::content(message.content.get(), app.output.to_terminal());
        format!("{}: {content}", escape(&message.role))
    });
    let shown = shown.collect::<Vec<_>>().join("\n");
    app.output.data(if shown.is_empty() { "(an empty prompt)" } else { &shown });
    Ok(0)
}
