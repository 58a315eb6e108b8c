//! What a kind of transport is: data for documents, and code that plans and opens.
//!
//! A transport never decides whether it may open: it freezes what opening would do into a [`Plan`],
//! a person (or a remembered record) consents to the [`TrustView`] of exactly that plan, and
//! only then [`Plan::open`] runs.

use std::{fmt::Debug, sync::Arc};

use async_trait::async_trait;

use crate::{
    Definition, Fields, Limits,
    diagnostic::Code,
    link::Link,
    reference::{ReferenceError, SecretResolver, Surroundings},
    trust::{Consent, TrustView},
};

/// One kind of transport as data: all that documents, schemas, export and inference need.
///
/// Registered with [`inventory::submit!`], or handed to [`Registry::with`](crate::Registry::with).
#[derive(Debug)]
pub struct TransportKind {
    /// The canonical `type`.
    pub name: &'static str,
    /// What it is, in a few words.
    pub summary: &'static str,
    /// A server without `type` but with this field is of this kind.
    pub implied_by: Option<&'static str>,
    /// Other values of `type` that mean it.
    pub spellings: &'static [&'static str],
    /// The value of `type` in a VS Code document, where it differs.
    pub vscode: Option<&'static str>,
    /// Its fields, in the order of the canonical export.
    pub fields: &'static [Field],
    /// The diagnostic for one of its fields on a server of another kind.
    pub foreign: Code,
    /// Why a document with it is refused, for a kind that is only recognised.
    pub refusal: Option<Refusal>,
    /// What the field table cannot say; pure. Called once the table is satisfied.
    pub check: fn(&Fields, &mut Report),
    /// Makes the transport.
    pub build: fn() -> Arc<dyn Transport>,
}

inventory::collect!(&'static TransportKind);

/// Why a kind is recognised and refused.
#[derive(Debug, Clone, Copy)]
pub struct Refusal {
    /// The diagnostic.
    pub code: Code,
    /// What is wrong.
    pub message: &'static str,
    /// What to write instead.
    pub help: &'static str,
}

/// One field of a transport.
#[derive(Debug, Clone, Copy)]
pub struct Field {
    /// Its key in a document.
    pub name: &'static str,
    /// What it holds.
    pub value: FieldValue,
    /// Whether a server cannot do without it.
    pub required: bool,
    /// Whether its values are secrets: never shown, `${keep}` in an export, `${secret:}` allowed.
    pub secret: bool,
    /// What it means, for the JSON Schema and for messages.
    pub doc: &'static str,
}

/// What a field holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FieldValue {
    /// A text that is not blank.
    Text,
    /// A list of texts.
    Texts,
    /// An object of texts: environment variables.
    Environment,
    /// An object of texts: HTTP headers.
    Headers,
    /// An `http` or `https` URL.
    Url,
    /// Any object; the kind's `check` looks inside.
    Object,
}

/// Collects what a kind's `check` finds.
#[derive(Debug, Default)]
pub struct Report {
    /// What was found so far.
    pub problems: Vec<Problem>,
}

/// One finding of a `check`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Problem {
    /// Its kind, which says how much it weighs.
    pub code: Code,
    /// RFC 6901 pointer below the server, such as `/env/PATH`.
    pub pointer: String,
    /// What is wrong. Must not repeat a value.
    pub message: String,
    /// What to do.
    pub help: Option<String>,
}

impl Report {
    /// Adds a finding about the value at `pointer` (below the server).
    pub fn add(&mut self, code: Code, pointer: impl Into<String>, message: impl Into<String>, help: Option<&str>) {
        self.problems.push(Problem {
            code,
            pointer: pointer.into(),
            message: message.into(),
            help: help.map(str::to_owned),
        });
    }
}

/// What a host lends for planning and opening.
#[derive(Debug, Clone, Default)]
pub struct OpenContext {
    /// Environment and folders.
    pub surroundings: Surroundings,
    /// Bounds of a link.
    pub limits: Limits,
}

/// A kind of transport at work.
///
/// # Behaviour
///
/// - [`plan`](Self::plan) looks at files at most: it starts nothing, contacts nothing, resolves no
///   name. Planning the same definition twice in the same surroundings gives equal views.
/// - It is shared by all servers of its kind and holds no state of one of them.
#[cfg_attr(any(test, feature = "mocks"), mockall::automock)]
#[async_trait]
pub trait Transport: Debug + Send + Sync {
    /// Freezes what opening `definition` would do.
    ///
    /// # Errors
    ///
    /// [`TransportError`] where it is clear already that opening cannot work: a program that is not
    /// found, a folder that does not exist, a variable that is not set.
    fn plan(&self, definition: &Definition, context: &OpenContext) -> Result<Box<dyn Plan>, TransportError>;
}

/// What opening would do, frozen; never looked up again.
#[async_trait]
pub trait Plan: Debug + Send + Sync {
    /// What a person is shown.
    fn view(&self) -> &TrustView;

    /// Opens exactly what the view showed. Values of secret fields are filled in here, not before.
    ///
    /// Dropping the future ends whatever was started.
    ///
    /// # Errors
    ///
    /// [`TransportError::Consent`] where `consent` was given for another view; otherwise what
    /// failed, by step.
    async fn open(self: Box<Self>, consent: Consent, secrets: &dyn SecretResolver) -> Result<Link, TransportError>;
}

/// Why a link could not be planned or opened.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TransportError {
    /// No such program on the search path.
    #[error("the program `{}` was not found", crate::display::escape(.program))]
    ProgramNotFound {
        /// As written.
        program: String,
        /// The folders that were searched; empty where the program was written with a folder.
        searched: Vec<String>,
    },
    /// The file is there and cannot be run.
    #[error("`{}` cannot be run: {reason}", crate::display::escape(.program))]
    NotExecutable {
        /// As resolved.
        program: String,
        /// Why: a folder, no permission.
        reason: &'static str,
    },
    /// The working directory does not exist.
    #[error("the working directory `{}` does not exist", crate::display::escape(.directory))]
    DirectoryMissing {
        /// As resolved.
        directory: String,
    },
    /// The operating system refused to start it.
    #[error("`{}` could not be started", crate::display::escape(.program))]
    Start {
        /// As resolved.
        program: String,
        /// What the operating system said.
        #[source]
        source: std::io::Error,
    },
    /// A `${…}` without a value.
    #[error("`{field}` cannot be filled in")]
    Reference {
        /// The field, such as `env.TOKEN`.
        field: String,
        /// Which reference, and why.
        #[source]
        source: ReferenceError,
    },
    /// A value that is not acceptable once its references are filled in.
    #[error("`{field}` is not acceptable once its variables are filled in: {reason}")]
    Value {
        /// The field.
        field: String,
        /// Why, without the value.
        reason: &'static str,
    },
    /// The kind is recognised and refused.
    #[error("the transport `{kind}` is not supported: {reason}")]
    Unsupported {
        /// Its name.
        kind: &'static str,
        /// What to use instead.
        reason: &'static str,
    },
    /// A consent for another plan.
    #[error("consent was given for something else than what would be opened")]
    Consent,
    /// Anything else.
    #[error("{what}")]
    Other {
        /// What was attempted.
        what: String,
        /// Why it failed.
        #[source]
        source: Box<dyn std::error::Error + Send + Sync>,
    },
}
