//! The protocol revision of a session, and what it changes about every message.

use std::{borrow::Cow, sync::Arc};

use serde::Deserialize;
use serde_json::{json, value::RawValue};

use super::client::{ClientHandler, Offers};

/// The newest revision with a handshake.
pub(super) const WITH_HANDSHAKE: &str = "2025-11-25";
/// The first revision without one: each request says for itself who asks.
pub(super) const STATELESS: &str = "2026-07-28";
/// Every revision that this host speaks, newest first.
pub(super) const KNOWN: &[&str] = &[STATELESS, WITH_HANDSHAKE, "2025-06-18", "2025-03-26", "2024-11-05"];

/// What a server said of itself, and what was agreed upon.
#[derive(Debug, Clone)]
pub(crate) struct Era {
    revision: Arc<str>,
    stateless: bool,
    meta: String,
    /// What the host offers, as `meta` says it.
    offers: Offers,
    server: ServerInfo,
}

/// What a server says of itself when it starts.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct ServerInfo {
    pub(super) capabilities: Capabilities,
    pub(super) server_info: Option<Implementation>,
    pub(super) instructions: Option<String>,
}

/// What it offers, as far as it concerns us.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct Capabilities {
    pub(super) tools: Option<Box<RawValue>>,
    pub(super) resources: Option<Box<RawValue>>,
    pub(super) prompts: Option<Box<RawValue>>,
    pub(super) completions: Option<Box<RawValue>>,
    pub(super) logging: Option<Box<RawValue>>,
}

/// A name and a version.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub(crate) struct Implementation {
    pub(super) name: String,
    pub(super) version: String,
}

/// The extension of tasks (SEP-2663).
const TASKS: &str = "io.modelcontextprotocol/tasks";

impl Era {
    /// One of a server that shook hands.
    pub(super) fn with_handshake(revision: &str, server: ServerInfo) -> Self {
        Self { revision: revision.into(), stateless: false, meta: String::new(), offers: Offers::default(), server }
    }

    /// One of a server that is told everything with every request.
    pub(super) fn stateless(revision: &str, offers: Offers, server: ServerInfo) -> Self {
        let meta = meta(revision, offers, true);
        Self { revision: revision.into(), stateless: true, meta, offers, server }
    }

    pub(super) fn revision(&self) -> &Arc<str> {
        &self.revision
    }

    pub(super) fn is_stateless(&self) -> bool {
        self.stateless
    }

    /// The members that every `_meta` holds.
    pub(super) fn meta(&self) -> &str {
        &self.meta
    }

    /// The same for a request that is made for somebody who offers something else than the host, or wants to
    /// hear words for a log.
    pub(super) fn meta_for(&self, handler: &dyn ClientHandler) -> Cow<'_, str> {
        if !self.stateless {
            return Cow::Borrowed(&self.meta);
        }
        let (offers, level) = (handler.offers(), handler.log_level());
        let tasks = handler.takes_tasks();
        let mut members = match offers == self.offers && tasks {
            true => Cow::Borrowed(self.meta.as_str()),
            false => Cow::Owned(meta(&self.revision, offers, tasks)),
        };
        if let Some(level) = level {
            members.to_mut().push_str(&format!(r#","io.modelcontextprotocol/logLevel":"{level}""#));
        }
        members
    }

    pub(super) fn server(&self) -> &ServerInfo {
        &self.server
    }
}

/// Who asks, in every request (SEP-2575), and whether calls may become tasks (SEP-2663).
pub(super) fn meta(revision: &str, offers: Offers, tasks: bool) -> String {
    let mut capabilities = offers.capabilities();
    if tasks {
        capabilities["extensions"] = json!({TASKS: {}});
    }
    let members = json!({
        "io.modelcontextprotocol/protocolVersion": revision,
        "io.modelcontextprotocol/clientInfo": client_info(),
        "io.modelcontextprotocol/clientCapabilities": capabilities,
    })
    .to_string();
    members[1..members.len() - 1].to_owned()
}

/// Who we are.
pub(super) fn client_info() -> serde_json::Value {
    json!({"name": "portcullis", "version": env!("CARGO_PKG_VERSION")})
}

/// Whether a capability says that changes are told.
pub(super) fn tells_changes(capability: &RawValue) -> bool {
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Tells {
        #[serde(default)]
        list_changed: bool,
    }
    serde_json::from_str::<Tells>(capability.get()).is_ok_and(|tells| tells.list_changed)
}
