//! What is always allowed, and the trail of what was.

use std::{collections::HashSet, sync::PoisonError};

use super::{Gate, GateError, GrantedHere, find};
use crate::{
    approval::{Answer, PendingCall},
    audit::{AuditError, AuditEvent, AuditLine},
    store::{Grant, change},
};

impl Gate {
    /// All remembered grants, with their server.
    ///
    /// # Errors
    ///
    /// What the store says.
    pub async fn grants(&self) -> Result<Vec<(String, Grant)>, GateError> {
        let state = self.state().await?;
        let of = |name: &str| {
            state.runtime(name).grants.iter().map(|grant| (name.to_owned(), grant.clone())).collect::<Vec<_>>()
        };
        Ok(state.definitions.iter().flat_map(|definition| of(definition.name())).collect())
    }

    /// The newest `limit` lines of the trail, newest last.
    ///
    /// # Errors
    ///
    /// [`GateError::Audit`].
    pub async fn trail(&self, limit: usize) -> Result<Vec<AuditLine>, GateError> {
        self.0.flush();
        let audit = self.0.parts.audit.clone();
        // Reading some megabytes is not for a thread that others wait for.
        let read = tokio::task::spawn_blocking(move || audit.newest(limit)).await;
        Ok(read.map_err(|error| AuditError::Failed { problem: error.to_string() })??)
    }

    /// Takes a grant back.
    ///
    /// # Errors
    ///
    /// [`GateError::UnknownGrant`], or what the store says.
    pub async fn revoke(&self, id: &str) -> Result<(), GateError> {
        let grants = self.grants().await?;
        let Some((server, grant)) = grants.into_iter().find(|(_, grant)| grant.id == id) else {
            return Err(GateError::UnknownGrant { id: id.to_owned() });
        };
        self.decide(&server, |runtime| runtime.grants.retain(|other| other.id != id)).await?;
        let line = AuditLine { tool: Some(grant.tool), ..Self::line(AuditEvent::Revoke, &server) };
        self.record(&line)
    }

    pub(super) async fn grant(&self, answer: Answer, pending: &PendingCall) -> Result<(), GateError> {
        let tool = pending.tool();
        match answer {
            Answer::UntilHostEnds => {
                let key = (pending.fingerprint(), tool.name().to_owned(), tool.pin(), pending.call().caller.clone());
                self.granted().insert(key);
            }
            Answer::Always | Answer::AlwaysForCaller => {
                let key = self.key().await?;
                let grant = Grant {
                    id: grant_id()?,
                    tool: tool.name().to_owned(),
                    pin: tool.pin(),
                    caller: (answer == Answer::AlwaysForCaller).then(|| pending.call().caller.clone()),
                    at: jiff::Timestamp::now().to_string(),
                };
                let server = pending.call().server.clone();
                self.record(&AuditLine {
                    tool: Some(grant.tool.clone()),
                    caller: grant.caller.clone(),
                    ..Self::line(AuditEvent::Grant, &server)
                })?;
                change(self.store(), |state| {
                    let runtime = state.runtime(&server);
                    let same = find(state, &server)?.fingerprint(&key) == pending.fingerprint()
                        && runtime.trust.is_some()
                        && runtime.enabled_tools.get(&grant.tool) == Some(&grant.pin);
                    if same
                        && let Some(runtime) = state.runtime_mut(&server)
                        && !runtime.grants.iter().any(|other| {
                            other.tool == grant.tool && other.pin == grant.pin && other.caller == grant.caller
                        })
                    {
                        runtime.grants.push(grant.clone());
                    }
                    Ok::<_, GateError>(())
                })
                .await?;
            }
            Answer::Once | Answer::Deny => {}
        }
        Ok(())
    }

    pub(super) fn granted(&self) -> std::sync::MutexGuard<'_, HashSet<GrantedHere>> {
        self.0.granted.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn grant_id() -> Result<String, GateError> {
    let mut id = [0; 4];
    getrandom::fill(&mut id).map_err(|_| crate::store::StoreError::Random)?;
    Ok(crate::canonical::hex(&id))
}
