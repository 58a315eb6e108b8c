//! Everything but tools that a server offers: resources, prompts, completion, logging.

use serde_json::value::RawValue;

use super::{Session, SessionError, SessionEvent, era::Era, message::Params, waiter::Waiter};
use crate::raw::RawResult;

/// What values are completed for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Completed<'a> {
    /// An argument of the prompt of this name.
    Prompt(&'a str),
    /// A variable of the resource template of this URI.
    Resource(&'a str),
}

impl Session {
    /// Reads a resource.
    ///
    /// # Errors
    ///
    /// [`SessionError`].
    pub async fn read_resource(&self, uri: &str, waiter: &Waiter) -> Result<RawResult, SessionError> {
        self.tells_enough(waiter).await;
        let params = Params::default().with("uri", uri);
        self.ask("resources/read", &params, Some(uri), waiter).await
    }

    /// Gets a prompt, its arguments as a JSON object.
    ///
    /// # Errors
    ///
    /// [`SessionError`].
    pub async fn get_prompt(
        &self,
        name: &str,
        arguments: Option<&RawValue>,
        waiter: &Waiter,
    ) -> Result<RawResult, SessionError> {
        self.tells_enough(waiter).await;
        let mut params = Params::default().with("name", name);
        if let Some(arguments) = arguments {
            params = params.raw("arguments", &arguments.get().replace(['\n', '\r'], " "));
        }
        self.ask("prompts/get", &params, Some(name), waiter).await
    }

    /// Asks for values that may stand for an argument of which `value` was typed.
    ///
    /// # Errors
    ///
    /// [`SessionError`].
    pub async fn complete(&self, of: Completed<'_>, argument: &str, value: &str) -> Result<RawResult, SessionError> {
        let reference = match of {
            Completed::Prompt(name) => serde_json::json!({"type": "ref/prompt", "name": name}),
            Completed::Resource(uri) => serde_json::json!({"type": "ref/resource", "uri": uri}),
        };
        let params = Params::default()
            .with("ref", reference)
            .with("argument", serde_json::json!({"name": argument, "value": value}));
        self.ask("completion/complete", &params, None, &Waiter::default()).await
    }

    /// How often the server said that a list changed, since it was connected.
    #[must_use]
    pub fn list_changes(&self, kind: super::ListKind) -> u64 {
        self.peer.incoming.list_changes(kind)
    }

    /// Whether the server answers. From revision 2026-07-28 on there is no ping, and it is asked what it is.
    ///
    /// # Errors
    ///
    /// [`SessionError`].
    pub async fn ping(&self) -> Result<(), SessionError> {
        let stateless = self.peer.era().is_some_and(Era::is_stateless);
        let method = if stateless { "server/discover" } else { "ping" };
        self.request(method, &Params::default(), &Waiter::default(), |_| {}).await.map(drop)
    }

    /// Asks the server for words for a log, from `level` (`debug` … `emergency`) on.
    ///
    /// # Errors
    ///
    /// [`SessionError`].
    pub async fn set_log_level(&self, level: &str) -> Result<(), SessionError> {
        let params = Params::default().with("level", level);
        self.request("logging/setLevel", &params, &Waiter::default(), |_| {}).await.map(drop)
    }

    /// Asks to be told when a resource changes ([`SessionEvent::ResourceUpdated`]).
    ///
    /// # Errors
    ///
    /// [`SessionError`].
    pub async fn subscribe(&self, uri: &str) -> Result<(), SessionError> {
        if self.peer.era().is_some_and(Era::is_stateless) {
            self.listener.resource(uri, true);
            return Ok(());
        }
        self.ask("resources/subscribe", &Params::default().with("uri", uri), Some(uri), &Waiter::default())
            .await
            .map(drop)
    }

    /// Asks to be told no longer.
    ///
    /// # Errors
    ///
    /// [`SessionError`].
    pub async fn unsubscribe(&self, uri: &str) -> Result<(), SessionError> {
        if self.peer.era().is_some_and(Era::is_stateless) {
            self.listener.resource(uri, false);
            return Ok(());
        }
        self.ask("resources/unsubscribe", &Params::default().with("uri", uri), Some(uri), &Waiter::default())
            .await
            .map(drop)
    }

    /// What the server tells from now on. A listener that is too slow misses some.
    #[must_use]
    pub fn events(&self) -> tokio::sync::broadcast::Receiver<SessionEvent> {
        self.peer.incoming.events()
    }

    /// The server's own words on how to use it. Never to be merged into anybody's instructions.
    #[must_use]
    pub fn instructions(&self) -> Option<&str> {
        self.peer.era()?.server().instructions.as_deref()
    }

    /// Whether arguments that a schema marks travel as headers too.
    pub(crate) fn wants_headers(&self) -> bool {
        self.peer.traits().headers && self.peer.era().is_some_and(Era::is_stateless)
    }

    /// The protocol revision that is spoken.
    #[must_use]
    pub fn revision(&self) -> Option<&str> {
        self.peer.era().map(|era| &**era.revision())
    }
}
