//! Removes one server.

use portcullis::display::quote;

use crate::{app::App, error::CliError};

/// Remove a server, with everything that was decided about it.
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
    app.gate.remove(&args.name).await?;
    app.output.say(&format!("{} is removed", quote(&args.name)));
    Ok(0)
}
