//! The whole way, on a server that is built into the program.

use portcullis::{
    approval::{Arguments, Call},
    document::ParseOptions,
    gate::Choice,
    store::How,
};

use super::trust;
use crate::{app::App, error::CliError, render};

/// Go the whole way once, from a document to a call, on a built-in server; keep nothing.
#[derive(Debug, clap::Args)]
pub struct Args {}

const SERVER: &str = "notes";

/// Runs the command.
///
/// # Errors
///
/// What the gate says where it should not.
pub async fn run(_: &Args, app: &App) -> Result<u8, CliError> {
    let output = app.output;
    let text = document("notes")?;

    heading(app, 1, "A document, as people write them: with a comment and a comma too many");
    output.say(&indent(&text));
    let parsed = app.gate.check(text.as_bytes(), &ParseOptions::default());
    output.say(&format!("It reads well: {}.", render::document::summary(&parsed.diagnostics)));
    output.say(&render::document::short(&parsed.diagnostics));
    save(app, parsed.document).await?;
    output.say("It is saved. Nothing has been started, and nothing will be until you say so.");

    heading(app, 2, "What it would do, before it does anything");
    let trusted = consent(app).await?;

    heading(app, 3, "Its tools");
    if trusted {
        app.gate.refresh(SERVER).await?;
        let (views, refused) = app.gate.tools(SERVER).await?;
        output.say(&render::tools::text(&views, &refused));
        app.gate.select(SERVER, Some(Choice::All), None).await?;
        app.gate.enable(SERVER).await?;
        output.say("It was started just now, as a program of its own. Both tools are switched on.");
    } else {
        refused(app, app.gate.refresh(SERVER).await.err());
    }

    heading(app, 4, "A model wants to call one");
    call(app).await?;

    heading(app, 5, "Somebody changes one argument of the definition");
    let changed = document("..")?;
    output.say(&indent(changed.lines().find(|line| line.contains("--folder")).unwrap_or_default().trim()));
    save(app, app.gate.check(changed.as_bytes(), &ParseOptions::default()).document).await?;
    let server = app.gate.server(SERVER).await?;
    let yes = |is| if is { "yes" } else { "no" };
    output.say(&format!(
        "trusted: {}, on: {}, tools: {}. Whatever was decided about the old one is gone.",
        yes(server.trusted),
        yes(server.enabled),
        server.tools.map_or("not known".to_owned(), |(on, known)| format!("{on} of {known}"))
    ));
    refused(app, app.gate.call(note()?).await.err());

    heading(app, 6, "What was written down");
    output.say(&render::audit::text(&app.trail.lines()));
    output.say("This was a demo: nothing was kept. Your turn: portcullis import FILE");
    if output.json {
        output.json(&app.trail.lines());
    }
    Ok(0)
}

fn heading(app: &App, number: usize, text: &str) {
    app.output.say(&format!("\n{number}. {text}\n\n"));
}

fn indent(text: &str) -> String {
    text.lines().map(|line| format!("    {line}")).collect::<Vec<_>>().join("\n")
}

/// The document of the demo; its server is this very program.
fn document(folder: &str) -> Result<String, CliError> {
    let program = std::env::current_exe()
        .map_err(|error| CliError::internal("this program cannot find itself").because(&error))?;
    let program = serde_json::Value::from(program.display().to_string());
    let folder = serde_json::Value::from(folder);
    Ok(format!(
        r#"{{
  // my servers
  "mcpServers": {{
    "{SERVER}": {{
      "command": {program},
      "args": ["demo-server", "--folder", {folder}],
      "description": "keeps notes",
    }},
  }},
}}
"#
    ))
}

async fn save(app: &App, document: Option<portcullis::document::Document>) -> Result<(), CliError> {
    let document = document.ok_or_else(|| CliError::internal("the document of the demo was refused"))?;
    app.gate.import(document, How::Merge, None).await?;
    Ok(())
}

async fn consent(app: &App) -> Result<bool, CliError> {
    let question = app.gate.trust_question(SERVER).await?;
    let view = render::trust::text(&question);
    let Some(terminal) = app.terminal else {
        app.output.say(&view);
        app.output.say("\nTrust this server? [y/N] y   (answered by the demo, which trusts its own server)");
        app.gate.trust(question).await?;
        return Ok(true);
    };
    app.output.note(&view);
    app.output.note("");
    let trusted = trust::ask(terminal, app, question).await?;
    if !trusted {
        app.output.say("You said no, so it is not trusted and cannot be started. The demo goes on to show that.");
    }
    Ok(trusted)
}

fn note() -> Result<Call, CliError> {
    let arguments = Arguments::parse(r#"{"text": "the gate is down"}"#.to_owned())
        .map_err(|error| CliError::internal(error.to_string()))?;
    Ok(Call { server: SERVER.to_owned(), tool: "add_note".to_owned(), arguments, caller: "a model".to_owned() })
}

async fn call(app: &App) -> Result<(), CliError> {
    match app.gate.call(note()?).await {
        Ok(result) => {
            let text = render::result::text(result.get(), true);
            app.output.say(&format!("\nThe very bytes you saw were sent. The server answers: {text}"));
        }
        Err(error) => refused(app, Some(error)),
    }
    Ok(())
}

/// A failure that is part of the story.
fn refused(app: &App, error: Option<portcullis::GateError>) {
    if let Some(error) = error.map(CliError::from) {
        let help = error.help.map(|help| format!("\n    help: {help}")).unwrap_or_default();
        app.output.say(&format!("    error: {}{help}", error.message));
        app.output.say("Nothing was sent.");
    }
}
