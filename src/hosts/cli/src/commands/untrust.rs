//! Takes a consent back.

use portcullis::display::quote;

use crate::{app::App, error::CliError};

/// No longer trust a server: end it, and forget its tools and what was allowed.
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
    app.gate.untrust(&args.name).await?;
    app.output.say(&format!("{} is no longer trusted", quote(&args.name)));
    Ok(0)
}
