//! Takes back what was always allowed.

use crate::{app::App, error::CliError};

/// Take back what you always allowed.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Its id, as `grants` prints it.
    pub id: String,
}

/// Runs the command.
///
/// # Errors
///
/// What the gate says.
pub async fn run(args: &Args, app: &App) -> Result<u8, CliError> {
    app.gate.revoke(&args.id).await?;
    app.output.say("taken back; you are asked again");
    Ok(0)
}
