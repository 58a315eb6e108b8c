//! Folders as context for agents.

use std::path::PathBuf;

use portcullis::display::{escape, escape_lines, quote};
use serde_json::{Value, json};

use crate::{
    app::App,
    error::CliError,
    render::{count, shell, table},
};

/// Register folders as projects, and look after their blueprints.
///
/// Agents behind the endpoint see registered projects alone: their manifests, their text files without secrets,
/// their task cards. Nothing here deletes a file of a project.
#[derive(Debug, clap::Args)]
pub struct Args {
    #[command(subcommand)]
    action: Action,
}

#[derive(Debug, clap::Subcommand)]
enum Action {
    /// Look for projects that are not registered, below the setting `projectRoots` or these folders.
    Scan {
        /// Folders instead of those of the setting.
        roots: Vec<PathBuf>,
    },
    /// Register a folder.
    Register {
        /// The folder.
        folder: PathBuf,
        /// What it is to be called, instead of the name of the folder.
        #[arg(long)]
        name: Option<String>,
    },
    /// Forget a project; its folder stays as it is.
    Unregister(Project),
    /// List the registered projects.
    List,
    /// Print the manifest of a project's blueprint.
    Blueprint(Project),
    /// Print a text file of a project, as an agent gets it.
    File {
        /// The project's id.
        id: String,
        /// The file, from the project's folder.
        path: String,
    },
    /// Count the task cards of a blueprint, and say what does not fit.
    Status(Project),
    /// Print what to ask an agent for, to write or complete a blueprint.
    Prompt(Project),
    /// Write the rules of a project's groups into its blueprint.
    Sync(Project),
}

#[derive(Debug, clap::Args)]
struct Project {
    /// The project's id.
    id: String,
}

/// Runs the command.
///
/// # Errors
///
/// An unknown project, a folder or a file that cannot be read or given out.
pub async fn run(args: &Args, app: &App) -> Result<u8, CliError> {
    let one = |project: &Project| json!({"project_id": project.id});
    match &args.action {
        Action::Scan { roots } => scan(app, roots).await,
        Action::Register { folder, name } => {
            let path = folder.display().to_string();
            let done = app.operate("projects.register", json!({"path": path, "name": name})).await?;
            show(app, &done, |done| {
                let (id, path) = (text(done, "id"), text(done, "path"));
                match done["new"] == true {
                    true => format!("{} is registered as {id}: {path}", quote(&text(done, "name"))),
                    false => format!("it is registered already, as {id}: {path}"),
                }
            })
        }
        Action::Unregister(project) => {
            let gone = app.operate("projects.unregister", one(project)).await?;
            show(app, &gone, |gone| {
                format!("{} is forgotten; its folder stays: {}", text(gone, "id"), text(gone, "path"))
            })
        }
        Action::List => {
            let all = app.operate("projects.list", json!({})).await?;
            show(app, &all, listed)
        }
        Action::Blueprint(project) => {
            let found = app.operate("projects.blueprint", one(project)).await?;
            show(app, &found, |found| lines(found, "text"))
        }
        Action::File { id, path } => {
            let input = json!({"project_id": id, "relative_path": path});
            let found = app.operate("projects.file", input).await?;
            show(app, &found, |found| lines(found, "text"))
        }
        Action::Status(project) => {
            let found = app.operate("projects.status", one(project)).await?;
            show(app, &found, status)
        }
        Action::Prompt(project) => {
            let found = app.operate("projects.prompt", one(project)).await?;
            show(app, &found, |found| lines(found, "prompt"))
        }
        Action::Sync(project) => {
            let done = app.operate("projects.sync", one(project)).await?;
            show(app, &done, |done| {
                let each = done["groups"].as_array().into_iter().flatten();
                let line = |group: &Value| format!("{:<9}  rules of {}", text(group, "rules"), text(group, "group"));
                each.map(line).collect::<Vec<_>>().join("\n")
            })
        }
    }
}

async fn scan(app: &App, roots: &[PathBuf]) -> Result<u8, CliError> {
    let found = match roots {
        [] => app.operate("projects.scan", json!({})).await?,
        roots => app.operate_below(roots, "projects.scan", json!({})).await?,
    };
    for root in found["unreadable"].as_array().into_iter().flatten() {
        app.output.warn(&format!("`{}` cannot be read", escape(root.as_str().unwrap_or_default())));
    }
    show(app, &found, |found| {
        let projects = found["projects"].as_array().map(Vec::as_slice).unwrap_or_default();
        let Some(first) = projects.first() else { return "no project that is not registered".to_owned() };
        let row = |project: &Value| vec![text(project, "name"), stack(project), text(project, "path")];
        let rows: Vec<_> = projects.iter().map(row).collect();
        let more = if found["cut"] == true { "\nthere may be more: not everything was looked at" } else { "" };
        format!(
            "{}\n{} not registered: portcullis projects register {}{more}",
            table::text(&["NAME", "MADE OF", "FOLDER"], &rows),
            count(projects.len(), "project"),
            shell(first["path"].as_str().unwrap_or_default())
        )
    })
}

/// JSON, or what `words` makes of it.
fn show(app: &App, value: &Value, words: impl FnOnce(&Value) -> String) -> Result<u8, CliError> {
    if app.output.json {
        app.output.json(value);
    } else {
        app.output.data(&words(value));
    }
    Ok(0)
}

fn text(value: &Value, name: &str) -> String {
    escape(value[name].as_str().unwrap_or_default()).into_owned()
}

fn lines(value: &Value, name: &str) -> String {
    escape_lines(value[name].as_str().unwrap_or_default()).into_owned()
}

fn stack(project: &Value) -> String {
    let names = project["techStack"].as_array().into_iter().flatten().filter_map(Value::as_str);
    escape(&names.collect::<Vec<_>>().join(", ")).into_owned()
}

fn listed(all: &Value) -> String {
    let projects = all.as_array().map(Vec::as_slice).unwrap_or_default();
    if projects.is_empty() {
        return "no projects yet: portcullis projects register FOLDER".to_owned();
    }
    let row = |project: &Value| {
        let made_of = if project["available"] == true { stack(project) } else { "(folder not there)".to_owned() };
        vec![text(project, "id"), text(project, "platform"), made_of, text(project, "path")]
    };
    table::text(&["ID", "PLATFORM", "MADE OF", "FOLDER"], &projects.iter().map(row).collect::<Vec<_>>())
}

fn status(found: &Value) -> String {
    const STATES: [&str; 6] = ["todo", "doing", "done", "blocked", "concept", "unknown"];
    let counts = |of: &Value| {
        let number = |state: &str| of["byStatus"][state].as_u64().unwrap_or_default().to_string();
        STATES.map(number)
    };
    let modules = found["modules"].as_array().into_iter().flatten();
    let mut rows: Vec<Vec<String>> =
        modules.map(|module| [vec![text(module, "name")], counts(module).to_vec()].concat()).collect();
    rows.push([vec!["altogether".to_owned()], counts(found).to_vec()].concat());
    let head = ["MODULE", "TODO", "DOING", "DONE", "BLOCKED", "CONCEPT", "UNKNOWN"];
    let mut said = table::text(&head, &rows);
    let problems = found["problems"].as_array().map(Vec::as_slice).unwrap_or_default();
    for problem in problems {
        let (file, line) = (text(problem, "file"), problem["line"].as_u64().unwrap_or_default());
        said.push_str(&format!("\n{file}:{line}: {}\n  {}", text(problem, "message"), text(problem, "help")));
    }
    let end = match problems.len() {
        0 => "nothing that does not fit".to_owned(),
        number => format!("{} that {} not fit", count(number, "thing"), if number == 1 { "does" } else { "do" }),
    };
    format!("{said}\n{end}")
}
