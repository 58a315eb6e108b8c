//! Running servers: at most one process each, started once for all who wait, ended when what they
//! run for is no longer so.

use std::{
    collections::HashMap,
    pin::pin,
    sync::{Arc, Mutex, MutexGuard, PoisonError, Weak},
    time::Duration,
};

use futures::future::join_all;
use tokio::{
    sync::{Mutex as AsyncMutex, OwnedMutexGuard, Semaphore, oneshot, watch},
    task::JoinHandle,
    time::Instant,
};

use super::{Gate, GateError, Inner, connection::Connections, find};
use crate::{
    Limits,
    audit::{AuditEvent, AuditLine},
    definition::{Definition, Fingerprint},
    link::{Keeper, Link},
    session::{Cause, Lifecycle, Session, SessionError, SessionOptions},
    store::State,
    trust::{Resolution, TrustRecord},
};

/// How often a running host looks whether another one changed the store.
const LOOK: Duration = Duration::from_secs(1);

/// What a session is wanted for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Purpose {
    /// Calls: the server has to be enabled.
    Call,
    /// A list of tools, which is made before anything is enabled.
    List,
    /// A person wants it to run.
    Connect,
}

/// A session in use; a server that is not enabled runs as long as there is one.
#[derive(Debug)]
pub(super) struct Lease {
    pub(super) session: Arc<Session>,
    /// How long opening its link took.
    pub(super) opening: Duration,
    _user: Arc<()>,
}

#[derive(Debug)]
struct Running {
    session: Arc<Session>,
    opening: Duration,
    fingerprint: Fingerprint,
    resolution: Resolution,
    users: Arc<()>,
    /// The state that it was last compared with.
    state: Weak<State>,
    /// Writes down how it ended.
    written: JoinHandle<()>,
}

impl Running {
    fn lease(&self) -> Lease {
        Lease { session: self.session.clone(), opening: self.opening, _user: self.users.clone() }
    }

    /// Whether it was last compared with exactly this state.
    fn is_of(&self, state: &Arc<State>) -> bool {
        std::ptr::eq(self.state.as_ptr(), Arc::as_ptr(state))
    }

    fn is_used(&self) -> bool {
        Arc::strong_count(&self.users) > 1
    }
}

/// What is to be started.
#[derive(Debug)]
struct Wanted {
    state: Arc<State>,
    definition: Definition,
    trust: TrustRecord,
    fingerprint: Fingerprint,
}

/// One server's place.
#[derive(Debug, Default)]
struct Slot {
    /// Whoever holds it starts or ends the server, the others wait.
    turn: Arc<AsyncMutex<()>>,
    running: Mutex<Option<Running>>,
    /// What carries a server that is being started.
    starting: Mutex<Option<Arc<dyn Keeper>>>,
    /// Counts orders to end: a start that is under way gives up.
    stops: watch::Sender<u64>,
}

impl Slot {
    fn running(&self) -> MutexGuard<'_, Option<Running>> {
        self.running.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn starting(&self) -> MutexGuard<'_, Option<Arc<dyn Keeper>>> {
        self.starting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    async fn stop(self: &Arc<Self>) {
        self.stops.send_modify(|stops| *stops += 1);
        let turn = self.turn.clone().lock_owned().await;
        self.end(turn).await;
    }

    /// Ends what runs. In a task of its own that keeps the turn: whoever waits for it may go away, and
    /// still nothing starts before the end.
    async fn end(self: &Arc<Self>, turn: OwnedMutexGuard<()>) {
        let slot = self.clone();
        let ending = tokio::spawn(async move {
            let _turn = turn;
            slot.end_in_turn().await;
        });
        let _ = ending.await;
    }

    async fn end_in_turn(&self) {
        let old = self.running().take();
        if let Some(old) = old {
            old.session.close().await;
            let _ = old.written.await;
        }
    }
}

#[derive(Debug)]
pub(super) struct Sessions {
    slots: Mutex<HashMap<String, Arc<Slot>>>,
    watching: Mutex<bool>,
    closed: watch::Sender<bool>,
    /// Starts that may be under way at one time.
    starts: Semaphore,
    pub(super) connections: Connections,
}

impl Sessions {
    pub(super) fn new(limits: &Limits) -> Self {
        Self {
            slots: Mutex::default(),
            watching: Mutex::default(),
            closed: watch::Sender::default(),
            starts: Semaphore::new(limits.parallel_starts.max(1)),
            connections: Connections::default(),
        }
    }

    fn slot(&self, name: &str) -> Arc<Slot> {
        self.slots.lock().unwrap_or_else(PoisonError::into_inner).entry(name.to_owned()).or_default().clone()
    }

    fn all(&self) -> Vec<(String, Arc<Slot>)> {
        let slots = self.slots.lock().unwrap_or_else(PoisonError::into_inner);
        slots.iter().map(|(name, slot)| (name.clone(), slot.clone())).collect()
    }

    /// The last of what a server that is being started wrote to its standard error.
    pub(super) fn starting_tail(&self, name: &str) -> Option<String> {
        let slots = self.slots.lock().unwrap_or_else(PoisonError::into_inner);
        let keeper = slots.get(name)?.starting().clone();
        keeper.map(|keeper| keeper.stderr_tail())
    }

    /// Ends a server, and a start of it that is under way.
    pub(super) async fn stop(&self, name: &str) {
        let slot = self.slots.lock().unwrap_or_else(PoisonError::into_inner).get(name).cloned();
        if let Some(slot) = slot {
            slot.stop().await;
        }
    }

    async fn stop_all(&self) {
        let slots = self.all();
        join_all(slots.iter().map(|(_, slot)| slot.stop())).await;
    }

    /// Ends everything; from here on nothing starts.
    pub(super) async fn close_all(&self) {
        self.closed.send_replace(true);
        self.stop_all().await;
    }

    pub(super) fn is_closed(&self) -> bool {
        *self.closed.borrow()
    }
}

impl Gate {
    /// The session of a trusted server, started if it does not run. Several who wait share one
    /// start; dropping the future of the one who starts it ends the start.
    ///
    /// What the store says counts at the moment of the start, not of the request.
    pub(super) async fn session(&self, name: &str, purpose: Purpose) -> Result<Lease, GateError> {
        let slot = self.0.sessions.slot(name);
        // From before the store is read: whoever changes it and then orders the end is heard.
        let mut stops = slot.stops.subscribe();
        let turn = slot.turn.clone().lock_owned().await;
        stops.mark_unchanged();
        let state = self.state().await?;
        let wanted = self.wanted(state, name, purpose).await?;
        if let Some(running) = &mut *slot.running()
            && running.fingerprint == wanted.fingerprint
            && running.resolution == wanted.trust.resolution
            && !running.session.is_over()
        {
            running.state = Arc::downgrade(&wanted.state);
            return Ok(running.lease());
        }
        if purpose == Purpose::Call && !self.0.parts.context.limits.start_on_use {
            return Err(GateError::NotRunning { server: name.to_owned() });
        }
        // In a task of its own that keeps the turn: a start that is given up is cleaned up before the next.
        let (waits, gone) = oneshot::channel::<()>();
        let gate = self.clone();
        let starting = tokio::spawn(async move {
            let _turn = turn;
            let given_up = async move {
                tokio::select! {
                    _ = stops.changed() => {}
                    _ = gone => {}
                }
            };
            let name = wanted.definition.name().to_owned();
            let attempt = gate.0.sessions.connections.connecting(&name);
            let started = gate.start(wanted, &slot, attempt, given_up).await;
            *slot.starting() = None;
            match &started {
                Ok(_) => gate.0.sessions.connections.connected(&name, attempt),
                Err(error) => gate.0.sessions.connections.failed(&name, attempt, error),
            }
            started
        });
        let started = starting.await.unwrap_or(Err(GateError::Closed));
        drop(waits);
        started
    }

    /// What may be started under this name now.
    async fn wanted(&self, state: Arc<State>, name: &str, purpose: Purpose) -> Result<Wanted, GateError> {
        let definition = find(&state, name)?.clone();
        let runtime = state.runtime(name);
        let Some(trust) = runtime.trust.clone() else {
            return Err(GateError::NotTrusted { server: name.to_owned() });
        };
        if purpose != Purpose::List && !runtime.enabled {
            return Err(GateError::NotEnabled { server: name.to_owned() });
        }
        if self.0.sessions.is_closed() {
            return Err(GateError::Closed);
        }
        self.held(&definition)?;
        let fingerprint = definition.fingerprint(&self.key_of(&state).await?);
        Ok(Wanted { state, definition, trust, fingerprint })
    }

    /// For whoever has the turn.
    async fn start(
        &self,
        wanted: Wanted,
        slot: &Slot,
        attempt: u64,
        given_up: impl Future<Output = ()>,
    ) -> Result<Lease, GateError> {
        let Wanted { state, definition, trust, fingerprint } = wanted;
        let name = definition.name();
        let stopped = || GateError::Stopped { server: name.to_owned() };
        let mut given_up = pin!(given_up);
        slot.end_in_turn().await;
        let _place = tokio::select! {
            biased;
            () = &mut given_up => return Err(stopped()),
            place = self.0.sessions.starts.acquire() => place.map_err(|_| GateError::Closed)?,
        };
        let plan = tokio::select! {
            biased;
            () = &mut given_up => return Err(stopped()),
            plan = self.plan(&state, &definition) => plan?,
        };
        self.learn(&definition);
        let resolution = plan.view().resolution();
        let consent = Self::remembered(name, &trust, fingerprint, plan.view())?;
        let failed = |source| GateError::Transport { server: name.to_owned(), source };
        let secrets = self.resolver(&state, name);
        let began = Instant::now();
        let link = tokio::select! {
            biased;
            () = &mut given_up => return Err(stopped()),
            link = plan.open(consent, &secrets) => link.map_err(failed)?,
        };
        let opening = began.elapsed();
        *slot.starting() = Some(link.keeper().clone());
        let options = self.options(&definition, fingerprint, &link).await;
        let session = match Session::open_unless(name, fingerprint, link, options, given_up).await {
            Ok(session) => session,
            Err(SessionError::Start { cause: Cause::GivenUp, .. }) => return Err(stopped()),
            Err(error) => return Err(self.failed(name, None, error)),
        };
        self.record_done(&Self::line(AuditEvent::Start, name));
        let session = Arc::new(session);
        let written = self.watch_end(name, &session, attempt);
        let state = Arc::downgrade(&state);
        let running = Running { session, opening, fingerprint, resolution, users: Arc::default(), state, written };
        let lease = running.lease();
        self.watch_tools(name, &lease.session, attempt);
        *slot.running() = Some(running);
        self.watch_store();
        Ok(lease)
    }

    /// How a conversation is held. A server that is known to shake hands is not asked for anything newer
    /// first, which would cost a request each time.
    async fn options(&self, definition: &Definition, fingerprint: Fingerprint, link: &Link) -> SessionOptions {
        let parts = &self.0.parts;
        let mut lifecycle = parts.lifecycle;
        if lifecycle == Lifecycle::Auto && link.traits().probes {
            let known = parts.cache.load(fingerprint).await.and_then(|tools| tools.revision);
            if known.is_some_and(|revision| Lifecycle::of(&revision) == Lifecycle::Handshake) {
                lifecycle = Lifecycle::Handshake;
            }
        }
        SessionOptions::new(&parts.context.limits, definition).lifecycle(lifecycle).handler(parts.handler.clone())
    }

    /// Writes down how a server ended, whenever that is.
    fn watch_end(&self, name: &str, session: &Arc<Session>, attempt: u64) -> JoinHandle<()> {
        let (audit, name, session) = (self.0.parts.audit.clone(), name.to_owned(), session.clone());
        let gate = Arc::downgrade(&self.0);
        tokio::spawn(async move {
            let ended = session.ended().await;
            if let Some(gate) = gate.upgrade() {
                gate.sessions.connections.ended(&name, attempt, &session, &ended);
            }
            let line = AuditLine {
                outcome: ended.exit.known().map(|exit| exit.to_string()),
                ..Self::line(AuditEvent::Stop, &name)
            };
            if let Err(error) = audit.record(&line) {
                tracing::error!(%error, "the audit trail cannot be written");
            }
        })
    }

    /// The session of an enabled server that runs and was last compared with exactly this state.
    pub(super) fn ready(&self, state: &Arc<State>, name: &str) -> Option<Arc<Session>> {
        let slot = self.0.sessions.slot(name);
        let running = slot.running();
        let running = running.as_ref().filter(|running| running.is_of(state) && !running.session.is_over())?;
        (state.runtime(name).enabled && !self.0.sessions.is_closed()).then(|| running.session.clone())
    }

    /// Whether nobody has wanted anything of it for longer than servers are kept.
    fn is_idle(&self, running: &Running) -> bool {
        let kept = self.0.parts.context.limits.idle_stop;
        let is_idle = |kept| !running.is_used() && running.session.idle().is_some_and(|idle| idle >= kept);
        // A call that a person is asked about is for this very session.
        kept.is_some_and(is_idle)
            && !self.questions().open().iter().any(|asked| asked.server == running.session.server())
    }

    /// The session that runs now, if one does.
    pub(super) fn running(&self, name: &str) -> Option<Arc<Session>> {
        let slot = self.0.sessions.slot(name);
        let running = slot.running();
        running.as_ref().map(|running| running.session.clone()).filter(|session| !session.is_over())
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
        let slots = self.0.sessions.all();
        join_all(slots.iter().map(|(name, slot)| async {
            // One that is being started or ended is looked at the next time.
            if let Ok(turn) = slot.turn.clone().try_lock_owned() {
                self.end_if_unfit(name, slot, turn).await;
            }
        }))
        .await;
    }

    /// Ends a server that is not what is trusted now, or that is not enabled and not in use.
    pub(super) async fn stop_if_unfit(&self, name: &str) {
        let slot = self.0.sessions.slot(name);
        let turn = slot.turn.clone().lock_owned().await;
        self.end_if_unfit(name, &slot, turn).await;
    }

    /// For whoever has the turn.
    async fn end_if_unfit(&self, name: &str, slot: &Arc<Slot>, turn: OwnedMutexGuard<()>) {
        if slot.running().is_none() {
            return;
        }
        let fits = match (self.state().await, self.key().await) {
            (Ok(state), Ok(key)) => slot.running().as_ref().is_some_and(|running| {
                let runtime = state.runtime(name);
                state.definition(name).is_some_and(|definition| definition.fingerprint(&key) == running.fingerprint)
                    && runtime.trust.as_ref().is_some_and(|trust| trust.resolution == running.resolution)
                    && (runtime.enabled || running.is_used())
                    && !self.is_idle(running)
            }),
            // An unreadable store trusts nobody.
            _ => false,
        };
        if !fits {
            slot.end(turn).await;
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
