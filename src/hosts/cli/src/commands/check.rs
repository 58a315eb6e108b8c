//! Reads a document and says everything about it.

use std::path::PathBuf;

use super::Unit;
use crate::{
    app::App,
    error::{CliError, USAGE},
    render::{count, document},
};

/// Read a document and print everything worth knowing about it; save and start nothing.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// The document; `-` for standard input.
    pub file: PathBuf,
    /// The unit of `timeout` fields, which hosts read differently.
    #[arg(long, value_name = "UNIT")]
    pub timeout_unit: Option<Unit>,
}

/// Runs the command.
///
/// # Errors
///
/// A file that cannot be read.
pub async fn run(args: &Args, app: &App) -> Result<u8, CliError> {
    let source = super::read_document(&args.file)?;
    let parsed = app.gate.check(&source, &super::options(args.timeout_unit));
    if app.output.json {
        app.output.json(&document::json(&parsed));
    } else {
        let file = super::shown(&args.file);
        if !parsed.diagnostics.is_empty() {
            app.output.data(&document::text(&file, &source, &parsed.diagnostics));
            app.output.data("");
        }
        let summary = document::summary(&parsed.diagnostics);
        app.output.data(&match &parsed.document {
            Some(document) => format!("ok: {}, {summary}", count(document.servers.len(), "server")),
            None => format!("refused: {summary}"),
        });
    }
    Ok(if parsed.document.is_some() { 0 } else { USAGE })
}
