//! A yes to a call that waits at the endpoint.

use serde_json::json;

use super::approvals;
use crate::{app::App, error::CliError};

/// Allow a call that waits at the endpoint.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// The id of the question, as `approvals` lists it.
    pub id: String,
    /// Allow this tool until the endpoint ends.
    #[arg(long, conflicts_with_all = ["always", "always_for_caller"])]
    pub until_host_ends: bool,
    /// Allow this tool as it is defined now, from now on.
    #[arg(long, conflicts_with = "always_for_caller")]
    pub always: bool,
    /// The same for the client that asks alone.
    #[arg(long)]
    pub always_for_caller: bool,
}

/// Runs the command.
///
/// # Errors
///
/// No such question, or no endpoint.
pub async fn run(args: &Args, app: &App) -> Result<u8, CliError> {
    let answer = match args {
        Args { until_host_ends: true, .. } => "until-host-ends",
        Args { always: true, .. } => "always",
        Args { always_for_caller: true, .. } => "always-for-caller",
        _ => "once",
    };
    approvals::answer(app, &args.id, &json!(answer)).await
}
