//! Groups of projects and servers, each with an endpoint of its own.

use std::path::PathBuf;

use portcullis::display::{escape, quote};
use serde_json::{Value, json};

use crate::{app::App, error::CliError, render::table};

/// Put projects and servers together, for agents that are to see nothing else.
///
/// A group has an address and a token of its own at the endpoint; whatever is not in it does not exist there.
#[derive(Debug, clap::Args)]
pub struct Args {
    #[command(subcommand)]
    action: Action,
}

#[derive(Debug, clap::Subcommand)]
enum Action {
    /// Make a group.
    Create {
        /// What it is to be called.
        name: String,
    },
    /// Put projects and servers into a group.
    Add(Members),
    /// Take projects and servers out of a group, or remove the whole group where none are named.
    Remove(Members),
    /// List the groups.
    List,
    /// Name the Markdown file with the rules for the projects of a group.
    Rules {
        /// The group's id.
        id: String,
        /// The file; none without it.
        file: Option<PathBuf>,
    },
    /// Print the address of a group's endpoint.
    Url {
        /// The group's id.
        id: String,
    },
    /// Print the token that opens it; whoever has it is let in.
    Token {
        /// The group's id.
        id: String,
        /// Make a new one; the old one opens nothing any more.
        #[arg(long)]
        rotate: bool,
    },
}

#[derive(Debug, clap::Args)]
struct Members {
    /// The group's id.
    id: String,
    /// Ids of projects.
    #[arg(long = "project", value_name = "ID", value_delimiter = ',')]
    projects: Vec<String>,
    /// Names of servers.
    #[arg(long = "server", value_name = "NAME")]
    servers: Vec<String>,
}

impl Members {
    fn names_any(&self) -> bool {
        !self.projects.is_empty() || !self.servers.is_empty()
    }

    fn input(&self) -> Value {
        json!({"group_id": self.id, "projects": self.projects, "servers": self.servers})
    }
}

/// Runs the command.
///
/// # Errors
///
/// An unknown group, project or server.
pub async fn run(args: &Args, app: &App) -> Result<u8, CliError> {
    match &args.action {
        Action::Create { name } => {
            let group = app.operate("groups.create", json!({"name": name})).await?;
            print(app, &group, &format!("the group {} has the id {}", quote(name), text(&group, "id")));
        }
        Action::Add(members) => {
            if !members.names_any() {
                return Err(CliError::usage("nothing", "nothing is named that is to be put into the group")
                    .help("name something with `--project ID` or `--server NAME`"));
            }
            let group = app.operate("groups.add", members.input()).await?;
            print(app, &group, &holds(&group));
        }
        Action::Remove(members) if members.names_any() => {
            let group = app.operate("groups.take", members.input()).await?;
            print(app, &group, &holds(&group));
        }
        Action::Remove(members) => {
            let group = app.operate("groups.remove", json!({"group_id": members.id})).await?;
            print(app, &group, &format!("{} is removed; its projects and servers stay", text(&group, "id")));
        }
        Action::List => list(app, &app.operate("groups.list", json!({})).await?),
        Action::Rules { id, file } => {
            let file = file.as_deref().map(absolute).transpose()?;
            let group = app.operate("groups.rules", json!({"group_id": id, "file": file})).await?;
            let said = match &file {
                Some(file) => format!("the rules of {} are those in {}", text(&group, "id"), escape(file)),
                None => format!("{} has no rules", text(&group, "id")),
            };
            print(app, &group, &said);
        }
        Action::Url { id } => {
            app.operate("groups.show", json!({"group_id": id})).await?;
            let url = url(app, id);
            print(app, &json!({"id": id, "url": url}), &url);
        }
        Action::Token { id, rotate } => {
            let found = app.operate("groups.token", json!({"group_id": id, "rotate": rotate})).await?;
            let token = text(&found, "token");
            print(app, &json!({"id": id, "url": url(app, id), "token": token}), &token);
        }
    }
    Ok(0)
}

/// The address of a group's endpoint.
pub(super) fn url(app: &App, id: &str) -> String {
    format!("http://127.0.0.1:{}/groups/{id}/mcp", app.settings.mcp_port)
}

fn absolute(file: &std::path::Path) -> Result<String, CliError> {
    let real = std::fs::canonicalize(file).map_err(|error| {
        CliError::usage("unreadable", format!("`{}` cannot be read", escape(&file.display().to_string())))
            .because(&error)
    })?;
    Ok(real.display().to_string())
}

fn print(app: &App, value: &Value, words: &str) {
    if app.output.json {
        app.output.json(value);
    } else {
        app.output.data(words);
    }
}

fn text(value: &Value, name: &str) -> String {
    escape(value[name].as_str().unwrap_or_default()).into_owned()
}

fn names(value: &Value, name: &str) -> String {
    let names: Vec<_> = value[name].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
    if names.is_empty() { "-".to_owned() } else { escape(&names.join(", ")).into_owned() }
}

fn holds(group: &Value) -> String {
    format!(
        "{} holds the projects {} and the servers {}",
        text(group, "id"),
        names(group, "projects"),
        names(group, "servers")
    )
}

fn list(app: &App, groups: &Value) {
    let each = groups.as_array().map(Vec::as_slice).unwrap_or_default();
    if app.output.json {
        app.output.json(groups);
    } else if each.is_empty() {
        app.output.data("no groups yet: portcullis groups create NAME");
    } else {
        let row = |group: &Value| {
            let rules = group["rules"].as_str().unwrap_or("-");
            vec![text(group, "id"), names(group, "projects"), names(group, "servers"), escape(rules).into_owned()]
        };
        let rows: Vec<_> = each.iter().map(row).collect();
        app.output.data(&table::text(&["ID", "PROJECTS", "SERVERS", "RULES"], &rows));
    }
}
