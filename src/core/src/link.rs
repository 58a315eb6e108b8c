//! An open connection: a wire that moves messages, and a keeper of whatever carries them.
//!
//! The keeper lives outside the wire because it outlives it: what carried a conversation is ended and
//! accounted for after the last message, and only the keeper can say how a process ended.

use std::{
    fmt::{self, Debug},
    sync::Arc,
    time::Duration,
};

use async_trait::async_trait;

use crate::{
    secret::Redactor,
    wire::{Wire, WireTraits},
};

type Source = Box<dyn std::error::Error + Send + Sync>;

/// Why an open link failed. One type for every wire, so that the gate can match on it.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LinkError {
    /// The server wants a log-in or a token.
    #[error("the server asks for authorization (HTTP {status})")]
    AuthorizationRequired {
        /// 401 or 403.
        status: u16,
        /// The `WWW-Authenticate` header, as it is.
        challenge: String,
        /// The scope it asks for.
        scope: Option<String>,
    },
    /// A message over the limit.
    #[error("the server sent a message of more than {limit} bytes")]
    TooLarge {
        /// [`Limits::message_bytes`](crate::Limits::message_bytes).
        limit: usize,
    },
    /// An HTTP status that is none of the expected ones.
    #[error("`{host}` answered with HTTP status {status}")]
    Status {
        /// The status.
        status: u16,
        /// Who answered.
        host: String,
    },
    /// A redirect, which is never followed.
    #[error("`{host}` answered with a redirect (HTTP {status}), which is never followed")]
    Redirect {
        /// The status.
        status: u16,
        /// Who answered.
        host: String,
    },
    /// The session ended on the server's side; the call was not repeated.
    #[error("the server no longer knows this session (HTTP 404)")]
    SessionExpired,
    /// Something that is no MCP answer.
    #[error("`{host}` did not answer with an MCP message: {what}")]
    NotMcp {
        /// Who answered.
        host: String,
        /// What came instead, without its text.
        what: String,
    },
    /// Nobody answered.
    #[error("`{host}` could not be reached")]
    Unreachable {
        /// Who was asked.
        host: String,
        /// Why.
        #[source]
        source: Source,
    },
    /// Whoever answered could not prove to be the one of the address; nothing was sent.
    #[error("the certificate of `{host}` {problem}, so nothing was sent")]
    Certificate {
        /// Who was asked.
        host: String,
        /// What is wrong with it.
        problem: CertificateProblem,
    },
    /// The wire cannot carry the arguments as they were approved; nothing was sent.
    #[error("this link would write the arguments otherwise than they were approved, so they were not sent")]
    Altered,
    /// The link was closed.
    #[error("the link is closed")]
    Closed,
    /// Writing or reading failed.
    #[error("the link broke")]
    Broken(#[source] Source),
}

/// What is wrong with a certificate.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum CertificateProblem {
    /// Its time is over.
    #[error("has expired")]
    Expired,
    /// Its time has not begun.
    #[error("is not valid yet")]
    NotYetValid,
    /// It names other hosts.
    #[error("is for another host")]
    OtherHost,
    /// It is signed by itself, or by somebody unknown.
    #[error("is signed by nobody whom this system trusts")]
    UnknownIssuer,
    /// Its issuer took it back.
    #[error("was revoked")]
    Revoked,
    /// Anything else.
    #[error("is not valid")]
    Invalid,
}

impl CertificateProblem {
    /// What to do about it.
    #[must_use]
    pub fn help(self) -> &'static str {
        match self {
            Self::Expired => "ask whoever runs the server to renew it; if it is new, check the clock of this machine",
            Self::NotYetValid => "check the clock of this machine",
            Self::OtherHost => "write the host that the certificate names into `url` of the document",
            Self::UnknownIssuer => {
                "if it is your own or your company's, add its authority to the certificates that this system trusts"
            }
            Self::Revoked | Self::Invalid => "ask whoever runs the server for a valid one",
        }
    }
}

impl LinkError {
    /// The same error without what a server repeats of its secrets.
    pub(crate) fn redacted(self, redactor: &Redactor) -> Self {
        let text = |text: String| redactor.redact(&text).into_owned();
        // A source keeps its type unless its words have to change.
        let source = |source: Source| {
            let words = format!("{source} {source:?}");
            if redactor.finds(&words) { Source::from(text(source.to_string())) } else { source }
        };
        match self {
            Self::AuthorizationRequired { status, challenge, scope } => {
                Self::AuthorizationRequired { status, challenge: text(challenge), scope: scope.map(text) }
            }
            Self::NotMcp { host, what } => Self::NotMcp { host, what: text(what) },
            Self::Unreachable { host, source: inner } => Self::Unreachable { host, source: source(inner) },
            Self::Broken(inner) => Self::Broken(source(inner)),
            other => other,
        }
    }

    /// Whether a server took the message and did not want it, so that another one may go.
    #[must_use]
    pub fn is_refusal(&self) -> bool {
        matches!(self, Self::Status { status: 400..=499, .. } | Self::NotMcp { .. })
    }

    /// The same error; of a source its words.
    pub(crate) fn again(&self) -> Self {
        let words = |source: &Source| Source::from(source.to_string());
        match self {
            Self::AuthorizationRequired { status, challenge, scope } => {
                Self::AuthorizationRequired { status: *status, challenge: challenge.clone(), scope: scope.clone() }
            }
            Self::TooLarge { limit } => Self::TooLarge { limit: *limit },
            Self::Status { status, host } => Self::Status { status: *status, host: host.clone() },
            Self::Redirect { status, host } => Self::Redirect { status: *status, host: host.clone() },
            Self::SessionExpired => Self::SessionExpired,
            Self::NotMcp { host, what } => Self::NotMcp { host: host.clone(), what: what.clone() },
            Self::Unreachable { host, source } => Self::Unreachable { host: host.clone(), source: words(source) },
            Self::Certificate { host, problem } => Self::Certificate { host: host.clone(), problem: *problem },
            Self::Altered => Self::Altered,
            Self::Closed => Self::Closed,
            Self::Broken(source) => Self::Broken(words(source)),
        }
    }
}

/// How what carries a link ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Exit {
    /// A process ended by itself with this status.
    Code(i32),
    /// A process was ended by this signal.
    Signal(i32),
    /// Nothing ran, or nothing is known.
    Unknown,
}

impl Exit {
    /// Itself, unless nothing is known.
    #[must_use]
    pub fn known(self) -> Option<Self> {
        (self != Self::Unknown).then_some(self)
    }
}

impl fmt::Display for Exit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Code(code) => write!(f, "exit status {code}"),
            Self::Signal(signal) => write!(f, "signal {signal}"),
            Self::Unknown => f.write_str("no exit status"),
        }
    }
}

/// Watches and ends what carries a link: a process tree, an HTTP session, nothing.
#[async_trait]
pub trait Keeper: Debug + Send + Sync {
    /// Completes once it ended, by itself or not; never where nothing can end. Cancel-safe.
    async fn ended(&self) -> Exit;
    /// The last of what the server wrote to its standard error, escaped for display.
    fn stderr_tail(&self) -> String;
    /// Ends everything that belongs to the link, also after a clean exit; idempotent. `grace` is
    /// waited twice at most: after the end of input and after the polite signal.
    async fn close(&self, grace: Duration) -> Exit;
}

/// For links that run nothing.
#[derive(Debug, Default)]
pub struct NoKeeper;

#[async_trait]
impl Keeper for NoKeeper {
    async fn ended(&self) -> Exit {
        std::future::pending().await
    }

    fn stderr_tail(&self) -> String {
        String::new()
    }

    async fn close(&self, _grace: Duration) -> Exit {
        Exit::Unknown
    }
}

/// An open connection to one server. Opaque: what is sent over it is the session's to decide.
pub struct Link {
    wire: Box<dyn Wire>,
    keeper: Arc<dyn Keeper>,
}

impl Debug for Link {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Link").field("keeper", &self.keeper).finish_non_exhaustive()
    }
}

impl Link {
    /// A link of one's own wire and keeper.
    pub fn new(wire: impl Wire, keeper: impl Keeper + 'static) -> Self {
        Self { wire: Box::new(wire), keeper: Arc::new(keeper) }
    }

    /// Any client transport of rmcp. `error` says what its errors mean.
    ///
    /// What passes it is written anew from rmcp's typed model: results lose what that does not know, and
    /// a call whose arguments would not survive is not sent ([`LinkError::Altered`]).
    pub fn rmcp<T>(transport: T, keeper: impl Keeper + 'static, error: fn(T::Error) -> LinkError) -> Self
    where
        T: rmcp::transport::Transport<rmcp::RoleClient> + 'static,
    {
        Self::new(crate::adapter::Adapted::new(transport, error), keeper)
    }

    pub(crate) fn keeper(&self) -> &Arc<dyn Keeper> {
        &self.keeper
    }

    pub(crate) fn traits(&self) -> WireTraits {
        self.wire.traits()
    }

    pub(crate) fn with_wire(self, wrap: impl FnOnce(Box<dyn Wire>) -> Box<dyn Wire>) -> Self {
        Self { wire: wrap(self.wire), keeper: self.keeper }
    }

    pub(crate) fn into_parts(self) -> (Box<dyn Wire>, Arc<dyn Keeper>) {
        (self.wire, self.keeper)
    }
}
