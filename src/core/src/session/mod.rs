//! One MCP conversation over one link: handshake, tools, calls, and every limit on them.
//!
//! rmcp speaks the protocol; this module owns the clocks, the pagination, the reasons and the end.
//! A session ends once: by [`Session::close`], by the end of what carries it, or by a broken wire;
//! every call that waits then fails at once and says why. Nothing is ever sent again by itself.

mod error;
mod handler;
mod listing;
mod monitor;
mod request;

use std::{
    fmt,
    pin::pin,
    sync::{
        Arc, Mutex, PoisonError, RwLock, Weak,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use rmcp::{
    RoleClient,
    model::{CallToolRequest, CallToolRequestParams, ClientRequest},
    service::{ClientLifecycleMode, ClientServiceExt, Peer},
};
use tokio::time::{Instant, timeout, timeout_at};

pub use error::{Cause, Ended, SessionError, Step};

use self::{handler::Handler, monitor::Monitor};
use crate::{
    Limits,
    approval::Ticket,
    definition::{Definition, Fingerprint, STARTUP_TIMEOUT_MS, TIMEOUT_MS},
    link::{Keeper, Link},
    raw::{RawArguments, RawResult},
    tools::ToolList,
};

static NEXT: AtomicU64 = AtomicU64::new(1);

/// What distinguishes one session from every other of this process; a ticket fits one alone.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub struct SessionId(u64);

/// The limits of one session: the host's, with those of the definition in their place.
#[derive(Debug, Clone)]
pub struct SessionLimits {
    start: Duration,
    idle: Duration,
    limits: Limits,
}

impl SessionLimits {
    /// The host's limits, as far as `definition` sets none itself.
    #[must_use]
    pub fn new(limits: &Limits, definition: &Definition) -> Self {
        Self {
            start: definition.millis(STARTUP_TIMEOUT_MS).unwrap_or(limits.start),
            idle: definition.millis(TIMEOUT_MS).unwrap_or(limits.idle),
            limits: limits.clone(),
        }
    }
}

/// An open conversation with one server.
pub struct Session {
    id: SessionId,
    server: String,
    fingerprint: Fingerprint,
    peer: Peer<RoleClient>,
    handler: Arc<handler::Shared>,
    monitor: Monitor,
    limits: SessionLimits,
    reads_arguments: bool,
    tools: RwLock<Arc<ToolList>>,
    listing: tokio::sync::Mutex<()>,
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
        limits: SessionLimits,
    ) -> Result<Self, SessionError> {
        Self::open_unless(server, fingerprint, link, limits, std::future::pending()).await
    }

    /// The same, until `given_up` completes: then as with any failure, the link is closed before it returns.
    pub(crate) async fn open_unless(
        server: &str,
        fingerprint: Fingerprint,
        link: Link,
        limits: SessionLimits,
        given_up: impl Future<Output = ()>,
    ) -> Result<Self, SessionError> {
        let mut given_up = pin!(given_up);
        let deadline = Instant::now() + limits.start;
        let reads_arguments = link.reads_arguments();
        let (transport, keeper, failure) = link.into_parts();
        let handler = Handler::default();
        let shared = handler.shared();
        let handshake = timeout_at(deadline, async {
            tokio::select! {
                biased;
                served = handler.serve_with_lifecycle(transport, ClientLifecycleMode::Initialize) => served.map_err(|error| error::of_handshake(error, failure.take())),
                // Whatever it still wrote is in the pipe; the handshake had its chance above.
                () = ended_and_drained(&*keeper) => Err(error::Cause::Ended),
                () = &mut given_up => Err(error::Cause::GivenUp),
            }
        });
        let cause = match handshake.await {
            Ok(Ok(service)) => {
                let session = Self {
                    id: SessionId(NEXT.fetch_add(1, Ordering::Relaxed)),
                    server: server.to_owned(),
                    fingerprint,
                    peer: service.peer().clone(),
                    handler: shared,
                    monitor: Monitor::start(service, keeper, failure, limits.limits.stop_grace),
                    limits,
                    reads_arguments,
                    tools: RwLock::default(),
                    listing: tokio::sync::Mutex::default(),
                    noted: Mutex::default(),
                };
                return session.first_list(deadline, given_up).await;
            }
            Ok(Err(cause)) => cause,
            Err(_) => error::Cause::TimedOut { limit: limits.start },
        };
        let exit = keeper.close(limits.limits.stop_grace).await;
        Err(SessionError::start(server, Step::Initialize, cause, Ended { exit, stderr: keeper.stderr_tail() }))
    }

    async fn first_list(self, deadline: Instant, given_up: impl Future<Output = ()>) -> Result<Self, SessionError> {
        let listed = tokio::select! {
            listed = timeout_at(deadline, self.refresh()) => Some(listed),
            () = given_up => None,
        };
        let cause = match listed {
            Some(Ok(Ok(_))) => return Ok(self),
            Some(Ok(Err(error))) => error.into_cause(),
            Some(Err(_)) => error::Cause::TimedOut { limit: self.limits.start },
            None => error::Cause::GivenUp,
        };
        self.monitor.stop().await;
        Err(SessionError::start(&self.server, Step::ListTools, cause, self.monitor.ended()))
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
        self.handler.is_stale()
    }

    /// Lists the tools again. Calls of several waiters are made one after the other.
    ///
    /// # Errors
    ///
    /// [`SessionError`]; the tools stay as they were.
    pub async fn refresh(&self) -> Result<Arc<ToolList>, SessionError> {
        let _one = self.listing.lock().await;
        let changes = self.handler.changes();
        let limit = self.limits.limits.absolute;
        let listed = timeout(limit, self.list_tools()).await;
        let list = Arc::new(listed.map_err(|_| SessionError::TimedOut { limit, kind: "altogether" })??);
        *self.tools.write().unwrap_or_else(PoisonError::into_inner) = list.clone();
        self.handler.listed(changes);
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

    /// Sends the call that `ticket` owns, once.
    ///
    /// # Errors
    ///
    /// [`SessionError::Ticket`] where something changed since it was approved, and nothing was sent;
    /// otherwise what failed, by kind. The call may have run unless the error says that it did not.
    pub async fn call(&self, ticket: Ticket) -> Result<RawResult, SessionError> {
        let pin = self.tools().get(ticket.tool()).map(|tool| tool.pin());
        let call = ticket.redeem(self.id, self.fingerprint, pin, Instant::now())?;
        let mut params = CallToolRequestParams::new(call.tool);
        if self.reads_arguments {
            params.arguments = serde_json::from_str(call.arguments.get()).ok();
        }
        let mut request = CallToolRequest::new(params);
        request.extensions.insert(RawArguments(call.arguments));
        let result = self.request(ClientRequest::CallToolRequest(request)).await?;
        RawResult::from_server(result).map_err(|_| SessionError::Unreadable)
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

/// After a process ended, its last words are still in the pipe for a moment.
async fn ended_and_drained(keeper: &dyn Keeper) {
    keeper.ended().await;
    tokio::time::sleep(monitor::DRAIN).await;
}
