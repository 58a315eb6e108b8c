//! Switches a server off.

use portcullis::display::quote;

use crate::{app::App, error::CliError};

/// Switch a server off; what was decided about it stays.
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
    app.gate.disable(&args.name).await?;
    app.output.say(&format!("{} is off", quote(&args.name)));
    Ok(0)
}
