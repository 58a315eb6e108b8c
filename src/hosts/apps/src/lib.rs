//! Where other applications keep their MCP servers, and what these are in our words.
//!
//! Each application is data: the places of its files on each system, their format, and a table
//! that says what becomes of each field. [`find`] looks for the files, [`read`] translates one, and
//! [`sift`] keeps the servers that can be used. [`connect`] puts one server into the text of such a file. Nothing
//! here writes a file, starts or contacts anything.
//!
//! What cannot be translated is never dropped in silence: each loss is a [`Remark`].

mod apps;
pub mod connect;
mod dialect;
mod find;
mod format;
mod place;
mod references;
mod sift;

pub use self::{
    apps::{APPS, app},
    find::{FILE_BYTES, Found, find},
    format::ReadError,
    place::{Base, Place, Roots, Scope, System},
    sift::{Sifted, sift},
};

use serde_json::{Map, Value};

/// One application.
#[derive(Debug)]
pub struct App {
    /// What it is called on a command line.
    pub id: &'static str,
    /// What people call it.
    pub name: &'static str,
    /// Where its files are, the ones that win first.
    pub places: &'static [Place],
    /// Of its files.
    pub format: Format,
    /// Takes the servers out of one of them.
    read: fn(&Value, &mut Reading),
}

/// The format of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    /// JSON, with comments and trailing commas.
    Json,
    /// TOML.
    Toml,
    /// YAML, or JSON where the text begins with `{`.
    Yaml,
}

/// What stands in the files of one application, in our words.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Reading {
    /// The servers, as a document writes them.
    pub servers: Map<String, Value>,
    /// What a person is asked for.
    pub inputs: Vec<Value>,
    /// What is worth knowing.
    pub remarks: Vec<Remark>,
}

/// What is worth knowing about the translation of one server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Remark {
    /// The server; none for the whole file.
    pub server: Option<String>,
    /// How much it weighs.
    pub kind: RemarkKind,
    /// In words. Never repeats a value.
    pub message: String,
}

/// How much a [`Remark`] weighs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RemarkKind {
    /// The server cannot be used and is left out.
    LeftOut,
    /// Something of it is not taken over.
    Lost,
    /// It means something else here, or needs something.
    Differs,
    /// Only these tools are on there.
    OnlyTools(Vec<String>),
    /// These tools are off there.
    WithoutTools(Vec<String>),
}

impl RemarkKind {
    /// The kind as it is written: `left-out`.
    #[must_use]
    pub fn as_str(&self) -> &'static str {
        match self {
            Self::LeftOut => "left-out",
            Self::Lost => "lost",
            Self::Differs => "differs",
            Self::OnlyTools(_) => "only-tools",
            Self::WithoutTools(_) => "without-tools",
        }
    }

    /// The tools that it is about.
    #[must_use]
    pub fn tools(&self) -> &[String] {
        match self {
            Self::OnlyTools(tools) | Self::WithoutTools(tools) => tools,
            _ => &[],
        }
    }
}

impl Reading {
    fn remark(&mut self, server: Option<&str>, kind: RemarkKind, message: impl Into<String>) {
        self.remarks.push(Remark { server: server.map(str::to_owned), kind, message: message.into() });
    }

    /// Puts `other` behind: what is here already wins, as it does in the application.
    pub fn merge(&mut self, other: Self) {
        let mut hidden = Vec::new();
        for (name, server) in other.servers {
            match self.servers.get(&name) {
                None => {
                    self.servers.insert(name, server);
                }
                Some(own) => {
                    let message = "also stands in another file of the application, which this one overrides";
                    if *own != server {
                        self.remark(Some(&name), RemarkKind::Differs, message);
                    }
                    hidden.push(name);
                }
            }
        }
        let inputs = other.inputs.into_iter();
        let known: Vec<_> = self.inputs.iter().map(|input| input["id"].clone()).collect();
        self.inputs.extend(inputs.filter(|input| !known.contains(&input["id"])));
        let about = |remark: &Remark| remark.server.as_ref().is_none_or(|server| !hidden.contains(server));
        self.remarks.extend(other.remarks.into_iter().filter(about));
    }
}

/// Reads a file of `app`.
///
/// # Errors
///
/// [`ReadError`] where it is not of the application's format.
pub fn read(app: &App, text: &[u8]) -> Result<Reading, ReadError> {
    let value = format::read(app.format, text)?;
    let mut reading = Reading::default();
    (app.read)(&value, &mut reading);
    Ok(reading)
}
