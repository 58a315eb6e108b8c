//! One MCP conversation over one link: handshake, tools, calls, and every limit on them.
//!
//! This module speaks the protocol, with what a server writes kept as text, and owns the clocks, the
//! pagination, the reasons and the end.
//! A session ends once: by [`Session::close`], by the end of what carries it, or by a broken wire;
//! every call that waits then fails at once and says why. Nothing is ever sent again by itself.

mod calls;
mod client;
mod era;
mod error;
mod handshake;
mod incoming;
mod listen;
mod listing;
mod log;
mod message;
mod methods;
mod monitor;
mod pace;
mod peer;
mod request;
mod waiter;

use std::{
    fmt,
    pin::pin,
    sync::{
        Arc, Mutex, PoisonError, RwLock, Weak,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use tokio::time::{Instant, timeout, timeout_at};

pub(crate) use calls::Continuation;
pub use calls::{CallOutcome, InputRequired};
#[cfg(any(test, feature = "mocks"))]
pub use client::MockClientHandler;
pub use client::{ClientHandler, Offers, Refusal, Refusing, RequestKind, ServerRequest, TaskStatus};
pub use error::{Cause, Ended, SessionError, Step};
pub use handshake::Lifecycle;
pub use incoming::{ListKind, SessionEvent};
pub use log::LogLevel;
pub use methods::Completed;
pub use pace::Pace;
pub use waiter::Waiter;

use self::{incoming::Incoming, listen::Listener, monitor::Monitor, peer::Peer};
use crate::{
    Limits,
    definition::{Definition, Fingerprint, STARTUP_TIMEOUT_MS, TIMEOUT_MS},
    link::{Link, LinkError},
    tools::ToolList,
};

static NEXT: AtomicU64 = AtomicU64::new(1);

/// What distinguishes one session from every other of this process; a ticket fits one alone.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub struct SessionId(u64);

/// How one session is held: the host's wishes, with those of the definition in their place.
#[derive(Debug, Clone)]
pub struct SessionOptions {
    start: Duration,
    idle: Duration,
    limits: Limits,
    lifecycle: Lifecycle,
    handler: Arc<dyn ClientHandler>,
}

impl SessionOptions {
    /// The host's limits, as far as `definition` sets none itself. Whatever the server asks is refused.
    #[must_use]
    pub fn new(limits: &Limits, definition: &Definition) -> Self {
        Self {
            start: definition.millis(STARTUP_TIMEOUT_MS).unwrap_or(limits.start),
            idle: definition.millis(TIMEOUT_MS).unwrap_or(limits.idle),
            limits: limits.clone(),
            lifecycle: Lifecycle::default(),
            handler: Arc::new(Refusing),
        }
    }

    /// The same, beginning otherwise.
    #[must_use]
    pub fn lifecycle(self, lifecycle: Lifecycle) -> Self {
        Self { lifecycle, ..self }
    }

    /// The same, with somebody who answers what the server asks.
    #[must_use]
    pub fn handler(self, handler: Arc<dyn ClientHandler>) -> Self {
        Self { handler, ..self }
    }
}

/// An open conversation with one server.
pub struct Session {
    id: SessionId,
    server: String,
    fingerprint: Fingerprint,
    peer: Arc<Peer>,
    monitor: Monitor,
    options: SessionOptions,
    listener: Arc<Listener>,
    tools: RwLock<Arc<ToolList>>,
    listing: tokio::sync::Mutex<()>,
    /// How long the handshake and the first list took.
    beginning: (Duration, Duration),
    /// From which level on the server was asked to tell words for a log.
    told_level: tokio::sync::Mutex<Option<LogLevel>>,
    /// The list that the gate has taken note of.
    noted: Mutex<Weak<ToolList>>,
}

impl fmt::Debug for Session {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Session").field("id", &self.id).field("server", &self.server).finish_non_exhaustive()
    }
}

impl Session {
    /// Shakes hands over `link` and reads the tools, within the limit for starting.
    ///
    /// Dropping the future ends what carries the link.
    ///
    /// # Errors
    ///
    /// [`SessionError`] with the step that failed; the link is closed, its processes are gone.
    pub async fn open(
        server: &str,
        fingerprint: Fingerprint,
        link: Link,
        options: SessionOptions,
    ) -> Result<Self, SessionError> {
        Self::open_unless(server, fingerprint, link, options, std::future::pending()).await
    }

    /// The same, until `given_up` completes: then as with any failure, the link is closed before it returns.
    pub(crate) async fn open_unless(
        server: &str,
        fingerprint: Fingerprint,
        link: Link,
        options: SessionOptions,
        given_up: impl Future<Output = ()>,
    ) -> Result<Self, SessionError> {
        let mut given_up = pin!(given_up);
        let began = Instant::now();
        let deadline = began + options.start;
        let (wire, keeper) = link.into_parts();
        let peer = Peer::new(wire, Incoming::new(server, options.handler.clone()));
        let mut session = Self {
            id: SessionId(NEXT.fetch_add(1, Ordering::Relaxed)),
            server: server.to_owned(),
            fingerprint,
            monitor: Monitor::start(peer.clone(), keeper, options.limits.stop_grace),
            listener: Listener::silent(),
            peer,
            options,
            tools: RwLock::default(),
            listing: tokio::sync::Mutex::default(),
            beginning: Default::default(),
            told_level: tokio::sync::Mutex::default(),
            noted: Mutex::default(),
        };
        let (limit, lifecycle) = (session.options.start, session.options.lifecycle);
        let offers = session.options.handler.offers();
        let beginning = handshake::begin(&session.peer, lifecycle, offers);
        let (step, cause) = match until(deadline, limit, &mut given_up, beginning).await {
            Err(cause) => (Step::Initialize, cause),
            Ok(()) => {
                let shaken = Instant::now();
                // From before the list: what changes meanwhile is told.
                session.listener = Listener::start(&session.peer);
                match until(deadline, limit, &mut given_up, session.refresh()).await {
                    Err(cause) => (Step::ListTools, cause),
                    Ok(_) => {
                        session.beginning = (shaken - began, shaken.elapsed());
                        return Ok(session);
                    }
                }
            }
        };
        session.monitor.stop().await;
        // Why the wire failed says more than that it did.
        let cause = match (cause, session.monitor.failure()) {
            (Cause::Ended, Some(failure)) if !matches!(failure, LinkError::Closed | LinkError::Broken(_)) => {
                Cause::Link(failure)
            }
            (cause, _) => cause,
        };
        Err(SessionError::start(server, step, cause, session.monitor.ended()))
    }

    /// Its id.
    #[must_use]
    pub fn id(&self) -> SessionId {
        self.id
    }

    /// The server's name.
    #[must_use]
    pub fn server(&self) -> &str {
        &self.server
    }

    /// How long the handshake and the first list of tools took.
    #[must_use]
    pub fn beginning(&self) -> (Duration, Duration) {
        self.beginning
    }

    /// The definition it was opened for.
    #[must_use]
    pub fn fingerprint(&self) -> Fingerprint {
        self.fingerprint
    }

    /// The tools as they were listed last.
    #[must_use]
    pub fn tools(&self) -> Arc<ToolList> {
        self.tools.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Whether the server said that its tools changed since they were listed.
    #[must_use]
    pub fn is_stale(&self) -> bool {
        self.peer.incoming.is_stale()
    }

    /// Lists the tools again. Calls of several waiters are made one after the other.
    ///
    /// # Errors
    ///
    /// [`SessionError`]; the tools stay as they were.
    pub async fn refresh(&self) -> Result<Arc<ToolList>, SessionError> {
        let _one = self.listing.lock().await;
        self.list_in_turn().await
    }

    /// Lists them again if the server said that they changed, and nobody else did so meanwhile.
    pub(crate) async fn refresh_if_stale(&self) -> Result<Arc<ToolList>, SessionError> {
        let _one = self.listing.lock().await;
        if self.is_stale() { self.list_in_turn().await } else { Ok(self.tools()) }
    }

    /// Counts what the server says about changed tools.
    pub(crate) fn tool_changes(&self) -> tokio::sync::watch::Receiver<u64> {
        self.peer.incoming.watch_changes()
    }

    /// For whoever has the turn.
    async fn list_in_turn(&self) -> Result<Arc<ToolList>, SessionError> {
        let changes = self.peer.incoming.changes();
        let limit = self.options.limits.absolute;
        let listed = timeout(limit, self.list_tools()).await;
        let list = Arc::new(listed.map_err(|_| SessionError::TimedOut { limit, kind: "altogether" })??);
        *self.tools.write().unwrap_or_else(PoisonError::into_inner) = list.clone();
        self.peer.incoming.listed(changes);
        Ok(list)
    }

    /// Whether `list` is the one of which note was taken last.
    pub(crate) fn is_noted(&self, list: &Arc<ToolList>) -> bool {
        let noted = self.noted.lock().unwrap_or_else(PoisonError::into_inner);
        noted.upgrade().is_some_and(|noted| Arc::ptr_eq(&noted, list))
    }

    /// Takes note of `list`.
    pub(crate) fn note(&self, list: &Arc<ToolList>) {
        *self.noted.lock().unwrap_or_else(PoisonError::into_inner) = Arc::downgrade(list);
    }

    fn not_running(&self) -> SessionError {
        SessionError::NotRunning(self.monitor.ended())
    }

    /// Completes once the session is over, with how. Cancel-safe.
    pub async fn ended(&self) -> Ended {
        self.monitor.wait().await;
        self.monitor.ended()
    }

    /// Whether it is over.
    #[must_use]
    pub fn is_over(&self) -> bool {
        self.monitor.is_over()
    }

    /// Whether it was closed by this host, rather than ended by itself.
    #[must_use]
    pub fn was_closed(&self) -> bool {
        self.monitor.was_stopped()
    }

    /// How long nothing has been wanted of the server; none while something is.
    #[must_use]
    pub fn idle(&self) -> Option<Duration> {
        self.peer.idle().filter(|_| !self.peer.incoming.is_asking())
    }

    /// The last of what the server wrote to its standard error, escaped for display.
    #[must_use]
    pub fn stderr_tail(&self) -> String {
        self.monitor.stderr_tail()
    }

    /// Ends it, with everything that carries it; idempotent. Takes two graces at most.
    pub async fn close(&self) -> Ended {
        self.monitor.stop().await;
        self.monitor.ended()
    }
}

/// A step of a start, within its limit and unless it is given up.
async fn until<T>(
    deadline: Instant,
    limit: Duration,
    given_up: &mut (impl Future<Output = ()> + Unpin),
    step: impl Future<Output = Result<T, SessionError>>,
) -> Result<T, Cause> {
    tokio::select! {
        biased;
        done = timeout_at(deadline, step) => match done {
            Ok(done) => done.map_err(SessionError::into_cause),
            Err(_) => Err(Cause::TimedOut { limit }),
        },
        () = given_up => Err(Cause::GivenUp),
    }
}
