//! Why a session or a request failed: which step, what the server left behind, what to do.

use std::{fmt, time::Duration};

use super::{ListKind, RequestKind, message::RpcError};
use crate::{
    approval::TicketError,
    display,
    link::{Exit, LinkError},
    secret::Redactor,
};

/// Lines of standard error shown in a message; the whole tail is in [`Ended`].
const SHOWN_LINES: usize = 8;

/// How much of a server's words an error holds, in bytes; its standard error has a limit of its own.
const ERROR_BYTES: usize = 16 << 10;

/// How a session ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ended {
    /// How what carried it ended.
    pub exit: Exit,
    /// The last of its standard error, escaped for display.
    pub stderr: String,
}

impl Ended {
    /// To follow a reason: nothing where nothing is known.
    fn after(&self) -> String {
        if self.exit == Exit::Unknown && self.stderr.trim().is_empty() { String::new() } else { format!("; {self}") }
    }
}

impl fmt::Display for Ended {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.exit {
            Exit::Unknown => f.write_str("the connection is closed")?,
            exit => write!(f, "{exit}")?,
        }
        let lines: Vec<_> = self.stderr.lines().filter(|line| !line.trim().is_empty()).collect();
        let shown = &lines[lines.len().saturating_sub(SHOWN_LINES)..];
        if !shown.is_empty() {
            f.write_str("; it last wrote:")?;
            for line in shown {
                write!(f, "\n  | {line}")?;
            }
        }
        Ok(())
    }
}

/// A step of starting a server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Step {
    /// The MCP handshake.
    Initialize,
    /// The first list of tools.
    ListTools,
}

impl fmt::Display for Step {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Initialize => "initialize",
            Self::ListTools => "list tools",
        })
    }
}

/// Why a session could not be opened or a request got no result.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SessionError {
    /// It did not start.
    #[error("`{}` did not start: {cause} at the step `{step}`{}", display::escape(.server), .ended.after())]
    Start {
        /// The server.
        server: String,
        /// Where it stopped.
        step: Step,
        /// Why.
        cause: Cause,
        /// What was left of it.
        ended: Ended,
    },
    /// The approval does not fit any more; nothing was sent.
    #[error(transparent)]
    Ticket(#[from] TicketError),
    /// It was over before the request; nothing was sent.
    #[error("the server is not running: {0}")]
    NotRunning(Ended),
    /// It ended while the request waited; the call may have run and is not repeated.
    #[error("the server ended before it answered: {0}")]
    Ended(Ended),
    /// A limit passed; the server was told that nobody waits any more.
    #[error("the server took more than {} {kind}", seconds(.limit))]
    TimedOut {
        /// The limit.
        limit: Duration,
        /// Which of them, in words.
        kind: &'static str,
    },
    /// The link failed.
    #[error("{}", chain(.0))]
    Link(#[source] LinkError),
    /// The server answered with a JSON-RPC error.
    #[error("the server answered with error {code}: {}", display::escape(.message))]
    Rpc {
        /// Its code.
        code: i64,
        /// Its words.
        message: String,
        /// What it says besides, as JSON text; left out where it is long.
        data: Option<String>,
    },
    /// Both sides could not agree on how to talk.
    #[error("{what}")]
    Handshake {
        /// Why.
        what: String,
    },
    /// The server's answer is no MCP message.
    #[error("the server's answer could not be read as an MCP message")]
    Unreadable,
    /// The server wants to know something that it is not told.
    #[error("the server asked for {kind}, and got none: {reason}")]
    Input {
        /// What it asked for.
        kind: RequestKind,
        /// Why it got none.
        reason: String,
    },
    /// The server asks again and again before it does anything.
    #[error("the server asked for more and more before it did anything")]
    Rounds,
    /// The task that the call became came to nothing.
    #[error("the task that the call became came to nothing: {}", display::escape(.what))]
    Task {
        /// Why.
        what: String,
    },
    /// No result of the tool could be checked by the schema that it declares; nothing was sent.
    #[error("the `outputSchema` of the tool is no use: {what}; nothing was sent")]
    OutputSchema {
        /// Why.
        what: String,
    },
    /// The tool ran, and its result is not what its server promised; it is not handed on.
    #[error("the tool ran, and its result does not keep to its `outputSchema`: {what}")]
    Output {
        /// Where and in what; no value is repeated.
        what: String,
    },
    /// A list that does not end or is too long.
    #[error("the server's list of {} has {what}", .kind.items())]
    List {
        /// Which.
        kind: ListKind,
        /// What is wrong with it.
        what: String,
    },
}

/// Why a start failed.
#[derive(Debug)]
pub enum Cause {
    /// A limit passed.
    TimedOut {
        /// The limit.
        limit: Duration,
    },
    /// What carried it ended.
    Ended,
    /// Nobody waits for it any more.
    GivenUp,
    /// The link failed.
    Link(LinkError),
    /// The server refused, or spoke something else.
    Said(String),
}

impl fmt::Display for Cause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::TimedOut { limit } => write!(f, "nothing came within {}", seconds(limit)),
            Self::Ended => f.write_str("it ended"),
            Self::GivenUp => f.write_str("it was given up"),
            Self::Link(error) => f.write_str(&chain(error)),
            Self::Said(what) => f.write_str(what),
        }
    }
}

impl SessionError {
    pub(super) fn start(server: &str, step: Step, cause: Cause, ended: Ended) -> Self {
        Self::Start { server: server.to_owned(), step, cause, ended }
    }

    pub(super) fn into_cause(self) -> Cause {
        match self {
            Self::NotRunning(_) | Self::Ended(_) => Cause::Ended,
            Self::Link(LinkError::Closed | LinkError::Broken(_)) => Cause::Ended,
            Self::Link(error) => Cause::Link(error),
            Self::TimedOut { limit, .. } => Cause::TimedOut { limit },
            other => Cause::Said(other.to_string()),
        }
    }

    /// The same without what a server repeats of its secrets.
    pub(crate) fn redacted(self, redactor: &Redactor) -> Self {
        let text = |text: String| shortened(redactor.redact(&text).into_owned());
        let ended = |ended: Ended| Ended { stderr: redactor.redact(&ended.stderr).into_owned(), ..ended };
        match self {
            Self::Start { server, step, cause, ended: left } => {
                let cause = match cause {
                    Cause::Link(error) => Cause::Link(error.redacted(redactor)),
                    Cause::Said(what) => Cause::Said(text(what)),
                    other => other,
                };
                Self::Start { server, step, cause, ended: ended(left) }
            }
            Self::NotRunning(left) => Self::NotRunning(ended(left)),
            Self::Ended(left) => Self::Ended(ended(left)),
            Self::Link(error) => Self::Link(error.redacted(redactor)),
            Self::Rpc { code, message, data } => {
                Self::Rpc { code, message: text(message), data: data.map(|data| redactor.redact(&data).into_owned()) }
            }
            Self::Handshake { what } => Self::Handshake { what: text(what) },
            Self::Task { what } => Self::Task { what: text(what) },
            Self::OutputSchema { what } => Self::OutputSchema { what: text(what) },
            Self::Output { what } => Self::Output { what: text(what) },
            Self::Input { kind, reason } => Self::Input { kind, reason: text(reason) },
            Self::List { kind, what } => Self::List { kind, what: text(what) },
            other => other,
        }
    }

    /// The link's own error, where it is one.
    #[must_use]
    pub fn link(&self) -> Option<&LinkError> {
        match self {
            Self::Link(error) | Self::Start { cause: Cause::Link(error), .. } => Some(error),
            _ => None,
        }
    }
}

pub(super) fn of_rpc(error: RpcError) -> SessionError {
    let data = error.data.filter(|data| data.len() <= ERROR_BYTES);
    SessionError::Rpc { code: error.code, message: error.message, data }
}

/// What a server says about a failure, as far as it belongs into a message.
fn shortened(mut text: String) -> String {
    if text.len() > ERROR_BYTES {
        let (length, end) = (text.len(), (0..=ERROR_BYTES).rev().find(|at| text.is_char_boundary(*at)));
        text.truncate(end.unwrap_or_default());
        text.push_str(&format!("… ({length} bytes altogether)"));
    }
    text
}

/// An error and its sources in one line.
fn chain(error: &LinkError) -> String {
    let mut text = error.to_string();
    let mut source = std::error::Error::source(error);
    while let Some(inner) = source {
        let inner_text = inner.to_string();
        if !text.contains(&inner_text) {
            text.push_str(": ");
            text.push_str(&display::escape(&inner_text));
        }
        source = inner.source();
    }
    text
}

fn seconds(limit: &Duration) -> String {
    let seconds = limit.as_secs_f64();
    if seconds.fract() == 0.0 { format!("{seconds:.0} s") } else { format!("{seconds:.1} s") }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::secret::Secret;

    #[test]
    fn s32_s59_a_servers_words_are_redacted_before_they_are_cut() {
        let redactor = Redactor::default();
        redactor.learn("env.TOKEN", &Secret::new("canary-7f3"));
        let said = |message: String| match (SessionError::Rpc { code: 1, message, data: None }).redacted(&redactor) {
            SessionError::Rpc { message, .. } => message,
            other => panic!("{other}"),
        };
        assert_eq!(said("é".repeat(ERROR_BYTES / 2)).len(), ERROR_BYTES);
        let cut = said(format!("{}canary-7f3", "x".repeat(ERROR_BYTES - 4)));
        assert!(!cut.contains("cana") && cut.ends_with(" bytes altogether)"), "{}", &cut[ERROR_BYTES - 10..]);
    }
}
