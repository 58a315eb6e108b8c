//! What a person reads from a server besides its tools: resources, prompts, completions, its log.

use serde_json::value::RawValue;
use tokio::sync::broadcast;

use super::{
    CallContext, Gate, GateError,
    sessions::{Lease, Purpose},
};
use crate::{
    audit::{AuditEvent, AuditLine},
    canonical::hex,
    raw::RawResult,
    session::{Completed, ListKind, SessionError, SessionEvent},
};

impl Gate {
    /// An enabled server, started if it does not run.
    async fn enabled(&self, server: &str) -> Result<Lease, GateError> {
        self.session(server, Purpose::Call).await
    }

    /// Every item of a list of an enabled server, as it wrote them. Tools have their own way
    /// ([`refresh`](Self::refresh)), since they are compared with what was seen.
    ///
    /// # Errors
    ///
    /// [`GateError`]: not trusted, not enabled, did not start, does not offer it.
    pub async fn list(&self, server: &str, kind: ListKind) -> Result<Vec<Box<RawValue>>, GateError> {
        let Lease { session, .. } = &self.enabled(server).await?;
        session.list(kind).await.map_err(|error| self.failed(server, None, error))
    }

    /// Reads a resource of an enabled server.
    ///
    /// # Errors
    ///
    /// [`GateError`].
    pub async fn read(&self, server: &str, uri: &str) -> Result<RawResult, GateError> {
        self.read_for(server, uri, None, &CallContext::default()).await
    }

    /// The same for somebody else, who goes by `caller` in the trail.
    ///
    /// # Errors
    ///
    /// [`GateError`].
    pub async fn read_for(
        &self,
        server: &str,
        uri: &str,
        caller: Option<&str>,
        context: &CallContext,
    ) -> Result<RawResult, GateError> {
        let Lease { session, .. } = &self.enabled(server).await?;
        let result = session.read_resource(uri, &context.waiter).await;
        self.record_read(server, caller, ("resource", uri), &result).await?;
        result.map_err(|error| self.failed(server, None, error))
    }

    /// Gets a prompt of an enabled server, its arguments as a JSON object.
    ///
    /// # Errors
    ///
    /// [`GateError`].
    pub async fn prompt(&self, server: &str, name: &str, arguments: Option<&RawValue>) -> Result<RawResult, GateError> {
        self.prompt_for(server, name, arguments, None, &CallContext::default()).await
    }

    /// The same for somebody else, who goes by `caller` in the trail.
    ///
    /// # Errors
    ///
    /// [`GateError`].
    pub async fn prompt_for(
        &self,
        server: &str,
        name: &str,
        arguments: Option<&RawValue>,
        caller: Option<&str>,
        context: &CallContext,
    ) -> Result<RawResult, GateError> {
        let Lease { session, .. } = &self.enabled(server).await?;
        let result = session.get_prompt(name, arguments, &context.waiter).await;
        self.record_read(server, caller, ("prompt", name), &result).await?;
        result.map_err(|error| self.failed(server, None, error))
    }

    /// Asks an enabled server for values that may stand for an argument of which `value` was typed.
    ///
    /// # Errors
    ///
    /// [`GateError`].
    pub async fn complete(
        &self,
        server: &str,
        of: Completed<'_>,
        argument: &str,
        value: &str,
    ) -> Result<RawResult, GateError> {
        let Lease { session, .. } = &self.enabled(server).await?;
        session.complete(of, argument, value).await.map_err(|error| self.failed(server, None, error))
    }

    /// Whether an enabled server answers, and how long that took.
    ///
    /// # Errors
    ///
    /// [`GateError`].
    pub async fn ping(&self, server: &str) -> Result<std::time::Duration, GateError> {
        let Lease { session, .. } = &self.enabled(server).await?;
        let begun = tokio::time::Instant::now();
        session.ping().await.map_err(|error| self.failed(server, None, error))?;
        Ok(begun.elapsed())
    }

    /// How often a server said that one of its lists changed, since it was connected; 0 where it does not run. Starts
    /// nothing.
    #[must_use]
    pub fn list_changes(&self, server: &str, kind: ListKind) -> u64 {
        self.running(server).map(|session| session.list_changes(kind)).unwrap_or_default()
    }

    /// What an enabled server tells from now on: words for its log from `level` on (where it takes a
    /// level), changes of lists, and of the resources in `uris`. The server runs at least as long as the
    /// subscription is held.
    ///
    /// # Errors
    ///
    /// [`GateError`].
    pub async fn listen(&self, server: &str, level: Option<&str>, uris: &[String]) -> Result<Listening, GateError> {
        let lease = self.enabled(server).await?;
        let session = &lease.session;
        // From before anything is asked for: nothing is missed.
        let events = session.events();
        let failed = |error| self.failed(server, None, error);
        if let Some(level) = level {
            session.set_log_level(level).await.map_err(failed)?;
        }
        for uri in uris {
            session.subscribe(uri).await.map_err(failed)?;
        }
        Ok(Listening { lease, events })
    }

    /// A name or an address may say more than a trail should: its hash tells two apart.
    async fn record_read(
        &self,
        server: &str,
        caller: Option<&str>,
        (what, name): (&str, &str),
        result: &Result<RawResult, SessionError>,
    ) -> Result<(), GateError> {
        let hash = hex(&self.key().await?.mac("arguments", name.as_bytes()));
        self.record(&AuditLine {
            caller: caller.map(str::to_owned),
            arguments_hash: Some(hash),
            outcome: Some(if result.is_ok() { "ok" } else { "failed" }.to_owned()),
            detail: Some(what.to_owned()),
            ..Self::line(AuditEvent::Read, server)
        })
    }
}

/// Hears what a server tells.
#[derive(Debug)]
pub struct Listening {
    lease: Lease,
    events: broadcast::Receiver<SessionEvent>,
}

impl Listening {
    /// The last of what the server wrote to its standard error, escaped for display.
    #[must_use]
    pub fn stderr_tail(&self) -> String {
        self.lease.session.stderr_tail()
    }

    /// The next thing; nothing once the server ended. Cancel-safe. Whoever is too slow misses some, and is
    /// told how many.
    pub async fn next(&mut self) -> Option<Result<SessionEvent, u64>> {
        tokio::select! {
            biased;
            event = self.events.recv() => match event {
                Ok(event) => Some(Ok(event)),
                Err(broadcast::error::RecvError::Lagged(missed)) => Some(Err(missed)),
                Err(broadcast::error::RecvError::Closed) => None,
            },
            _ = self.lease.session.ended() => None,
        }
    }
}
