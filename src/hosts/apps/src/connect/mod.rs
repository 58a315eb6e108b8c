//! Puts one server into a file of an application, and takes it out again.
//!
//! Each client is data: where its servers stand in its file, and how it writes one. [`put`] and [`take`] change
//! a text and nothing else; comments, unknown keys and order stay. Whoever calls them keeps a copy and writes
//! the file.

mod json;
mod toml;

use portcullis::secret::Secret;
use serde_json::{Map, Value, json};

use crate::{App, Format, Place, ReadError, Scope, apps, format};

/// An application that can be given a server.
#[derive(Debug)]
pub struct Client {
    /// What is known of it: its name, its files, their format.
    pub app: &'static App,
    /// Where servers stand in its file.
    root: &'static str,
    /// Whether it asks servers over HTTP; one that does not only starts commands.
    pub speaks_http: bool,
    /// Whether it has to be started again to notice a change of the file, and how that is said.
    pub afterwards: &'static str,
    http: fn(&Http) -> Map<String, Value>,
    /// What it writes for a command besides `command`, `args` and `env`.
    command_type: Option<&'static str>,
    /// How it writes the value of a variable.
    variable: fn(&str) -> String,
}

/// The clients that can be connected.
pub const CLIENTS: &[&Client] = &[
    &Client {
        app: &apps::CLAUDE_CODE,
        root: "mcpServers",
        speaks_http: true,
        afterwards: "sessions of Claude Code that run already have it after `/mcp` or a new start",
        http: |http| with_headers("url", Some("http"), http),
        command_type: Some("stdio"),
        variable: |name| format!("${{{name}}}"),
    },
    &Client {
        app: &apps::CLAUDE_DESKTOP,
        root: "mcpServers",
        speaks_http: false,
        afterwards: "quit Claude Desktop and start it again",
        http: |_| Map::new(),
        command_type: None,
        variable: |name| format!("${{{name}}}"),
    },
    &Client {
        app: &apps::CURSOR,
        root: "mcpServers",
        speaks_http: true,
        afterwards: "Cursor may ask you to switch it on in its settings, under MCP",
        http: |http| with_headers("url", None, http),
        command_type: None,
        variable: |name| format!("${{env:{name}}}"),
    },
    &Client {
        app: &apps::VSCODE,
        root: "servers",
        speaks_http: true,
        afterwards: "Visual Studio Code asks once whether you trust it",
        http: |http| with_headers("url", Some("http"), http),
        command_type: Some("stdio"),
        variable: |name| format!("${{env:{name}}}"),
    },
    &Client {
        app: &apps::GEMINI,
        root: "mcpServers",
        speaks_http: true,
        afterwards: "Gemini CLI has it at its next start",
        http: |http| with_headers("httpUrl", None, http),
        command_type: None,
        variable: |name| format!("${{{name}}}"),
    },
    &Client {
        app: &apps::CODEX,
        root: "mcp_servers",
        speaks_http: true,
        afterwards: "Codex has it at its next start",
        http: codex,
        command_type: None,
        variable: str::to_owned,
    },
];

/// The client of this id.
#[must_use]
pub fn client(id: &str) -> Option<&'static Client> {
    CLIENTS.iter().copied().find(|client| client.app.id == id)
}

/// How a client reaches the server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Reach {
    /// It asks an endpoint.
    Http(Http),
    /// It starts a command.
    Command {
        /// The program.
        program: String,
        /// Its arguments.
        args: Vec<String>,
        /// Variables that it needs.
        env: Vec<(String, String)>,
    },
}

/// An endpoint.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Http {
    /// Its address.
    pub url: String,
    /// What opens it.
    pub token: Token,
}

/// What opens an endpoint.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Token {
    /// Nothing is needed.
    None,
    /// This, which then stands in the file.
    Text(Secret),
    /// What the variable holds that the client is started with, as the client writes that.
    Variable(String),
}

/// Why a file of an application is left as it is. Never repeats what stands in it.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum EditError {
    /// It cannot be read.
    #[error(transparent)]
    Read(#[from] ReadError),
    /// Servers cannot stand where they should.
    #[error("`{0}` in it is no object, so no server can stand there")]
    Shape(&'static str),
    /// The change would have changed more than it should.
    #[error("its form is one that cannot be changed without touching something else in it")]
    Unsafe,
}

impl Client {
    /// The files where the client looks for what a person uses everywhere, the likeliest first.
    pub fn places(&self) -> impl Iterator<Item = &'static Place> {
        self.app.places.iter().filter(|place| place.scope() == Scope::User && !place.path.contains('*'))
    }

    /// One server, as the client writes it.
    #[must_use]
    pub fn entry(&self, reach: &Reach) -> Value {
        let mut entry = Map::new();
        match reach {
            Reach::Http(http) => {
                let token = match &http.token {
                    Token::Variable(name) if self.app.format != Format::Toml => {
                        Token::Text(Secret::new((self.variable)(name)))
                    }
                    token => token.clone(),
                };
                entry = (self.http)(&Http { url: http.url.clone(), token });
            }
            Reach::Command { program, args, env } => {
                if let Some(kind) = self.command_type {
                    entry.insert("type".to_owned(), kind.into());
                }
                entry.insert("command".to_owned(), program.as_str().into());
                entry.insert("args".to_owned(), args.iter().map(String::as_str).collect());
                if !env.is_empty() {
                    let env: Map<_, _> =
                        env.iter().map(|(name, value)| (name.clone(), value.as_str().into())).collect();
                    entry.insert("env".to_owned(), Value::Object(env));
                }
            }
        }
        Value::Object(entry)
    }

    /// A file that holds this server and nothing else.
    ///
    /// # Errors
    ///
    /// None is expected; [`EditError`] as [`put`] has them.
    pub fn snippet(&self, name: &str, entry: &Value) -> Result<String, EditError> {
        put(self, b"", name, entry)
    }
}

/// The text with `entry` as server `name`, in the place of the one that had this name.
///
/// # Errors
///
/// [`EditError`], and nothing is changed: the text is not of the client's format, or cannot be changed without
/// touching something else.
pub fn put(client: &Client, text: &[u8], name: &str, entry: &Value) -> Result<String, EditError> {
    let mut wanted = format::read(client.app.format, text)?;
    if wanted.is_null() {
        wanted = json!({});
    }
    let servers = servers_mut(client, &mut wanted)?;
    servers.insert(name.to_owned(), entry.clone());
    let after = edit(client, text, |format, body| match format {
        Format::Toml => toml::put(body, client.root, name, entry),
        _ => json::put(body, client.root, name, entry),
    })?;
    verified(client, after, &wanted)
}

/// The text without the server `name`; `None` where there is none of this name.
///
/// # Errors
///
/// [`EditError`], as [`put`] has them.
pub fn take(client: &Client, text: &[u8], name: &str) -> Result<Option<String>, EditError> {
    let mut wanted = format::read(client.app.format, text)?;
    let servers = wanted.get_mut(client.root).and_then(Value::as_object_mut);
    if servers.and_then(|servers| servers.remove(name)).is_none() {
        return Ok(None);
    }
    let after = edit(client, text, |format, body| match format {
        Format::Toml => toml::take(body, client.root, name),
        _ => json::take(body, client.root, name),
    })?;
    verified(client, after, &wanted).map(Some)
}

/// The server `name` as it stands in the text.
///
/// # Errors
///
/// [`EditError`] where the text cannot be read.
pub fn entry(client: &Client, text: &[u8], name: &str) -> Result<Option<Value>, EditError> {
    let value = format::read(client.app.format, text)?;
    Ok(value.get(client.root).and_then(|servers| servers.get(name)).cloned())
}

/// Changes what stands after a byte order mark, in the file's own ends of lines.
fn edit(
    client: &Client,
    text: &[u8],
    change: impl FnOnce(Format, &str) -> Result<String, EditError>,
) -> Result<String, EditError> {
    let text = std::str::from_utf8(text).map_err(|_| ReadError::Text)?;
    let (mark, body) = match text.strip_prefix('\u{feff}') {
        Some(body) => ("\u{feff}", body),
        None => ("", text),
    };
    let mut after = change(client.app.format, body)?;
    let ends = body.matches('\n').count();
    if ends > 0 && ends == body.matches("\r\n").count() {
        after = after.replace("\r\n", "\n").replace('\n', "\r\n");
    }
    if !after.ends_with('\n') && (body.is_empty() || body.ends_with('\n')) {
        after.push('\n');
    }
    Ok(format!("{mark}{after}"))
}

/// A change is good if the file then says what it should, and nothing else changed.
fn verified(client: &Client, after: String, wanted: &Value) -> Result<String, EditError> {
    match format::read(client.app.format, after.as_bytes()) {
        Ok(value) if value == *wanted => Ok(after),
        _ => Err(EditError::Unsafe),
    }
}

fn servers_mut<'v>(client: &Client, value: &'v mut Value) -> Result<&'v mut Map<String, Value>, EditError> {
    let file = value.as_object_mut().ok_or(EditError::Shape("the file"))?;
    let servers = file.entry(client.root).or_insert_with(|| json!({}));
    servers.as_object_mut().ok_or(EditError::Shape(client.root))
}

fn with_headers(url: &str, kind: Option<&str>, http: &Http) -> Map<String, Value> {
    let mut entry = Map::new();
    if let Some(kind) = kind {
        entry.insert("type".to_owned(), kind.into());
    }
    entry.insert(url.to_owned(), http.url.as_str().into());
    if let Token::Text(token) = &http.token {
        entry.insert("headers".to_owned(), json!({"Authorization": format!("Bearer {}", token.reveal())}));
    }
    entry
}

fn codex(http: &Http) -> Map<String, Value> {
    let mut entry = Map::new();
    entry.insert("url".to_owned(), http.url.as_str().into());
    match &http.token {
        Token::None => {}
        Token::Text(token) => {
            let headers = json!({"Authorization": format!("Bearer {}", token.reveal())});
            entry.insert("http_headers".to_owned(), headers);
        }
        Token::Variable(name) => drop(entry.insert("bearer_token_env_var".to_owned(), name.as_str().into())),
    }
    entry
}

#[cfg(test)]
mod tests;
