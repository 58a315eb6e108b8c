//! A no to a call that waits at the endpoint, or to all.

use serde_json::{Value, json};

use super::approvals;
use crate::{app::App, error::CliError, remote::Remote};

/// Deny a call that waits at the endpoint.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// The id of the question, as `approvals` lists it.
    #[arg(required_unless_present = "all")]
    pub id: Option<String>,
    /// Deny all that wait.
    #[arg(long, conflicts_with = "id")]
    pub all: bool,
}

/// Runs the command.
///
/// # Errors
///
/// No such question, or no endpoint.
pub async fn run(args: &Args, app: &App) -> Result<u8, CliError> {
    if let Some(id) = &args.id {
        return approvals::answer(app, id, &json!("deny")).await;
    }
    let done = Remote::needed(app)?.run("approvals.deny-all", json!({})).await?;
    if app.output.json {
        app.output.data(&done);
    } else {
        let done: Value = serde_json::from_str(&done).unwrap_or_default();
        app.output.data(&format!("denied: {}", done["denied"]));
    }
    Ok(0)
}
