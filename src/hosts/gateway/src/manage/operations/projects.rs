//! Projects: as context for agents, and for the person who looks after them.

use std::path::{Path, PathBuf};

use portcullis::store::Project;
use portcullis_projects::{
    FILE_BYTES, Folder, Platform, ProjectError, SCAN_DEPTH,
    blueprint::{self, Rules},
    describe, scan,
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::{ApiError, Nothing, text};
use crate::routes::Gateway;

operations! {
    "projects.list" Read Get "/projects" "projects" "All registered projects" Nothing => |gateway, _| {
        let projects = gateway.0.gate.projects().await?;
        text(&described(&gateway, projects).await?)
    };
    "projects.register" Dangerous Post "/projects" "projects" "Registers a folder as a project"
    Registers => |gateway, Registers { path, name }| {
        let (path, called) = blocking(move || folder_of(&path)).await?;
        let (project, new) = gateway.0.gate.register_project(&path, name.as_deref().unwrap_or(&called)).await?;
        text(&json!({"id": project.id, "name": project.name, "path": project.path, "new": new}))
    };
    "projects.scan" Read Get "/projects/unregistered" "projects" as "scan_unregistered_projects"
    "Finds projects below your roots that are not registered (projects scan)" Nothing => |gateway, _| {
        let registered = gateway.0.gate.projects().await?.into_iter().map(|project| PathBuf::from(project.path)).collect::<Vec<_>>();
        let roots = gateway.0.projects.roots.clone();
        if roots.is_empty() {
            return Err(ApiError {
                help: Some("name folders in the setting `projectRoots`, for example `--set projectRoots=~/src`".to_owned()),
                ..ApiError::usage("no folder is named below which projects are looked for")
            });
        }
        text(&blocking(move || Ok::<_, ApiError>(scan(&roots, &registered, SCAN_DEPTH))).await?)
    };
    "projects.unregister" Write Delete "/projects/{project_id}" "projects" as "unregister_project"
    "Forgets a registered project; its folder stays as it is (projects unregister)"
    OneProject => |gateway, OneProject { group_id, project_id }| {
        let gone = gateway.0.gate.unregister_project(&project_id, group_id.as_deref()).await?;
        text(&json!({"id": gone.id, "name": gone.name, "path": gone.path, "folder": "left as it is"}))
    };
    "projects.of-group" Read Get "/groups/{group_id}/projects" "groups" as "list_group_projects"
    "The projects of a group: id, name, path, platform, tech stack (groups show)"
    OfGroup => |gateway, OfGroup { group_id }| {
        let gate = &gateway.0.gate;
        let group = gate.group(&group_id).await?;
        let projects = gate.projects().await?.into_iter().filter(|project| group.projects.contains(&project.id));
        text(&described(&gateway, projects.collect()).await?)
    };
    "projects.blueprint" Read Get "/projects/{project_id}/blueprint" "projects" as "get_project_blueprint"
    "The manifest of a project's blueprint (projects blueprint)"
    OneProject => |gateway, OneProject { group_id, project_id }| {
        let project = gateway.0.gate.project(&project_id, group_id.as_deref()).await?;
        let (manifest, written) = blocking(move || blueprint::manifest(&folder(&project)?)).await?;
        text(&json!({"manifest": manifest, "text": written}))
    };
    "projects.file" Read Get "/projects/{project_id}/file" "projects" as "get_project_file"
    "A text file of a project, up to 262,144 bytes; secrets are refused (projects file)"
    OneFile => |gateway, OneFile { group_id, project_id, relative_path }| {
        let project = gateway.0.gate.project(&project_id, group_id.as_deref()).await?;
        let allowed = gateway.0.projects.allowed.clone();
        let path = relative_path.clone();
        let contents = blocking(move || folder(&project)?.read(&path, &allowed)).await?;
        debug_assert!(contents.len() as u64 <= FILE_BYTES);
        text(&json!({"path": relative_path, "text": contents}))
    };
    "projects.status" Read Get "/projects/{project_id}/status" "projects" as "get_blueprint_status"
    "Counts a blueprint's cards and reports what does not fit (projects status)"
    OneProject => |gateway, OneProject { group_id, project_id }| {
        let project = gateway.0.gate.project(&project_id, group_id.as_deref()).await?;
        let rules = rules(&gateway, &project, group_id.as_deref()).await?;
        text(&blocking(move || blueprint::status(&folder(&project)?, &rules)).await?)
    };
    "projects.prompt" Read Get "/projects/{project_id}/prompt" "projects" as "generate_blueprint_prompt"
    "The prompt to write or complete a project's blueprint (projects prompt)"
    OneProject => |gateway, OneProject { group_id, project_id }| {
        let project = gateway.0.gate.project(&project_id, group_id.as_deref()).await?;
        let rules = rules(&gateway, &project, group_id.as_deref()).await?;
        let platform = Platform::of(gateway.0.projects.machine, Path::new(&project.path));
        let prompt = blocking(move || blueprint::prompt(&folder(&project)?, &project.name, platform, &rules)).await?;
        text(&json!({"prompt": prompt}))
    };
    "projects.sync" Write Post "/projects/{project_id}/rules" "projects" as "sync_blueprint_rules"
    "Writes the rules of a project's groups into its blueprint (projects sync)"
    OneProject => |gateway, OneProject { group_id, project_id }| {
        let project = gateway.0.gate.project(&project_id, group_id.as_deref()).await?;
        let rules = rules(&gateway, &project, group_id.as_deref()).await?;
        if rules.is_empty() {
            return Err(ApiError {
                help: Some("`portcullis groups rules GROUP FILE` names one".to_owned()),
                ..ApiError::usage("no group of the project has a file of rules")
            });
        }
        let synced = blocking(move || {
            let folder = folder(&project)?;
            let each = rules.iter().map(|rules| Ok((rules.group.clone(), blueprint::sync(&folder, rules)?)));
            each.collect::<Result<Vec<_>, ProjectError>>()
        })
        .await?;
        let each = synced.iter().map(|(group, synced)| json!({"group": group, "rules": synced})).collect::<Vec<_>>();
        text(&json!({"file": ".blueprint/RULES.md", "groups": each}))
    };
}

impl From<ProjectError> for ApiError {
    fn from(error: ProjectError) -> Self {
        let class = match error {
            ProjectError::NotFound | ProjectError::NoBlueprint => "unknown",
            ProjectError::Secret(_) | ProjectError::Outside => "blocked",
            ProjectError::Io { .. } | ProjectError::Root(_) => "internal",
            _ => "usage",
        };
        let message = match std::error::Error::source(&error) {
            Some(source) => format!("{error}: {source}"),
            None => error.to_string(),
        };
        Self { class: class.to_owned(), code: error.code().to_owned(), message, help: error.help().map(str::to_owned) }
    }
}

/// Looks at files in a thread of its own.
async fn blocking<T: Send + 'static, E: Send + 'static>(
    work: impl FnOnce() -> Result<T, E> + Send + 'static,
) -> Result<T, ApiError>
where
    ApiError: From<E>,
{
    match tokio::task::spawn_blocking(work).await {
        Ok(done) => Ok(done?),
        Err(_) => Err(ApiError { class: "internal".to_owned(), ..ApiError::usage("it was not looked at to the end") }),
    }
}

fn folder(project: &Project) -> Result<Folder, ProjectError> {
    Folder::open(Path::new(&project.path))
}

/// Absolute path without links, and the name, of a folder that is to be registered.
fn folder_of(path: &str) -> Result<(String, String), ApiError> {
    let unusable = |why: &str| ApiError::usage(format!("`{}` is {why}", portcullis::display::escape(path)));
    let real =
        std::fs::canonicalize(path).map_err(|error| unusable(&format!("no folder that can be read: {error}")))?;
    if !real.is_dir() {
        return Err(unusable("no folder"));
    }
    let name = real.file_name().map(|name| name.to_string_lossy().into_owned());
    match (real.to_str(), name) {
        (Some(real), Some(name)) => Ok((real.to_owned(), name)),
        _ => Err(unusable("a path that cannot be kept as text")),
    }
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Described {
    id: String,
    name: String,
    path: String,
    platform: &'static str,
    tech_stack: Vec<String>,
    /// Whether its folder can be opened.
    available: bool,
}

async fn described(gateway: &Gateway, projects: Vec<Project>) -> Result<Value, ApiError> {
    let machine = gateway.0.projects.machine;
    let described = blocking(move || {
        let each = projects.into_iter().map(|project| {
            let stack = describe(Path::new(&project.path));
            Described {
                platform: Platform::of(machine, Path::new(&project.path)).name(),
                available: stack.is_ok(),
                tech_stack: stack.unwrap_or_default(),
                id: project.id,
                name: project.name,
                path: project.path,
            }
        });
        Ok::<_, ApiError>(each.collect::<Vec<_>>())
    });
    serde_json::to_value(described.await?).map_err(|error| ApiError::usage(error.to_string()))
}

/// The rules for a project: of one group, or of all that it belongs to.
async fn rules(gateway: &Gateway, project: &Project, of: Option<&str>) -> Result<Vec<Rules>, ApiError> {
    let groups = gateway.0.gate.groups().await?.into_iter();
    let own = groups.filter(|group| group.projects.contains(&project.id) && of.is_none_or(|of| of == group.id));
    let files: Vec<_> = own.filter_map(|group| Some((group.id, group.rules?))).collect();
    blocking(move || {
        let read = |(group, file): (String, String)| {
            let found = std::fs::metadata(&file).and_then(|found| match found.len() {
                length if !found.is_file() || length > FILE_BYTES => Err(std::io::ErrorKind::FileTooLarge.into()),
                _ => std::fs::read_to_string(&file),
            });
            match found {
                Ok(text) => Ok(Rules { group, text }),
                Err(error) => Err(ApiError::usage(format!(
                    "the rules of the group `{group}` cannot be read from `{}`: {error}",
                    portcullis::display::escape(&file)
                ))),
            }
        };
        files.into_iter().map(read).collect()
    })
    .await
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Registers {
    /// The folder.
    path: String,
    /// What it is to be called; the name of the folder without it.
    #[serde(default)]
    name: Option<String>,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct OfGroup {
    /// The group's id.
    group_id: String,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct OneProject {
    /// The group's id; only its projects are there then.
    #[serde(default)]
    group_id: Option<String>,
    /// The project's id.
    project_id: String,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct OneFile {
    /// The group's id; only its projects are there then.
    #[serde(default)]
    group_id: Option<String>,
    /// The project's id.
    project_id: String,
    /// The file, from the project's folder, with `/`.
    relative_path: String,
}
