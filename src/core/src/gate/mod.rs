//! The façade that a host holds: documents in and out, trust, tools, calls.
//!
//! A gate owns no policy of its own: it composes the registry, a store, somebody to ask and an
//! audit trail. Every way to a server leads through [`Gate::trust`] and every way to a tool
//! through the approval pipeline.

mod calls;
mod connection;
mod context;
mod documents;
mod editing;
mod error;
mod grants;
mod locking;
mod own;
mod probe;
mod projects;
mod reading;
mod relisting;
mod secrets;
mod selection;
mod servers;
mod sessions;
mod trusting;

use std::{
    collections::HashSet,
    fmt,
    sync::{
        Arc, Mutex, OnceLock, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

pub use calls::{Requested, Waiting};
pub use connection::{Connection, ConnectionError, ConnectionEvent, ConnectionState};
pub use context::CallContext;
pub use documents::{Imported, Only};
pub use editing::Draft;
pub use error::{ErrorClass, GateError};
pub use probe::{Probe, ReadView};
pub use projects::Members;
pub use reading::Listening;
pub use secrets::{Literal, Moved, SecretView};
pub use selection::{Choice, OfferedTool, ToolView};
pub use servers::ServerView;
pub use trusting::TrustQuestion;

use self::sessions::Sessions;
use crate::{
    approval::{Approver, Pipeline, Questions},
    audit::{AuditEvent, AuditLine, AuditSink},
    definition::{Definition, Fingerprint, StoreKey},
    lock::Lock,
    names::NameStyle,
    registry::Registry,
    secret::Secrets,
    session::{ClientHandler, Lifecycle},
    store::{State, StateStore, ToolCache},
    tools::Pin,
    transport::OpenContext,
};

/// What a host brings.
#[derive(Debug)]
pub struct GateParts {
    /// Transports and policies.
    pub registry: Registry,
    /// Definitions and decisions.
    pub store: Arc<dyn StateStore>,
    /// Tools as they were listed last.
    pub cache: Arc<dyn ToolCache>,
    /// Whom to ask.
    pub approver: Arc<dyn Approver>,
    /// Where everything is written down.
    pub audit: Arc<dyn AuditSink>,
    /// Values of secret references, and who is asked for inputs.
    pub secrets: Secrets,
    /// Environment, folders, limits.
    pub context: OpenContext,
    /// The host's name, for trust records.
    pub host: String,
    /// How model-facing names look.
    pub name_style: NameStyle,
    /// Answers what servers ask of their client; [`Refusing`](crate::session::Refusing) where nobody does.
    pub handler: Arc<dyn ClientHandler>,
    /// How conversations begin, where nothing is known of a server.
    pub lifecycle: Lifecycle,
}

/// The one way between models and MCP servers. Cheap to clone; all clones are one gate.
#[derive(Clone)]
pub struct Gate(Arc<Inner>);

struct Inner {
    parts: GateParts,
    pipeline: Pipeline,
    questions: Questions,
    sessions: Sessions,
    /// Allowed until this host ends.
    granted: Mutex<HashSet<GrantedHere>>,
    /// The store's id and key, as they were last.
    key: Mutex<Option<(String, StoreKey)>>,
    /// What somebody reviewed, where a host holds the gate to it.
    lock: OnceLock<Lock>,
    /// Somebody is about to flush the trail.
    flushing: AtomicBool,
}

/// How late the outcome of a call may stand in the trail.
const SOON: Duration = Duration::from_millis(20);

impl Inner {
    fn flush(&self) {
        if let Err(error) = self.parts.audit.flush() {
            tracing::error!(%error, "the audit trail cannot be written");
        }
    }
}

/// Server, tool, definition of the tool, caller.
type GrantedHere = (Fingerprint, String, Pin, String);

impl fmt::Debug for Gate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Gate").field("parts", &self.0.parts).finish_non_exhaustive()
    }
}

impl Gate {
    /// A gate over what a host brings. Starts nothing.
    #[must_use]
    pub fn new(parts: GateParts) -> Self {
        Self(Arc::new(Inner {
            pipeline: Pipeline::new(&parts.registry),
            questions: Questions::default(),
            sessions: Sessions::new(&parts.context.limits),
            granted: Mutex::default(),
            key: Mutex::default(),
            lock: OnceLock::new(),
            flushing: AtomicBool::default(),
            parts,
        }))
    }

    /// The questions that wait for a person, to be answered by id from anywhere.
    #[must_use]
    pub fn questions(&self) -> &Questions {
        &self.0.questions
    }

    /// Denies what waits and ends every server, all at once. Within two graces.
    pub async fn close(&self) {
        self.0.questions.deny_all();
        self.0.sessions.close_all().await;
        self.0.flush();
    }

    /// Counts what was saved in the store, by whatever host: as long as it stays, nothing was decided.
    ///
    /// # Errors
    ///
    /// What the store says.
    pub async fn revision(&self) -> Result<u64, GateError> {
        Ok(self.state().await?.revision)
    }

    fn store(&self) -> &dyn StateStore {
        &*self.0.parts.store
    }

    async fn state(&self) -> Result<Arc<State>, GateError> {
        Ok(self.store().load().await?)
    }

    async fn key(&self) -> Result<StoreKey, GateError> {
        Ok(self.store().key().await?)
    }

    /// The key of the store that `state` was loaded from: its id is made of the key, so as long as
    /// that is the same there is no need to ask.
    async fn key_of(&self, state: &State) -> Result<StoreKey, GateError> {
        let known = self.0.key.lock().unwrap_or_else(PoisonError::into_inner).clone();
        if let Some((id, key)) = known
            && !id.is_empty()
            && id == state.id
        {
            return Ok(key);
        }
        let key = self.key().await?;
        *self.0.key.lock().unwrap_or_else(PoisonError::into_inner) = Some((state.id.clone(), key.clone()));
        Ok(key)
    }

    /// `text` without the secrets that were filled in so far, for what a host hands on that a server says of itself.
    #[must_use]
    pub fn redact<'t>(&self, text: &'t str) -> std::borrow::Cow<'t, str> {
        self.0.parts.secrets.redactor.redact(text)
    }

    fn record(&self, line: &AuditLine) -> Result<(), GateError> {
        Ok(self.0.parts.audit.record(line)?)
    }

    /// For what has happened already: a trail that fails then is reported, not undone.
    fn record_done(&self, line: &AuditLine) {
        if let Err(error) = self.0.parts.audit.record(line) {
            tracing::error!(%error, "the audit trail cannot be written");
        }
    }

    /// The same, within a moment: what is written at once with the next line costs less.
    fn record_soon(&self, line: &AuditLine) {
        if let Err(error) = self.0.parts.audit.record_soon(line) {
            tracing::error!(%error, "the audit trail cannot be written");
        }
        if !self.0.flushing.swap(true, Ordering::AcqRel) {
            // Where the gate is gone by then, its trail was flushed with it.
            let inner = Arc::downgrade(&self.0);
            tokio::spawn(async move {
                tokio::time::sleep(SOON).await;
                if let Some(inner) = inner.upgrade() {
                    inner.flushing.store(false, Ordering::Release);
                    inner.flush();
                }
            });
        }
    }

    fn line(event: AuditEvent, server: &str) -> AuditLine {
        AuditLine { server: Some(server.to_owned()), ..AuditLine::now(event) }
    }
}

/// The server of this name.
fn find<'a>(state: &'a State, name: &str) -> Result<&'a Definition, GateError> {
    state.definition(name).ok_or_else(|| GateError::UnknownServer {
        name: name.to_owned(),
        near: nearest(name, state.definitions.iter().map(Definition::name)),
    })
}

/// The candidate that looks most like `name`, if any does.
fn nearest<'a>(name: &str, candidates: impl Iterator<Item = &'a str>) -> Option<String> {
    candidates
        .map(|candidate| (strsim::jaro_winkler(&name.to_lowercase(), &candidate.to_lowercase()), candidate))
        .filter(|(likeness, _)| *likeness > 0.8)
        .max_by(|a, b| a.0.total_cmp(&b.0))
        .map(|(_, candidate)| candidate.to_owned())
}
