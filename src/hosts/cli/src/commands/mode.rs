//! How the calls of a server are decided.

use clap::ValueEnum;
use portcullis::{display::quote, store};

use crate::{app::App, error::CliError};

/// Choose how calls of a trusted server are decided.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// The server.
    pub name: String,
    /// The way.
    pub mode: Mode,
}

/// A way to decide calls.
#[derive(Debug, Clone, Copy, ValueEnum)]
pub enum Mode {
    /// You are asked each time.
    Ask,
    /// Tools that say they change nothing are called without a question: you believe the server.
    AllowReadOnly,
    /// No question.
    Allow,
    /// No call.
    Deny,
}

/// Runs the command.
///
/// # Errors
///
/// What the gate says.
pub async fn run(args: &Args, app: &App) -> Result<u8, CliError> {
    let mode = match args.mode {
        Mode::Ask => store::Mode::Ask,
        Mode::AllowReadOnly => store::Mode::AllowReadOnly,
        Mode::Allow => store::Mode::Allow,
        Mode::Deny => store::Mode::Deny,
    };
    app.gate.set_mode(&args.name, mode).await?;
    app.output.say(&format!("calls of {}: {}", quote(&args.name), word(mode)));
    Ok(0)
}

/// The mode as it is written.
pub(crate) fn word(mode: store::Mode) -> String {
    serde_json::to_value(mode).ok().and_then(|mode| mode.as_str().map(str::to_owned)).unwrap_or_default()
}
