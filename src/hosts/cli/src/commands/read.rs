//! One resource of a server.

use std::{io::Write as _, path::PathBuf};

use base64::{Engine as _, prelude::BASE64_STANDARD};
use portcullis::display::{escape, escape_json, escape_lines};
use serde::Deserialize;

use crate::{app::App, error::CliError, remote};

/// Read a resource of a server.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// The server.
    pub server: String,
    /// The resource, as its server calls it.
    pub uri: String,
    /// Write the content to this file, which must not exist, byte by byte.
    #[arg(long, short, value_name = "FILE")]
    pub output: Option<PathBuf>,
}

#[derive(Deserialize)]
struct Contents {
    #[serde(default)]
    contents: Vec<Content>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Content {
    #[serde(default)]
    uri: String,
    #[serde(default)]
    mime_type: String,
    text: Option<String>,
    blob: Option<String>,
}

/// Runs the command.
///
/// # Errors
///
/// What the gate says, and a file that cannot be written.
pub async fn run(args: &Args, app: &App) -> Result<u8, CliError> {
    let result = remote::resource(app, &args.server, &args.uri).await?;
    if let Some(file) = &args.output {
        let contents = contents(result.get())?;
        let [content] = &contents[..] else {
            let message = format!("the resource has {} parts, and a file holds one", contents.len());
            return Err(CliError::usage("usage", message).help("--json prints all of them"));
        };
        let bytes = bytes(content)?;
        let written = std::fs::File::create_new(file).and_then(|mut open| open.write_all(&bytes));
        written.map_err(|error| {
            let message = format!("`{}` cannot be written", escape(&file.display().to_string()));
            CliError::usage("unwritable", message).because(&error)
        })?;
        app.output.say(&format!("{} bytes written", bytes.len()));
    } else if app.output.json {
        app.output.data(&escape_json(result.get()));
    } else {
        let shown: Vec<_> = contents(result.get())?.iter().map(shown).collect();
        app.output.data(&if shown.is_empty() { "(an empty resource)".to_owned() } else { shown.join("\n") });
    }
    Ok(0)
}

fn contents(result: &str) -> Result<Vec<Content>, CliError> {
    let read = serde_json::from_str::<Contents>(result);
    Ok(read.map_err(|_| CliError::new(4, "protocol", "the server's answer is no resource"))?.contents)
}

fn bytes(content: &Content) -> Result<Vec<u8>, CliError> {
    match (&content.text, &content.blob) {
        (Some(text), _) => Ok(text.clone().into_bytes()),
        (None, Some(blob)) => {
            BASE64_STANDARD.decode(blob).map_err(|_| CliError::new(4, "protocol", "the server's answer is no base64"))
        }
        (None, None) => Ok(Vec::new()),
    }
}

fn shown(content: &Content) -> String {
    match (&content.text, &content.blob) {
        (Some(text), _) => escape_lines(&text.replace("\r\n", "\n")).into_owned(),
        (None, Some(blob)) => format!(
            "[{} {}, {} bytes of base64; --output FILE writes it]",
            escape(&content.uri),
            escape(&content.mime_type),
            blob.len()
        ),
        (None, None) => format!("[{}: nothing]", escape(&content.uri)),
    }
}
