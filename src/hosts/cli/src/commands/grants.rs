//! What is always allowed.

use serde_json::json;

use crate::{app::App, error::CliError, render::table};

/// List what you always allow.
#[derive(Debug, clap::Args)]
pub struct Args {}

/// Runs the command.
///
/// # Errors
///
/// What the store says.
pub async fn run(_: &Args, app: &App) -> Result<u8, CliError> {
    let grants = app.gate.grants().await?;
    if app.output.json {
        let grant = |(server, grant): &(String, portcullis::store::Grant)| json!({"id": grant.id, "server": server, "tool": grant.tool, "caller": grant.caller, "at": grant.at});
        app.output.json(&grants.iter().map(grant).collect::<Vec<_>>());
    } else if grants.is_empty() {
        app.output.data("nothing is always allowed");
    } else {
        let row = |(server, grant): &(String, portcullis::store::Grant)| {
            let caller = grant.caller.clone().unwrap_or_else(|| "anybody".to_owned());
            vec![grant.id.clone(), server.clone(), grant.tool.clone(), caller, grant.at.clone()]
        };
        let rows: Vec<_> = grants.iter().map(row).collect();
        app.output.data(&table::text(&["ID", "SERVER", "TOOL", "CALLER", "SINCE"], &rows));
        app.output.data("\ntake one back: portcullis revoke ID");
    }
    Ok(0)
}
