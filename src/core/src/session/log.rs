//! Words of a server for a log, for whoever waits for it.

use std::fmt;

use serde::{Deserialize, Serialize};

use super::{Session, waiter::Waiter};

/// How much weight words for a log have, as RFC 5424 and MCP name them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[allow(missing_docs, reason = "the names say it")]
pub enum LogLevel {
    Debug,
    Info,
    Notice,
    Warning,
    Error,
    Critical,
    Alert,
    Emergency,
}

impl fmt::Display for LogLevel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Debug => "debug",
            Self::Info => "info",
            Self::Notice => "notice",
            Self::Warning => "warning",
            Self::Error => "error",
            Self::Critical => "critical",
            Self::Alert => "alert",
            Self::Emergency => "emergency",
        })
    }
}

/// The level of the parameters of a `notifications/message`.
pub(super) fn level(params: &str) -> Option<LogLevel> {
    #[derive(Deserialize)]
    struct Message {
        level: LogLevel,
    }
    serde_json::from_str::<Message>(params).ok().map(|message| message.level)
}

impl Session {
    /// Has a server that shook hands tell as much as `waiter` wants to hear; one that does not is heard as it is.
    /// From revision 2026-07-28 on each request says it for itself.
    pub(super) async fn tells_enough(&self, waiter: &Waiter) {
        let Some(wanted) = waiter.handler.as_ref().and_then(|handler| handler.log_level()) else { return };
        let takes_a_level =
            self.peer.era().is_some_and(|era| !era.is_stateless() && era.server().capabilities.logging.is_some());
        if !takes_a_level {
            return;
        }
        let mut told = self.told_level.lock().await;
        if told.is_none_or(|told| told > wanted) {
            *told = Some(wanted);
            if let Err(error) = self.set_log_level(&wanted.to_string()).await {
                tracing::debug!(server = self.server, %error, "the server takes no level for its log");
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_level_is_written_as_it_is_read_and_ordered_by_weight() {
        let names = ["debug", "info", "notice", "warning", "error", "critical", "alert", "emergency"];
        let levels = names.map(|name| level(&format!(r#"{{"level":"{name}","data":1}}"#)).unwrap());
        assert_eq!(levels.map(|level| level.to_string()), names);
        assert!(levels.is_sorted());
        assert_eq!(level(r#"{"level":"loud"}"#), None);
    }
}
