//! One file per command: `Args`, whose doc comment is its help, and `run`.

pub mod add;
pub mod approvals;
pub mod approve;
pub mod call;
pub mod check;
pub mod completions;
pub mod connect;
pub mod demo;
pub mod demo_server;
pub mod deny;
pub mod disable;
pub mod disconnect;
pub mod doctor;
pub mod edit;
pub mod enable;
pub mod export;
pub mod grants;
pub mod groups;
pub mod import;
pub mod inspect;
pub mod list;
pub mod lock;
pub mod log;
pub mod logs;
pub mod man;
pub mod mode;
pub mod paths;
pub mod ping;
pub mod projects;
pub mod prompt;
pub mod prompts;
pub mod read;
pub mod record;
pub mod remove;
pub mod resources;
pub mod revoke;
pub mod rules;
pub mod schema;
pub mod secret;
pub mod serve;
pub mod show;
pub mod tools;
pub mod trust;
pub mod untrust;

use std::{
    fs::File,
    io::{self, Read},
    path::Path,
};

use clap::ValueEnum;
use portcullis::{
    display::escape,
    document::{ParseOptions, TimeoutUnit},
    limits::DOCUMENT_BYTES,
};

use crate::{app::App, error::CliError};

/// The unit of `timeout` fields that have none.
#[derive(Debug, Clone, Copy, ValueEnum)]
pub enum Unit {
    /// Seconds.
    S,
    /// Milliseconds.
    Ms,
}

fn options(unit: Option<Unit>) -> ParseOptions {
    let unit = unit.map(|unit| match unit {
        Unit::S => TimeoutUnit::Seconds,
        Unit::Ms => TimeoutUnit::Milliseconds,
    });
    ParseOptions { timeout_unit: unit }
}

/// The bytes of a file, or of standard input for `-`; one more than a document may have at most.
fn read_document(file: &Path) -> Result<Vec<u8>, CliError> {
    let mut bytes = Vec::new();
    let limit = DOCUMENT_BYTES as u64 + 1;
    let read = if file == Path::new("-") {
        io::stdin().lock().take(limit).read_to_end(&mut bytes)
    } else {
        File::open(file).and_then(|open| open.take(limit).read_to_end(&mut bytes))
    };
    match read {
        Ok(_) => Ok(bytes),
        Err(error) => {
            let message = format!("`{}` cannot be read", escape(&file.display().to_string()));
            Err(CliError::usage("unreadable", message).because(&error))
        }
    }
}

/// Says what was done; with `--json` how the server is now.
async fn done(app: &App, name: &str, words: &str) -> Result<u8, CliError> {
    if app.output.json {
        app.output.json(&app.gate.server(name).await?.to_json());
    } else if !words.is_empty() {
        app.output.data(words);
    }
    Ok(0)
}

/// How a file is called in messages.
fn shown(file: &Path) -> String {
    if file == Path::new("-") { "standard input".to_owned() } else { file.display().to_string() }
}
