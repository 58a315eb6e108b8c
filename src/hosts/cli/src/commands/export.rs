//! Writes all servers as one document.

use clap::ValueEnum;
use portcullis::document::{ExportFormat, ExportSecrets};

use crate::{app::App, error::CliError};

/// Print all servers as one document; values of secrets are left out.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// The host it is for.
    #[arg(long = "as", value_name = "HOST")]
    pub format: Option<Format>,
    /// Write the values of `env`, `headers` and `auth` as well.
    #[arg(long)]
    pub with_secrets: bool,
}

/// Another host's spelling.
#[derive(Debug, Clone, Copy, ValueEnum)]
pub enum Format {
    /// VS Code's `servers`.
    Vscode,
}

/// Runs the command.
///
/// # Errors
///
/// What the store says.
pub async fn run(args: &Args, app: &App) -> Result<u8, CliError> {
    let format = match args.format {
        Some(Format::Vscode) => ExportFormat::VsCode,
        None => ExportFormat::Canonical,
    };
    let secrets = if args.with_secrets { ExportSecrets::Reveal } else { ExportSecrets::Keep };
    let text = app.gate.export(format, secrets).await?;
    // To a file or a pipe it goes byte by byte: what is put back has to be the same.
    if app.output.to_terminal() {
        app.output.data(&portcullis::display::escape_json(&text));
    } else {
        app.output.raw(text.as_bytes());
    }
    Ok(0)
}
