//! The trail of what was asked, decided and called.

use crate::{app::App, error::CliError, render::audit};

/// Print what was asked, decided and called; never arguments, never a secret.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// How many of the newest lines.
    #[arg(short = 'n', value_name = "N", default_value_t = 50)]
    pub lines: usize,
}

/// Runs the command.
///
/// # Errors
///
/// A trail that cannot be read.
pub async fn run(args: &Args, app: &App) -> Result<u8, CliError> {
    let lines = app.gate.trail(args.lines).await?;
    if app.output.json {
        app.output.json(&lines);
    } else if lines.is_empty() {
        app.output.data("nothing happened yet");
    } else {
        app.output.data(&audit::text(&lines));
    }
    Ok(0)
}
