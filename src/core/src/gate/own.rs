//! Calls of tools that the host itself offers: decided and written down as every other.

use std::{sync::Arc, time::Duration};

use super::{CallContext, Gate, GateError, Requested};
use crate::{
    approval::{Call, PendingCall},
    audit::{AuditEvent, AuditLine},
    definition::Fingerprint,
    session::SessionId,
    store::State,
    tools::Tool,
};

impl Gate {
    /// Decides a call of a tool of the host's own, by the policies or by a person; `call.server` is how the host calls
    /// itself. What is done then is up to the host.
    ///
    /// An "always" lasts until this host ends: there is no server that it could hang off.
    ///
    /// # Errors
    ///
    /// [`GateError::Denied`], or what the store or the trail says.
    pub async fn decide_own(&self, tool: Arc<Tool>, call: Call, context: &CallContext) -> Result<(), GateError> {
        let key = self.key().await?;
        let fingerprint = Fingerprint::of_host(&key);
        let here = (fingerprint, tool.name().to_owned(), tool.pin(), call.caller.clone());
        let granted = self.granted().contains(&here);
        // A server of the document that has the host's name decides nothing about it.
        let state = Arc::new(State::default());
        let pending = PendingCall::new(call, SessionId::default(), fingerprint, tool, state, granted, &key);
        match self.judged(pending, true, context).await? {
            Requested::Allowed(_) => Ok(()),
            Requested::Asked(waiting) => self.asked(waiting, context).await.map(drop),
        }
    }

    /// Writes down what came of a call of a tool of the host's own.
    ///
    /// # Errors
    ///
    /// [`GateError::Audit`].
    pub async fn note_own(&self, call: &Call, outcome: &str, took: Duration) -> Result<(), GateError> {
        let hash = call.arguments.hash(&self.key().await?);
        self.record(&AuditLine {
            tool: Some(call.tool.clone()),
            caller: Some(call.caller.clone()),
            arguments_hash: Some(hash),
            outcome: Some(outcome.to_owned()),
            duration_ms: u64::try_from(took.as_millis()).ok(),
            ..Self::line(AuditEvent::Call, &call.server)
        })
    }
}
