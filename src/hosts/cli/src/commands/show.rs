//! One server.

use portcullis::{
    GateError,
    display::{escape, quote},
    gate::ServerView,
};
use serde_json::Value;

use crate::{
    app::App,
    error::CliError,
    render::{settings, tools},
};

/// Show one server and its tools, with the names of its secrets and no value; start nothing.
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
    let server = app.gate.server(&args.name).await?;
    let known = match app.gate.tools(&args.name).await {
        Ok(known) => Some(known),
        Err(GateError::NotDiscovered { .. }) => None,
        Err(error) => return Err(error.into()),
    };
    if app.output.json {
        let tools: Vec<_> = known.iter().flat_map(|(tools, _)| tools).collect();
        // Schemas are text that must not be read and written anew, so the two parts are joined as text.
        let view = server;
        let server = view.to_json().to_string();
        let tools = serde_json::to_string(&tools).unwrap_or_default();
        let settings = settings::json(&settings::of(&view, &app.settings));
        let text =
            format!("{},\"settings\":{settings},\"tools\":{tools}}}", server.strip_suffix('}').unwrap_or(&server));
        app.output.data(&portcullis::display::escape_json(&text));
        return Ok(0);
    }
    app.output.data(&text(&server));
    app.output.data(&format!("\nsettings\n{}", settings::text(&settings::of(&server, &app.settings))));
    match known {
        Some((views, refused)) => app.output.data(&format!("\ntools\n{}", tools::text(&views, &refused))),
        None => app.output.data("\ntools are not known yet"),
    }
    Ok(0)
}

fn text(server: &ServerView) -> String {
    let mut lines = vec![format!("{} ({}, id {})", quote(&server.name), escape(&server.kind), escape(&server.id))];
    for (name, value) in &server.fields {
        match value {
            Value::Array(items) => {
                lines.push(format!("  {:<12} {}", escape(name), items.len()));
                let digits = items.len().to_string().len();
                let item =
                    |(at, item): (usize, &Value)| format!("  {:>12} {}", format!("{:>digits$}.", at + 1), plain(item));
                lines.extend(items.iter().enumerate().map(item));
            }
            Value::Null => lines.push(format!("  {:<12} (not shown)", escape(name))),
            _ => lines.push(format!("  {:<12} {}", escape(name), plain(value))),
        }
    }
    let yes = |is| if is { "yes" } else { "no" };
    lines.push(format!("  {:<12} {}", "trusted", yes(server.trusted)));
    lines.push(format!("  {:<12} {}", "on", yes(server.enabled)));
    lines.push(format!("  {:<12} {}", "mode", super::mode::word(server.mode)));
    lines.push(format!("  {:<12} {}", "fingerprint", server.fingerprint));
    lines.push(format!("  {:<12} {}", "reads", server.reads.len()));
    lines.extend(server.reads.iter().map(|read| format!("  {:>12} {}", "-", quote(read))));
    lines.join("\n")
}

fn plain(value: &Value) -> String {
    match value {
        Value::String(text) => quote(text),
        other => portcullis::display::escape_json(&other.to_string()).into_owned(),
    }
}
