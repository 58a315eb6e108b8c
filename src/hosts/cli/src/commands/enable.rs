//! Switches a server on.

use portcullis::display::quote;

use crate::{app::App, error::CliError};

/// Switch a trusted server on, once its tools are known; it starts with the first call.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// The server.
    pub name: String,
}

/// Runs the command.
///
/// # Errors
///
/// What the gate says.
pub async fn run(args: &Args, app: &App) -> Result<u8, CliError> {
    app.gate.enable(&args.name).await?;
    app.output.say(&format!("{} is on", quote(&args.name)));
    Ok(0)
}
