//! Running servers: at most one process each, started once for all who wait, ended when what they
//! run for is no longer so.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, PoisonError, Weak},
    time::Duration,
};

use futures::future::join_all;
use tokio::sync::Mutex as AsyncMutex;

use super::{Gate, GateError, Inner, find};
use crate::{
    audit::{AuditEvent, AuditLine},
    definition::Fingerprint,
    session::{Session, SessionLimits},
    store::State,
    trust::Resolution,
};

/// How often a running host looks whether another one changed the store.
const LOOK: Duration = Duration::from_secs(1);

#[derive(Debug)]
struct Running {
    session: Arc<Session>,
    fingerprint: Fingerprint,
    resolution: Resolution,
    /// The state that it was last compared with.
    state: Weak<State>,
}

/// One server's place; whoever holds it starts or ends the server, the others wait.
type Slot = Arc<AsyncMutex<Option<Running>>>;

#[derive(Debug, Default)]
pub(super) struct Sessions {
    slots: Mutex<HashMap<String, Slot>>,
    watching: Mutex<bool>,
}

impl Sessions {
    fn slot(&self, name: &str) -> Slot {
        self.slots.lock().unwrap_or_else(PoisonError::into_inner).entry(name.to_owned()).or_default().clone()
    }

    fn all(&self) -> Vec<(String, Slot)> {
        let slots = self.slots.lock().unwrap_or_else(PoisonError::into_inner);
        slots.iter().map(|(name, slot)| (name.clone(), slot.clone())).collect()
    }

    pub(super) async fn stop(&self, name: &str) {
        let slot = self.slots.lock().unwrap_or_else(PoisonError::into_inner).get(name).cloned();
        if let Some(slot) = slot
            && let Some(running) = slot.lock().await.take()
        {
            running.session.close().await;
        }
    }

    pub(super) async fn close_all(&self) {
        let slots = self.all();
        join_all(slots.iter().map(|(name, _)| self.stop(name))).await;
    }
}

impl Gate {
    /// The session of a trusted server, started if it does not run. Several who wait share one
    /// start; dropping the future of the one who starts it ends the start.
    ///
    /// Enabled or not is for the caller to know: a refresh runs before anything is enabled.
    pub(super) async fn session(&self, state: &Arc<State>, name: &str) -> Result<Arc<Session>, GateError> {
        let definition = find(state, name)?;
        let Some(record) = &state.runtime(name).trust else {
            return Err(GateError::NotTrusted { server: name.to_owned() });
        };
        let slot = self.0.sessions.slot(name);
        let mut slot = slot.lock().await;
        let same = |running: &Running| std::ptr::eq(running.state.as_ptr(), Arc::as_ptr(state));
        if let Some(running) = &*slot
            && same(running)
            && !running.session.is_over()
        {
            return Ok(running.session.clone());
        }
        let fingerprint = definition.fingerprint(&self.key_of(state).await?);
        if let Some(running) = &mut *slot
            && running.fingerprint == fingerprint
            && running.resolution == record.resolution
            && !running.session.is_over()
        {
            running.state = Arc::downgrade(state);
            return Ok(running.session.clone());
        }
        if let Some(old) = slot.take() {
            old.session.close().await;
        }
        let plan = self.plan(definition)?;
        let resolution = plan.view().resolution();
        let consent = Self::remembered(name, record, fingerprint, plan.view())?;
        let failed = |source| GateError::Transport { server: name.to_owned(), source };
        let link = plan.open(consent, &*self.0.parts.secrets).await.map_err(failed)?;
        let limits = SessionLimits::new(&self.0.parts.context.limits, definition);
        let session = Session::open(name, fingerprint, link, limits).await.map_err(|error| GateError::Session {
            server: name.to_owned(),
            tool: None,
            source: Box::new(error),
        })?;
        let session = Arc::new(session);
        self.record_done(&Self::line(AuditEvent::Start, name));
        *slot = Some(Running { session: session.clone(), fingerprint, resolution, state: Arc::downgrade(state) });
        self.watch_store();
        self.watch_end(name, &session);
        Ok(session)
    }

    /// Writes down how a server ended, whenever that is.
    fn watch_end(&self, name: &str, session: &Arc<Session>) {
        let (audit, name, session) = (self.0.parts.audit.clone(), name.to_owned(), session.clone());
        tokio::spawn(async move {
            let ended = session.ended().await;
            let line = AuditLine { outcome: Some(ended.exit.to_string()), ..Self::line(AuditEvent::Stop, &name) };
            if let Err(error) = audit.record(&line) {
                tracing::error!(%error, "the audit trail cannot be written");
            }
        });
    }

    /// The session that runs now, if one does.
    pub(super) async fn running(&self, name: &str) -> Option<Arc<Session>> {
        let slot = self.0.sessions.slot(name);
        let slot = slot.lock().await;
        slot.as_ref().map(|running| running.session.clone()).filter(|session| !session.is_over())
    }

    /// Ends servers that another host of the same store changed, removed, distrusted or disabled.
    fn watch_store(&self) {
        let mut watching = self.0.sessions.watching.lock().unwrap_or_else(PoisonError::into_inner);
        if !std::mem::replace(&mut *watching, true) {
            let inner = Arc::downgrade(&self.0);
            tokio::spawn(async move { while look(&inner).await {} });
        }
    }

    async fn stop_what_no_longer_fits(&self) {
        let (Ok(state), Ok(key)) = (self.state().await, self.key().await) else {
            // An unreadable store trusts nobody.
            return self.0.sessions.close_all().await;
        };
        for (name, slot) in self.0.sessions.all() {
            // A server that is being started or ended is looked at the next time.
            let Ok(mut slot) = slot.try_lock() else { continue };
            let Some(running) = &*slot else { continue };
            let fits = state.definition(&name).is_some_and(|definition| {
                definition.fingerprint(&key) == running.fingerprint
                    && state.runtime(&name).trust.as_ref().is_some_and(|trust| trust.resolution == running.resolution)
            });
            if !fits && let Some(old) = slot.take() {
                old.session.close().await;
            }
        }
    }
}

/// One look; false once the gate is gone.
async fn look(gate: &Weak<Inner>) -> bool {
    tokio::time::sleep(LOOK).await;
    match gate.upgrade() {
        Some(inner) => {
            Gate(inner).stop_what_no_longer_fits().await;
            true
        }
        None => false,
    }
}
