//! All servers.

use portcullis::gate::ServerView;

use crate::{app::App, error::CliError, render::table};

/// List all servers; start nothing.
#[derive(Debug, clap::Args)]
pub struct Args {}

/// Runs the command.
///
/// # Errors
///
/// What the store says.
pub async fn run(_: &Args, app: &App) -> Result<u8, CliError> {
    let servers = app.gate.servers().await?;
    for server in servers.iter().filter(|server| server.distrusted && !app.output.json) {
        let name = portcullis::display::quote(&server.name);
        app.output.warn(&format!("{name} was changed by somebody else, so it is no longer trusted"));
    }
    if app.output.json {
        app.output.json(&servers.iter().map(ServerView::to_json).collect::<Vec<_>>());
    } else if servers.is_empty() {
        app.output.data("no servers yet: portcullis import FILE, portcullis add NAME -- COMMAND, or portcullis demo");
    } else {
        let rows: Vec<_> = servers.iter().map(row).collect();
        app.output.data(&table::text(&["NAME", "TYPE", "TRUSTED", "ON", "TOOLS ON", "MODE"], &rows));
    }
    Ok(0)
}

fn row(server: &ServerView) -> Vec<String> {
    let yes = |is| if is { "yes" } else { "no" }.to_owned();
    vec![
        server.name.clone(),
        server.kind.clone(),
        yes(server.trusted),
        yes(server.enabled),
        server.tools.map_or("not known".to_owned(), |(on, known)| format!("{on} of {known}")),
        super::mode::word(server.mode),
    ]
}
