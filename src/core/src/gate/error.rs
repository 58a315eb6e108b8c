//! What a host gets back when something did not happen, in words for the person at it.

mod advice;

use std::fmt;

use crate::{
    approval::{ArgumentsError, QuestionError},
    audit::AuditError,
    display,
    link::LinkError,
    lock::Difference,
    secret::{NameProblem, SecretError},
    session::SessionError,
    store::{ChangeError, ReconcileError, StoreError},
    transport::TransportError,
};

/// What kind of failure it is, for a host's exit code or status.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ErrorClass {
    /// The store or the trail cannot be read or written.
    Internal,
    /// What was asked for does not make sense.
    Usage,
    /// A log-in is needed first.
    Authorization,
    /// The server could not be started or reached, or did not answer.
    Unreachable,
    /// A person has not allowed it, or no longer.
    Blocked,
    /// No such server, tool or id.
    Unknown,
}

/// Why the gate did not do something.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum GateError {
    /// No server of that name.
    #[error("there is no server `{}`", display::escape(.name))]
    UnknownServer {
        /// What was asked for.
        name: String,
        /// A name that is close to it.
        near: Option<String>,
    },
    /// No tool of that name.
    #[error("the server `{}` has no tool `{}`", display::escape(.server), display::escape(.tool))]
    UnknownTool {
        /// The server.
        server: String,
        /// What was asked for.
        tool: String,
        /// A name that is close to it.
        near: Option<String>,
    },
    /// No project of that id, or none that may be seen here.
    #[error("there is no project `{}`", display::escape(.id))]
    UnknownProject {
        /// What was asked for.
        id: String,
    },
    /// No group of that id.
    #[error("there is no group `{}`", display::escape(.id))]
    UnknownGroup {
        /// What was asked for.
        id: String,
    },
    /// There is a group of that name.
    #[error("there is a group of that name already, with the id `{}`", display::escape(.id))]
    GroupExists {
        /// Its id.
        id: String,
    },
    /// Nobody consented to the definition.
    #[error("the server `{}` is not trusted", display::escape(.server))]
    NotTrusted {
        /// The server.
        server: String,
    },
    /// What was consented to resolves to something else now.
    #[error("the server `{}` is no longer what you trusted: {}", display::escape(.server), display::escape(&.differences.join("; ")))]
    TrustChanged {
        /// The server.
        server: String,
        /// What differs.
        differences: Vec<String>,
    },
    /// Something is not as the lock file holds it.
    #[error("this is not what was reviewed:\n  {}", .differences.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n  "))]
    Locked {
        /// What differs.
        differences: Vec<Difference>,
    },
    /// A fingerprint that is not that of the definition.
    #[error("the fingerprint is not that of `{}` as it is now", display::escape(.server))]
    WrongFingerprint {
        /// The server.
        server: String,
    },
    /// The server is switched off.
    #[error("the server `{}` is not enabled", display::escape(.server))]
    NotEnabled {
        /// The server.
        server: String,
    },
    /// The tools are not known yet.
    #[error("the tools of `{}` are not known yet", display::escape(.server))]
    NotDiscovered {
        /// The server.
        server: String,
    },
    /// The tool is switched off.
    #[error("the tool `{}` of `{}` is not enabled", display::escape(.tool), display::escape(.server))]
    ToolNotEnabled {
        /// The server.
        server: String,
        /// The tool.
        tool: String,
    },
    /// The server defines the tool otherwise than a person last saw it.
    #[error("the tool `{}` of `{}` changed since you enabled it:\n  {}", display::escape(.tool), display::escape(.server), .changes.join("\n  "))]
    ToolChanged {
        /// The server.
        server: String,
        /// The tool.
        tool: String,
        /// What changed, a line each, escaped for display.
        changes: Vec<String>,
    },
    /// The pipeline or a person said no.
    #[error("call of `{}` on `{}` was denied: {reason}", display::escape(.tool), display::escape(.server))]
    Denied {
        /// The server.
        server: String,
        /// The tool.
        tool: String,
        /// Why.
        reason: String,
    },
    /// The arguments are none.
    #[error("the arguments for `{}` do not fit", display::escape(.tool))]
    Arguments {
        /// The tool.
        tool: String,
        /// Why.
        #[source]
        source: ArgumentsError,
    },
    /// Planning or opening failed.
    #[error("`{}` could not be started", display::escape(.server))]
    Transport {
        /// The server.
        server: String,
        /// Why.
        #[source]
        source: TransportError,
    },
    /// The conversation failed.
    #[error("{}", in_session(.server, .tool.as_deref(), .source))]
    Session {
        /// The server.
        server: String,
        /// The tool that was called.
        tool: Option<String>,
        /// Why.
        source: Box<SessionError>,
    },
    /// The server does not run, and this host starts none by itself.
    #[error("the server `{}` is not running", display::escape(.server))]
    NotRunning {
        /// The server.
        server: String,
    },
    /// It was ended while it was being started.
    #[error("`{}` was stopped before it had started", display::escape(.server))]
    Stopped {
        /// The server.
        server: String,
    },
    /// The host is ending.
    #[error("the gate is closed")]
    Closed,
    /// Saving a document was refused.
    #[error("nothing was saved: {}", .0.iter().map(ToString::to_string).collect::<Vec<_>>().join("; "))]
    Reconcile(Vec<ReconcileError>),
    /// Another host changed servers while a document was edited.
    #[error("another program changed {} since the document was opened, so nothing was saved", named(.changed))]
    Conflict {
        /// The servers that differ; none where only their order or the inputs do.
        changed: Vec<String>,
    },
    /// A name that exists already.
    #[error("there is a server `{}` already", display::escape(.name))]
    Exists {
        /// The name.
        name: String,
    },
    /// No such grant.
    #[error("there is no grant `{}`", display::escape(.id))]
    UnknownGrant {
        /// What was asked for.
        id: String,
    },
    /// No such secret.
    #[error("there is no secret `{}`", display::escape(.name))]
    UnknownSecret {
        /// What was asked for.
        name: String,
        /// A name that is close to it.
        near: Option<String>,
    },
    /// No document declares such an input.
    #[error("no document declares an input `{}`", display::escape(.id))]
    UnknownInput {
        /// What was asked for.
        id: String,
        /// An id that is close to it.
        near: Option<String>,
    },
    /// A field that holds no value of its own.
    #[error("`{}` of `{}` {why}", display::escape(.field), display::escape(.server))]
    NotMovable {
        /// The server.
        server: String,
        /// The field, such as `env.TOKEN`.
        field: String,
        /// Why it cannot go into the secret store.
        why: &'static str,
    },
    /// A secret cannot be called so.
    #[error("a secret cannot be called `{}`", display::escape(.name))]
    SecretName {
        /// The name.
        name: String,
        /// Why not.
        #[source]
        source: NameProblem,
    },
    /// A value that is none.
    #[error("the value is empty, so nothing was kept")]
    EmptySecret,
    /// The secret store failed.
    #[error(transparent)]
    Secret(#[from] SecretError),
    /// A question could not be put or answered.
    #[error(transparent)]
    Question(#[from] QuestionError),
    /// The store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The trail failed; nothing is done that it cannot hold.
    #[error("the audit trail cannot be written, so nothing was done")]
    Audit(#[from] AuditError),
}

/// `SessionError` already says what it is about where a start failed.
fn named(servers: &[String]) -> String {
    if servers.is_empty() {
        return "the inputs or the order of servers".to_owned();
    }
    servers.iter().map(|server| format!("`{}`", display::escape(server))).collect::<Vec<_>>().join(", ")
}

fn in_session(server: &str, tool: Option<&str>, error: &SessionError) -> String {
    match (error, tool) {
        (SessionError::Start { .. }, _) => error.to_string(),
        (_, Some(tool)) => {
            format!("call of `{}` on `{}` failed: {error}", display::escape(tool), display::escape(server))
        }
        (_, None) => format!("`{}` failed: {error}", display::escape(server)),
    }
}

impl GateError {
    /// What kind of failure it is.
    #[must_use]
    pub fn class(&self) -> ErrorClass {
        match self {
            Self::UnknownServer { .. }
            | Self::UnknownTool { .. }
            | Self::UnknownGrant { .. }
            | Self::UnknownSecret { .. }
            | Self::UnknownInput { .. }
            | Self::UnknownProject { .. }
            | Self::UnknownGroup { .. } => ErrorClass::Unknown,
            Self::NotMovable { .. } | Self::SecretName { .. } | Self::EmptySecret | Self::GroupExists { .. } => {
                ErrorClass::Usage
            }
            Self::Secret(SecretError::TooLong) => ErrorClass::Usage,
            Self::NotTrusted { .. }
            | Self::TrustChanged { .. }
            | Self::Locked { .. }
            | Self::WrongFingerprint { .. }
            | Self::NotEnabled { .. }
            | Self::NotDiscovered { .. }
            | Self::ToolNotEnabled { .. }
            | Self::ToolChanged { .. }
            | Self::Denied { .. }
            | Self::Question(_) => ErrorClass::Blocked,
            Self::Arguments { .. } | Self::Reconcile(_) | Self::Exists { .. } | Self::Conflict { .. } => {
                ErrorClass::Usage
            }
            Self::Transport { source: TransportError::Reference { .. } | TransportError::Value { .. }, .. } => {
                ErrorClass::Usage
            }
            Self::Transport { source: TransportError::Consent, .. } => ErrorClass::Blocked,
            Self::Transport { .. } | Self::NotRunning { .. } | Self::Stopped { .. } | Self::Closed => {
                ErrorClass::Unreachable
            }
            Self::Session { source, .. } => match &**source {
                SessionError::Ticket(_) => ErrorClass::Blocked,
                other => match other.link() {
                    Some(LinkError::AuthorizationRequired { .. }) => ErrorClass::Authorization,
                    Some(LinkError::Altered) => ErrorClass::Usage,
                    _ => ErrorClass::Unreachable,
                },
            },
            Self::Store(_) | Self::Audit(_) | Self::Secret(_) => ErrorClass::Internal,
        }
    }

    /// The step of a start that failed, where it was one.
    #[must_use]
    pub fn step(&self) -> Option<crate::session::Step> {
        match self {
            Self::Session { source, .. } => match **source {
                SessionError::Start { step, .. } => Some(step),
                _ => None,
            },
            _ => None,
        }
    }
}

impl From<ChangeError<GateError>> for GateError {
    fn from(error: ChangeError<GateError>) -> Self {
        match error {
            ChangeError::Refused(error) => error,
            ChangeError::Store(error) => Self::Store(error),
        }
    }
}

impl fmt::Display for ErrorClass {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Internal => "internal",
            Self::Usage => "usage",
            Self::Authorization => "authorization",
            Self::Unreachable => "unreachable",
            Self::Blocked => "blocked",
            Self::Unknown => "unknown",
        })
    }
}
