//! What a server may ask of its client, and who answers it.

use std::{
    borrow::Cow,
    fmt::{self, Debug},
};

use async_trait::async_trait;
use serde::Deserialize;
use serde_json::{Value, json};

use super::log::LogLevel;
use crate::display;

/// What kind of thing a server asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum RequestKind {
    /// Words or a visit of a page from the person (`elicitation/create`).
    Elicitation,
    /// An answer of the model (`sampling/createMessage`).
    Sampling,
    /// The folders that the person works in (`roots/list`).
    Roots,
}

impl RequestKind {
    /// The kind that a method stands for.
    #[must_use]
    pub fn of(method: &str) -> Option<Self> {
        match method {
            "elicitation/create" => Some(Self::Elicitation),
            "sampling/createMessage" => Some(Self::Sampling),
            "roots/list" => Some(Self::Roots),
            _ => None,
        }
    }

    /// The method by which it is asked for.
    #[must_use]
    pub fn method(self) -> &'static str {
        match self {
            Self::Elicitation => "elicitation/create",
            Self::Sampling => "sampling/createMessage",
            Self::Roots => "roots/list",
        }
    }

    /// The capability that a client names to be asked it.
    #[must_use]
    pub fn capability(self) -> &'static str {
        match self {
            Self::Elicitation => "elicitation",
            Self::Sampling => "sampling",
            Self::Roots => "roots",
        }
    }
}

/// A request of a server.
#[derive(Debug, Clone)]
pub struct ServerRequest {
    /// Who asks, by its name in the document: to be shown with whatever it asks.
    pub server: String,
    /// For what.
    pub kind: RequestKind,
    /// Under which name it expects the answer, where it gave one (`inputRequests`, SEP-2322).
    pub key: Option<String>,
    /// The parameters as the server wrote them; `{}` where it wrote none.
    pub params: String,
}

/// Why a server gets no answer.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Refusal {
    /// This client does not offer it: to the server there is no such method.
    #[error("this client does not offer that")]
    NotOffered,
    /// A person or a rule said no.
    #[error("{0}")]
    Denied(String),
}

impl Refusal {
    /// JSON-RPC code and words.
    pub(super) fn rpc(&self) -> (i64, String) {
        match self {
            Self::NotOffered => (-32_601, self.to_string()),
            Self::Denied(_) => (-1, display::escape(&self.to_string()).into_owned()),
        }
    }
}

/// A call that became a task of its server, as the server describes it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TaskStatus {
    /// What it says of where it stands: the server's words, secrets included if it repeats them.
    pub message: Option<String>,
    /// How long the server keeps it, in milliseconds since its beginning; nothing where it does not say.
    pub ttl_ms: Option<u64>,
    /// How long the server wants to be left alone between two questions, in milliseconds.
    pub poll_interval_ms: Option<u64>,
}

/// What a client offers.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[allow(clippy::struct_excessive_bools, reason = "the capabilities of the specification")]
pub struct Offers {
    /// Forms that a person fills in.
    pub elicitation_form: bool,
    /// Pages that a person visits.
    pub elicitation_url: bool,
    /// Answers of the model.
    pub sampling: bool,
    /// The folders that the person works in.
    pub roots: bool,
}

impl Offers {
    /// As `capabilities` says it.
    pub(super) fn capabilities(self) -> Value {
        let mut capabilities = serde_json::Map::new();
        if self.elicitation_form || self.elicitation_url {
            let mut modes = serde_json::Map::new();
            if self.elicitation_form {
                modes.insert("form".to_owned(), json!({}));
            }
            if self.elicitation_url {
                modes.insert("url".to_owned(), json!({}));
            }
            capabilities.insert("elicitation".to_owned(), modes.into());
        }
        if self.sampling {
            capabilities.insert("sampling".to_owned(), json!({}));
        }
        if self.roots {
            capabilities.insert("roots".to_owned(), json!({}));
        }
        capabilities.into()
    }

    /// Whether a request of this kind, with these parameters, was offered.
    pub(super) fn has(self, kind: RequestKind, params: &str) -> bool {
        match kind {
            RequestKind::Elicitation if wants_a_page(params) => self.elicitation_url,
            RequestKind::Elicitation => self.elicitation_form,
            RequestKind::Sampling => self.sampling,
            RequestKind::Roots => self.roots,
        }
    }
}

/// Whether an elicitation is about a page to visit rather than a form, which it is where it says nothing.
fn wants_a_page(params: &str) -> bool {
    #[derive(Deserialize)]
    struct Mode<'a> {
        #[serde(borrow, default)]
        mode: Option<Cow<'a, str>>,
    }
    serde_json::from_str::<Mode<'_>>(params).is_ok_and(|params| params.mode.as_deref() == Some("url"))
}

/// Answers what servers ask; a host supplies it. [`Refusing`] offers nothing.
///
/// # Behaviour
///
/// - Asked for nothing that [`offers`](Self::offers) does not name.
/// - The clock of a call that waits stops while it thinks.
/// - It may be dropped at any await: the session ended.
#[cfg_attr(any(test, feature = "mocks"), mockall::automock)]
#[async_trait]
pub trait ClientHandler: Debug + Send + Sync {
    /// What servers are told when they start.
    fn offers(&self) -> Offers;

    /// The result, as JSON text.
    ///
    /// # Errors
    ///
    /// [`Refusal`], which the server is told.
    async fn answer(&self, request: ServerRequest) -> Result<String, Refusal>;

    /// Something was asked that is not offered, and refused.
    fn missed(&self, kind: RequestKind) {
        let _ = kind;
    }

    /// From which level on it wants to hear words for a log of a server that it waits for; nothing by default.
    fn log_level(&self) -> Option<LogLevel> {
        None
    }

    /// Words for a log, as the server wrote the parameters of its `notifications/message`. Does not block.
    fn logged(&self, server: &str, level: LogLevel, params: &str) {
        let _ = (server, level, params);
    }

    /// Whether it can be asked now. Of several requests of one client, one that can is meant.
    fn is_listening(&self) -> bool {
        true
    }

    /// Whether a server may turn a call of its into a task (SEP-2663), which this session then asks after. Where not,
    /// the server says that it cannot do without.
    fn takes_tasks(&self) -> bool {
        true
    }

    /// The call that it is for goes on as a task of the server; said at its beginning, and at each look at it. Does
    /// not block.
    fn works(&self, task: &TaskStatus) {
        let _ = task;
    }

    /// Whether it answers for every request of its client. One that is known as a client's by its name alone does
    /// not: two programs may have that name.
    fn answers_for_all(&self) -> bool {
        true
    }
}

/// Offers nothing.
#[derive(Debug, Clone, Copy, Default)]
pub struct Refusing;

#[async_trait]
impl ClientHandler for Refusing {
    fn offers(&self) -> Offers {
        Offers::default()
    }

    async fn answer(&self, _: ServerRequest) -> Result<String, Refusal> {
        Err(Refusal::NotOffered)
    }
}

impl fmt::Display for RequestKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Elicitation => "elicitation",
            Self::Sampling => "sampling",
            Self::Roots => "roots",
        })
    }
}
