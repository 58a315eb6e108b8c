//! Settings of a host: defaults < `settings.toml` < environment < flags; and where its folders lie.
//!
//! The only place where a host reads its environment. A key that nobody knows is an error that
//! names the one that was probably meant, and where the wrong one stands.

mod folders;
mod keys;
#[cfg(unix)]
mod login;
mod surroundings;

pub use folders::{Folders, FoldersError};
pub use keys::{KEYS, Kind, SettingKey};
pub use surroundings::Machine;

use std::{collections::BTreeMap, fmt, fs, io, path::PathBuf, time::Duration};

use figment::{
    Figment, Profile,
    providers::{Format, Serialized, Toml},
    value::{Dict, Value},
};
use portcullis::{limits::Limits, names::NameStyle, secret::KeyringUse, session::Lifecycle};
use serde::Deserialize;

/// What a person may set.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Settings {
    /// Bounds of servers, calls and questions.
    pub limits: Limits,
    /// How model-facing names look.
    pub name_style: NameStyle,
    /// Where secrets are kept.
    pub secrets: KeyringUse,
    /// How conversations begin with a server of which nothing is known.
    pub lifecycle: Lifecycle,
    /// The lock file that this host is held to.
    pub locked: Option<PathBuf>,
    /// The port of the endpoint on loopback.
    pub mcp_port: u16,
    /// Whether the login shell may be asked for its `PATH`.
    pub login_path: bool,
    /// Folders below which projects are looked for.
    pub project_roots: Vec<PathBuf>,
    /// Patterns of files of projects that are given out though they may hold secrets.
    pub project_files_allow: Vec<String>,
    /// Filter of the log on standard error.
    pub log: String,
    /// Where each setting comes from that is not the default, by key.
    pub origins: BTreeMap<&'static str, Origin>,
}

/// The port of the endpoint without any setting.
pub const MCP_PORT: u16 = 27190;
/// The log without any setting.
pub const DEFAULT_LOG: &str = "warn";

impl Default for Settings {
    fn default() -> Self {
        Self {
            limits: Limits::default(),
            name_style: NameStyle::default(),
            secrets: KeyringUse::Auto,
            lifecycle: Lifecycle::Auto,
            locked: None,
            mcp_port: MCP_PORT,
            login_path: true,
            project_roots: Vec::new(),
            project_files_allow: Vec::new(),
            log: DEFAULT_LOG.to_owned(),
            origins: BTreeMap::new(),
        }
    }
}

/// Why settings cannot be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SettingsError {
    /// A key that nobody knows.
    #[error("there is no setting `{key}` ({origin})")]
    Unknown {
        /// The key as it stands there.
        key: String,
        /// Where.
        origin: Origin,
        /// A key that is close to it.
        near: Option<&'static str>,
    },
    /// A value of the wrong kind.
    #[error("the setting `{key}` must be {expected} ({origin})")]
    Value {
        /// The key.
        key: String,
        /// What it takes.
        expected: String,
        /// Where it stands.
        origin: Origin,
    },
    /// The file is no TOML.
    #[error("`{}` is not valid TOML: {problem}", .path.display())]
    Syntax {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        problem: String,
    },
    /// The file cannot be read.
    #[error("`{}` cannot be read", .path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// What the operating system said.
        #[source]
        source: io::Error,
    },
}

impl SettingsError {
    /// What to do about it, where that can be said.
    #[must_use]
    pub fn help(&self) -> Option<String> {
        match self {
            Self::Unknown { near: Some(near), .. } => Some(format!("did you mean `{near}`?")),
            Self::Unknown { .. } => {
                Some(format!("there is {}", KEYS.iter().map(|key| key.name).collect::<Vec<_>>().join(", ")))
            }
            _ => None,
        }
    }
}

/// Where a setting comes from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Origin {
    /// A line of the file.
    File {
        /// The file.
        path: PathBuf,
        /// The line, from 1.
        line: usize,
    },
    /// A variable of the environment.
    Environment {
        /// The variable.
        variable: String,
    },
    /// The command line.
    Flag,
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::File { path, line } => write!(f, "{}, line {line}", path.display()),
            Self::Environment { variable } => write!(f, "environment variable {variable}"),
            Self::Flag => f.write_str("--set on the command line"),
        }
    }
}

/// The settings as the layers leave them.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Layered {
    limits: LayeredLimits,
    name_style: Style,
    secrets: Place,
    start_servers: Starts,
    lifecycle: Begins,
    locked: String,
    mcp_port: u16,
    login_path: Asks,
    project_roots: Vec<PathBuf>,
    project_files_allow: Vec<String>,
    log: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct LayeredLimits {
    start_ms: u64,
    idle_ms: u64,
    absolute_ms: u64,
    question_ms: u64,
    stop_grace_ms: u64,
    message_bytes: usize,
    pages: usize,
    items: usize,
    parallel_starts: usize,
    idle_stop_ms: u64,
}

#[derive(Deserialize)]
#[serde(rename_all = "kebab-case")]
enum Style {
    Prefixed,
    Short,
}

#[derive(Deserialize, PartialEq)]
#[serde(rename_all = "kebab-case")]
enum Starts {
    OnUse,
    OnConnect,
}

#[derive(Deserialize)]
#[serde(rename_all = "kebab-case")]
enum Begins {
    Auto,
    Handshake,
    Stateless,
}

#[derive(Deserialize, PartialEq)]
#[serde(rename_all = "kebab-case")]
enum Asks {
    Auto,
    Never,
}

#[derive(Deserialize)]
#[serde(rename_all = "kebab-case")]
enum Place {
    Auto,
    Keyring,
    File,
}

/// One layer, and where each of its keys stands.
struct Layer<'a> {
    values: Dict,
    origin: Box<dyn Fn(&str) -> Origin + 'a>,
}

impl Settings {
    /// Puts the layers together. `flags` are `key=value` pairs.
    ///
    /// # Errors
    ///
    /// [`SettingsError`], for the first key or value that cannot be used.
    pub fn load(machine: &Machine, flags: &[(String, String)]) -> Result<Self, SettingsError> {
        let mut figment = Figment::from(Serialized::defaults(defaults()));
        let text = file(machine)?;
        let mut layers = Vec::new();
        if let Some((path, text)) = &text {
            let values = Toml::from_str::<Dict>(text)
                .map_err(|error| SettingsError::Syntax { path: path.clone(), problem: error.message().to_owned() })?;
            layers.push(Layer {
                values,
                origin: Box::new(move |key| Origin::File { path: path.clone(), line: line_of(text, key) }),
            });
        }
        layers.push(environment(machine)?);
        layers.push(flag_layer(flags)?);
        let mut origins = BTreeMap::new();
        for layer in layers {
            origins.extend(check(&layer)?);
            figment = figment.merge(Serialized::from(layer.values, Profile::Default));
        }
        let layered: Layered = figment.extract().map_err(|error| SettingsError::Value {
            key: error.path.join("."),
            expected: "usable".to_owned(),
            origin: Origin::Flag,
        })?;
        Ok(Self { origins, ..layered.into() })
    }
}

impl From<Layered> for Settings {
    fn from(layered: Layered) -> Self {
        let limits = layered.limits;
        Self {
            limits: Limits {
                start: Duration::from_millis(limits.start_ms),
                idle: Duration::from_millis(limits.idle_ms),
                absolute: Duration::from_millis(limits.absolute_ms),
                question: Duration::from_millis(limits.question_ms),
                stop_grace: Duration::from_millis(limits.stop_grace_ms),
                message_bytes: limits.message_bytes,
                pages: limits.pages,
                items: limits.items,
                parallel_starts: limits.parallel_starts,
                start_on_use: layered.start_servers == Starts::OnUse,
                idle_stop: (limits.idle_stop_ms > 0).then(|| Duration::from_millis(limits.idle_stop_ms)),
            },
            name_style: match layered.name_style {
                Style::Prefixed => NameStyle::Prefixed,
                Style::Short => NameStyle::Short,
            },
            secrets: match layered.secrets {
                Place::Auto => KeyringUse::Auto,
                Place::Keyring => KeyringUse::Always,
                Place::File => KeyringUse::Never,
            },
            lifecycle: match layered.lifecycle {
                Begins::Auto => Lifecycle::Auto,
                Begins::Handshake => Lifecycle::Handshake,
                Begins::Stateless => Lifecycle::Stateless,
            },
            locked: (!layered.locked.is_empty()).then(|| layered.locked.into()),
            mcp_port: layered.mcp_port,
            login_path: layered.login_path == Asks::Auto,
            project_roots: layered.project_roots,
            project_files_allow: layered.project_files_allow,
            log: layered.log,
            origins: BTreeMap::new(),
        }
    }
}

fn defaults() -> Dict {
    let limits = Limits::default();
    let millis = |time: Duration| u64::try_from(time.as_millis()).unwrap_or(u64::MAX);
    let mut values = Dict::new();
    for (key, value) in [
        ("limits.startMs", Value::from(millis(limits.start))),
        ("limits.idleMs", Value::from(millis(limits.idle))),
        ("limits.absoluteMs", Value::from(millis(limits.absolute))),
        ("limits.questionMs", Value::from(millis(limits.question))),
        ("limits.stopGraceMs", Value::from(millis(limits.stop_grace))),
        ("limits.messageBytes", Value::from(limits.message_bytes)),
        ("limits.pages", Value::from(limits.pages)),
        ("limits.items", Value::from(limits.items)),
        ("limits.parallelStarts", Value::from(limits.parallel_starts)),
        ("limits.idleStopMs", Value::from(limits.idle_stop.map_or(0, millis))),
        ("startServers", Value::from("on-use")),
        ("lifecycle", Value::from("auto")),
        ("nameStyle", Value::from("prefixed")),
        ("secrets", Value::from("auto")),
        ("locked", Value::from("")),
        ("mcpPort", Value::from(MCP_PORT)),
        ("loginPath", Value::from("auto")),
        ("projectRoots", Value::from(Vec::<Value>::new())),
        ("projectFilesAllow", Value::from(Vec::<Value>::new())),
        ("log", Value::from(DEFAULT_LOG)),
    ] {
        keys::put(&mut values, key, value);
    }
    values
}

fn file(machine: &Machine) -> Result<Option<(PathBuf, String)>, SettingsError> {
    let Ok(folders) = machine.folders() else { return Ok(None) };
    let path = folders.settings_path();
    match fs::read_to_string(&path) {
        Ok(text) => Ok(Some((path, text))),
        Err(error) if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) => Ok(None),
        Err(source) => Err(SettingsError::Read { path, source }),
    }
}

fn environment<'a>(machine: &Machine) -> Result<Layer<'a>, SettingsError> {
    let mut values = Dict::new();
    for (variable, value) in machine.own_variables() {
        let origin = || Origin::Environment { variable: variable.to_owned() };
        let Some(key) = KEYS.iter().find(|key| key.variable() == variable) else {
            let near = keys::nearest(variable, |key| key.variable());
            return Err(SettingsError::Unknown { key: variable.to_owned(), origin: origin(), near });
        };
        keys::put(&mut values, key.name, key.read(value, origin)?);
    }
    let origin = |key: &str| Origin::Environment { variable: keys::variable(key) };
    Ok(Layer { values, origin: Box::new(origin) })
}

fn flag_layer<'a>(flags: &[(String, String)]) -> Result<Layer<'a>, SettingsError> {
    let mut values = Dict::new();
    for (name, value) in flags {
        let Some(key) = KEYS.iter().find(|key| key.name == name) else {
            let near = keys::nearest(name, |key| key.name.to_owned());
            return Err(SettingsError::Unknown { key: name.clone(), origin: Origin::Flag, near });
        };
        keys::put(&mut values, key.name, key.read(value, || Origin::Flag)?);
    }
    Ok(Layer { values, origin: Box::new(|_| Origin::Flag) })
}

/// Every key is known, and its value of its kind; where each of them stands.
fn check(layer: &Layer<'_>) -> Result<Vec<(&'static str, Origin)>, SettingsError> {
    let mut found = Vec::new();
    for (name, value) in keys::flat(&layer.values) {
        let Some(key) = KEYS.iter().find(|key| key.name == name) else {
            let near = keys::nearest(&name, |key| key.name.to_owned());
            return Err(SettingsError::Unknown { origin: (layer.origin)(&name), key: name, near });
        };
        if !key.takes(value) {
            return Err(SettingsError::Value { expected: key.expected(), origin: (layer.origin)(&name), key: name });
        }
        found.push((key.name, (layer.origin)(key.name)));
    }
    Ok(found)
}

/// The line that `key` stands on, as far as that can be told.
fn line_of(text: &str, key: &str) -> usize {
    let last = key.rsplit('.').next().unwrap_or(key);
    let starts = |line: &str| line.trim_start().trim_start_matches('[').trim_start_matches('"').starts_with(last);
    text.lines().position(starts).or_else(|| text.lines().position(|line| line.contains(last))).map_or(1, |at| at + 1)
}

#[cfg(test)]
mod tests;
