//! Secrets: kept by name, never shown.

use std::io::{self, IsTerminal, Read};

use portcullis::{
    display::{escape, quote},
    gate::{Moved, SecretView},
    secret::{KeptIn, SECRET_BYTES, Secret, SecretKind},
};
use serde_json::json;
use zeroize::Zeroizing;

use crate::{
    app::App,
    error::CliError,
    render::{count, shell, table},
};

/// Keep secrets outside of documents; `${secret:NAME}` in `env`, `headers` and `auth` refers to them.
///
/// They lie in the keyring of your system, or in a file that only you can read where there is none.
#[derive(Debug, clap::Args)]
pub struct Args {
    #[command(subcommand)]
    action: Action,
}

#[derive(Debug, clap::Subcommand)]
enum Action {
    /// Keep a value: typed unseen, or from standard input where that is no terminal; never an argument.
    Set(Name),
    /// List the names, where each lies and which servers use it; never a value.
    List,
    /// Forget a value.
    Rm(Name),
    /// Move values that stand in a server's definition into the secret store.
    ///
    /// `${secret:NAME}` stands in their place then. As after every change of a definition the server
    /// is off and has to be trusted again.
    Move(Move),
}

#[derive(Debug, clap::Args)]
struct Name {
    /// The name in `${secret:NAME}`.
    name: String,
    /// It is the id of an input: the answer to `${input:NAME}`.
    #[arg(long)]
    input: bool,
}

#[derive(Debug, clap::Args)]
struct Move {
    /// The server.
    server: String,
    /// The fields, such as `env.TOKEN`; all that look like secrets without any.
    fields: Vec<String>,
}

impl Name {
    fn kind(&self) -> SecretKind {
        if self.input { SecretKind::Input } else { SecretKind::Secret }
    }
}

/// Runs the command.
///
/// # Errors
///
/// What the gate says; nothing to read a value from.
pub async fn run(args: &Args, app: &App) -> Result<u8, CliError> {
    match &args.action {
        Action::Set(name) => set(name, app).await,
        Action::List => list(app).await,
        Action::Rm(name) => remove(name, app).await,
        Action::Move(wanted) => move_values(wanted, app).await,
    }
}

async fn set(args: &Name, app: &App) -> Result<u8, CliError> {
    let value = match app.terminal {
        Some(terminal) => {
            let prompt = format!("Value of {} (not shown): ", quote(&args.name));
            let typed = terminal.ask_unseen(&prompt).await;
            typed.map_err(|error| CliError::blocked("no-answer", "the terminal gave no answer").because(&error))?
        }
        None if io::stdin().is_terminal() => {
            let message = "the value would be seen while it is typed, since standard error is no terminal";
            return Err(CliError::blocked("nobody-to-ask", message).help("give it on standard input"));
        }
        None => read_value()?,
    };
    let place = match args.kind() {
        SecretKind::Input => app.gate.set_input(&args.name, value).await?,
        _ => app.gate.set_secret(&args.name, value).await?,
    };
    if app.output.json {
        app.output.json(&json!({"name": args.name, "kind": args.kind().to_string(), "place": place.to_string()}));
    } else {
        app.output.data(&format!("{} is kept {}", quote(&args.name), kept(place)));
    }
    Ok(0)
}

fn kept(place: KeptIn) -> &'static str {
    match place {
        KeptIn::Keyring => "in the keyring",
        KeptIn::File => "in a file that only you can read: `portcullis paths` says which, and why",
        _ => "in memory",
    }
}

/// All of standard input without the line end that `echo` adds.
fn read_value() -> Result<Secret, CliError> {
    let mut text = Zeroizing::new(String::new());
    let limit = SECRET_BYTES as u64 + 2;
    io::stdin().lock().take(limit).read_to_string(&mut text).map_err(|error| {
        CliError::usage("unreadable", "the value cannot be read from standard input").because(&error)
    })?;
    let value = text.strip_suffix('\n').unwrap_or(&text);
    Ok(Secret::new(value.strip_suffix('\r').unwrap_or(value)))
}

async fn list(app: &App) -> Result<u8, CliError> {
    let secrets = app.gate.secrets().await?;
    if app.output.json {
        app.output.json(&secrets.iter().map(SecretView::to_json).collect::<Vec<_>>());
    } else if secrets.is_empty() {
        app.output.data("no secrets yet: portcullis secret set NAME");
    } else {
        let row = |secret: &SecretView| {
            let place = secret.place.map_or("not set".to_owned(), |place| place.to_string());
            vec![secret.name.clone(), secret.kind.to_string(), place, secret.used_by.join(", ")]
        };
        app.output
            .data(&table::text(&["NAME", "KIND", "LIES IN", "USED BY"], &secrets.iter().map(row).collect::<Vec<_>>()));
    }
    Ok(0)
}

async fn remove(args: &Name, app: &App) -> Result<u8, CliError> {
    let removed = app.gate.remove_secret(args.kind(), &args.name).await?;
    if app.output.json {
        app.output.json(&SecretView::to_json(&SecretView { place: None, ..removed }));
        return Ok(0);
    }
    app.output.data(&format!("{} is forgotten", quote(&removed.name)));
    if !removed.used_by.is_empty() {
        let servers: Vec<_> = removed.used_by.iter().map(|server| quote(server)).collect();
        let verb = if servers.len() == 1 { "uses it and does" } else { "use it and do" };
        app.output.warn(&format!("{} still {verb} not start without it", servers.join(", ")));
    }
    Ok(0)
}

async fn move_values(args: &Move, app: &App) -> Result<u8, CliError> {
    let moved = app.gate.move_secrets(&args.server, &args.fields).await?;
    if app.output.json {
        let one = |moved: &Moved| json!({"field": moved.field, "secret": moved.secret});
        app.output.json(&json!({"server": args.server, "moved": moved.iter().map(one).collect::<Vec<_>>()}));
        return Ok(0);
    }
    if moved.is_empty() {
        let others = app.gate.literals(&args.server).await?;
        app.output.data("nothing in it looks like a secret");
        if let Some(first) = others.first() {
            app.output.data(&format!(
                "{} could be moved by name: portcullis secret move {} {}",
                count(others.len(), "value"),
                shell(&args.server),
                shell(&first.field)
            ));
        }
        return Ok(0);
    }
    app.output.data(&report(&moved));
    app.output.data(&format!(
        "\nits definition changed, so it is off and no longer trusted: portcullis trust {}",
        shell(&args.server)
    ));
    Ok(0)
}

/// A line for each value that was moved.
pub(crate) fn report(moved: &[Moved]) -> String {
    let line = |moved: &Moved| format!("moved      {} → ${{secret:{}}}", escape(&moved.field), escape(&moved.secret));
    moved.iter().map(line).collect::<Vec<_>>().join("\n")
}

/// After servers were saved: values in them that look like secrets can be moved with one keystroke.
pub(crate) async fn offer(app: &App, servers: impl IntoIterator<Item = &String>) -> Result<(), CliError> {
    if app.output.json {
        return Ok(());
    }
    for server in servers {
        let found = app.gate.literals(server).await?.into_iter().filter(|literal| literal.secret);
        let fields: Vec<_> = found.map(|literal| escape(&literal.field).into_owned()).collect();
        if fields.is_empty() {
            continue;
        }
        app.output.note("");
        app.output.warn(&format!(
            "{} of {} would be safer outside of the definition: {}",
            count(fields.len(), "value"),
            quote(server),
            fields.join(", ")
        ));
        let Some(terminal) = app.terminal else {
            app.output.note(&format!("to move what looks like a secret: portcullis secret move {}", shell(server)));
            continue;
        };
        let yes = terminal.confirm("Move what looks like a secret into the secret store?").await;
        if yes.map_err(|error| CliError::blocked("no-answer", "the terminal gave no answer").because(&error))? {
            app.output.note(&report(&app.gate.move_secrets(server, &[]).await?));
        }
    }
    Ok(())
}
