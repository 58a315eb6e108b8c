//! Whether a server answers.

use crate::{app::App, error::CliError, remote};

/// Ask a server whether it is there; started first, if it does not run.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// The server.
    pub server: String,
}

/// Runs the command.
///
/// # Errors
///
/// What the gate says.
pub async fn run(args: &Args, app: &App) -> Result<u8, CliError> {
    let took = remote::ping(app, &args.server).await?;
    if app.output.json {
        app.output.json(
            &serde_json::json!({"answered": true, "microseconds": u64::try_from(took.as_micros()).unwrap_or(u64::MAX)}),
        );
    } else {
        app.output.data(&format!("it answered in {:.1} ms", took.as_secs_f64() * 1e3));
    }
    Ok(0)
}
