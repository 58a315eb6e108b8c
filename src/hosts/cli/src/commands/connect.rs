//! The endpoint in the file of another application.

pub(super) mod file;

use std::{env, ffi::OsStr, path::PathBuf};

use clap::builder::PossibleValuesParser;
use portcullis::{
    display::escape,
    secret::Secret,
    store::{TokenPurpose, endpoint_note, endpoint_token},
};
use portcullis_apps::connect::{self, CLIENTS, Client, EditError, Http, Reach, Token};
use serde_json::json;

use self::file::ClientFile;
use crate::{app::App, error::CliError, render::shell};

/// The name of the entry in a client's file.
pub(super) fn entry_name(group: Option<&str>) -> String {
    match group {
        Some(group) => format!("portcullis-{group}"),
        None => "portcullis".to_owned(),
    }
}

/// Show what connects an application to the endpoint, or write it into the application's own file.
///
/// Without `--write` no file of the application is changed: what is printed is what has to stand in it. A token is made
/// where there is none yet.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// The application.
    #[arg(value_name = "CLIENT", value_parser = clients())]
    pub client: String,
    /// Change the file of the application, after a copy of it was kept beside it.
    #[arg(long)]
    pub write: bool,
    /// Show it this group and nothing else.
    #[arg(long, value_name = "ID")]
    pub group: Option<String>,
    /// Let it start `portcullis serve --stdio` by itself instead of asking a running endpoint.
    #[arg(long)]
    pub stdio: bool,
    /// Leave the token out, and let the application take it from this variable of its environment.
    #[arg(long, value_name = "NAME", conflicts_with = "stdio")]
    pub token_from: Option<String>,
    /// This file instead of the one of the person, for example of one project.
    #[arg(long, value_name = "FILE")]
    pub file: Option<PathBuf>,
}

pub(super) fn clients() -> PossibleValuesParser {
    CLIENTS.iter().map(|client| client.app.id).collect::<Vec<_>>().into()
}

/// Runs the command.
///
/// # Errors
///
/// A file that cannot be read, changed or kept; no token.
pub async fn run(args: &Args, app: &App) -> Result<u8, CliError> {
    let client = client(&args.client)?;
    let name = entry_name(args.group.as_deref());
    let reach = reach(args, client, app).await?;
    let entry = client.entry(&reach);
    let snippet = client.snippet(&name, &entry).map_err(|error| CliError::internal(error.to_string()))?;
    let file = ClientFile::find(client, args.file.as_deref(), app)?;
    let before = file.text()?;
    let after = connect::put(client, &before, &name, &entry).map_err(|error| untouched(&file, &error))?;
    let changed = after.as_bytes() != before;
    let kept = if args.write && changed {
        // Without an entry it was not written into, whatever copy is there from long ago.
        let is_first = connect::entry(client, &before, &name).map_err(|error| untouched(&file, &error))?.is_none();
        file.connect(&before, after.as_bytes(), &name, is_first)?
    } else {
        None
    };
    let holds_token = matches!(&reach, Reach::Http(Http { token: Token::Text(_), .. }));
    if app.output.json {
        app.output.json(&json!({
            "client": client.app.id,
            "name": name,
            "file": file.path.display().to_string(),
            "snippet": snippet,
            "holdsToken": holds_token,
            "written": args.write,
            "changed": changed,
            "copy": kept.map(|path| path.display().to_string()),
        }));
        return Ok(0);
    }
    let path = escape(&file.path.display().to_string()).into_owned();
    match (args.write, changed) {
        (false, _) => {
            app.output.data(&snippet);
            app.output.note(&format!("this belongs into {path}"));
            let group = args.group.as_ref().map(|group| format!(" --group {}", shell(group))).unwrap_or_default();
            app.output.note(&format!("`portcullis connect {}{group} --write` puts it there", client.app.id));
        }
        (true, false) => app.output.data(&format!("{} is connected already: {path}", client.app.name)),
        (true, true) => {
            app.output.data(&format!("{} is connected: {path}", client.app.name));
            if let Some(kept) = kept {
                app.output.note(&format!("as it was before: {}", escape(&kept.display().to_string())));
            }
            app.output.note(client.afterwards);
        }
    }
    if holds_token {
        let it = if args.write { "the file" } else { "it" };
        app.output
            .note(&format!("{it} holds the token of the endpoint: whoever has it can ask for calls as this client"));
        if args.write && file.is_open_to_others() {
            app.output
                .note(&format!("warning: others of this machine may read it; `chmod 600 {}` ends that", shell(&path)));
        }
    }
    say_more(args, client, app, &reach);
    Ok(0)
}

pub(super) fn client(id: &str) -> Result<&'static Client, CliError> {
    connect::client(id).ok_or_else(|| CliError::internal("a client that nobody knows"))
}

/// Why the file stays as it is.
pub(super) fn untouched(file: &ClientFile, error: &EditError) -> CliError {
    let path = escape(&file.path.display().to_string()).into_owned();
    CliError::usage("client-file", format!("`{path}` is left as it is: {error}"))
        .help("correct it there, or put in by hand what `portcullis connect` prints for an empty file (`--file`)")
}

async fn reach(args: &Args, client: &Client, app: &App) -> Result<Reach, CliError> {
    if args.stdio || !client.speaks_http {
        if args.token_from.is_some() {
            return Err(CliError::usage(
                "no-token",
                format!("{} starts a command, which needs no token", client.app.name),
            )
            .help("leave `--token-from` out"));
        }
        return command(args, app).await;
    }
    let token = async || match (&args.token_from, &args.group) {
        (Some(name), _) => Ok(Token::Variable(name.clone())),
        (None, Some(group)) => {
            let found = app.operate("groups.token", json!({"group_id": group})).await?;
            Ok(Token::Text(Secret::new(found["token"].as_str().unwrap_or_default())))
        }
        (None, None) => {
            let folders = app.folders.as_ref().ok_or(portcullis_settings::FoldersError::NoHome)?;
            let token = endpoint_token(&folders.data, TokenPurpose::Mcp).map_err(portcullis::GateError::from)?;
            Ok::<_, CliError>(Token::Text(token))
        }
    };
    let url = match &args.group {
        Some(group) => {
            app.gate.group(group).await?;
            super::groups::url(app, group)
        }
        None => format!("http://127.0.0.1:{}/mcp", app.settings.mcp_port),
    };
    Ok(Reach::Http(Http { url, token: token().await? }))
}

/// This very program, and where it keeps things if that was said.
async fn command(args: &Args, app: &App) -> Result<Reach, CliError> {
    let program = env::current_exe().map_err(|error| CliError::internal("this program's own path").because(&error))?;
    let home = app.surroundings.environment.get(OsStr::new("PORTCULLIS_HOME"));
    let env = home.map(|home| ("PORTCULLIS_HOME".to_owned(), home.to_string_lossy().into_owned()));
    let mut words = vec!["serve".to_owned(), "--stdio".to_owned()];
    if let Some(group) = &args.group {
        app.gate.group(group).await?;
        words.extend(["--group".to_owned(), group.clone()]);
    }
    Ok(Reach::Command { program: program.display().to_string(), args: words, env: env.into_iter().collect() })
}

fn say_more(args: &Args, client: &Client, app: &App, reach: &Reach) {
    let Reach::Http(_) = reach else {
        if args.write {
            app.output.note(
                "it starts the gate by itself, or finds the one that runs; `portcullis approvals` shows its questions",
            );
        }
        return;
    };
    if let Some(name) = &args.token_from {
        let from = match (&args.group, &app.folders) {
            (Some(group), _) => format!("`portcullis groups token {}` prints", shell(group)),
            (None, Some(folders)) => {
                format!("stands in {}", escape(&TokenPurpose::Mcp.path(&folders.data).display().to_string()))
            }
            (None, None) => String::new(),
        };
        app.output.note(&format!("start {} with `{}` set to what {from}", client.app.name, escape(name)));
    }
    let running = app.folders.as_ref().and_then(|folders| endpoint_note(&folders.data));
    match running {
        None => app.output.note("`portcullis serve` has to run for it"),
        Some(note) if note.port != app.settings.mcp_port => app.output.note(&format!(
            "the endpoint that runs now listens at port {}, not at {} (setting `mcpPort`)",
            note.port, app.settings.mcp_port
        )),
        Some(_) => {}
    }
}
