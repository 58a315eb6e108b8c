//! What a server says unasked: changed lists, requests of its own, words for a log.
//!
//! Everything here is bounded: a server that asks faster than it reads the answers is no longer
//! answered, and that is all that happens.

use std::{
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicU64, AtomicUsize, Ordering},
    },
    time::Duration,
};

use serde::Deserialize;
use serde_json::value::RawValue;
use tokio::{
    sync::{broadcast, watch},
    time::{Instant, timeout},
};

use super::{
    client::{ClientHandler, Refusal, RequestKind, ServerRequest},
    log,
    message::Params,
    peer::Peer,
    waiter::Handlers,
};
use crate::limits;

/// Something that a server told.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum SessionEvent {
    /// Words for a log (`notifications/message`), as the server wrote the parameters.
    Log(Arc<str>),
    /// A resource that was subscribed to changed.
    ResourceUpdated(Arc<str>),
    /// The list of tools, resources or prompts changed.
    ListChanged(ListKind),
}

/// A list that a server keeps.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ListKind {
    /// `tools/list`
    Tools,
    /// `resources/list`
    Resources,
    /// `resources/templates/list`
    ResourceTemplates,
    /// `prompts/list`
    Prompts,
}

/// What a server said unasked.
#[derive(Debug)]
pub(super) struct Incoming {
    server: String,
    handler: Arc<dyn ClientHandler>,
    /// Who waits for requests that are under way.
    pub(super) waiting: Handlers,
    /// Counts what the server said about changed tools.
    changes: watch::Sender<u64>,
    /// That count at the newest list.
    listed: AtomicU64,
    /// Counts what it said about changed resources and prompts.
    others: [AtomicU64; 2],
    events: broadcast::Sender<SessionEvent>,
    /// Messages of ours that nobody waits for and that are under way.
    under_way: Arc<AtomicUsize>,
    asking: Arc<Mutex<Asking>>,
}

/// How long the handler has been thinking, altogether.
#[derive(Debug, Default)]
struct Asking {
    questions: usize,
    since: Option<Instant>,
    before: Duration,
}

impl Asking {
    fn total(&self) -> Duration {
        self.before + self.since.map_or(Duration::ZERO, |since| since.elapsed())
    }
}

/// A request that the handler thinks about.
struct Question(Arc<Mutex<Asking>>);

impl Question {
    fn begin(asking: &Arc<Mutex<Asking>>) -> Self {
        let mut state = locked(asking);
        state.questions += 1;
        state.since.get_or_insert_with(Instant::now);
        drop(state);
        Self(asking.clone())
    }
}

impl Drop for Question {
    fn drop(&mut self) {
        let mut state = locked(&self.0);
        state.questions -= 1;
        if state.questions == 0 {
            state.before = state.total();
            state.since = None;
        }
    }
}

fn locked(asking: &Mutex<Asking>) -> MutexGuard<'_, Asking> {
    asking.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Incoming {
    pub(super) fn new(server: &str, handler: Arc<dyn ClientHandler>) -> Self {
        Self {
            server: server.to_owned(),
            handler,
            waiting: Handlers::default(),
            changes: watch::Sender::default(),
            listed: AtomicU64::default(),
            others: Default::default(),
            events: broadcast::Sender::new(limits::SESSION_EVENTS),
            under_way: Arc::default(),
            asking: Arc::default(),
        }
    }

    /// Whether the tools changed since they were listed.
    pub(super) fn is_stale(&self) -> bool {
        self.changes() != self.listed.load(Ordering::Acquire)
    }

    /// To be read before a list is asked for: whatever is said from then on concerns the next one.
    pub(super) fn changes(&self) -> u64 {
        *self.changes.borrow()
    }

    /// To wait for the next change.
    pub(super) fn watch_changes(&self) -> watch::Receiver<u64> {
        self.changes.subscribe()
    }

    /// A list was read that was asked for at this count.
    pub(super) fn listed(&self, changes: u64) {
        self.listed.store(changes, Ordering::Release);
    }

    /// The server may have changed its tools without being heard.
    pub(super) fn changed(&self) {
        self.changes.send_modify(|changes| *changes += 1);
    }

    /// How often the server said that a list changed.
    pub(super) fn list_changes(&self, kind: ListKind) -> u64 {
        match kind {
            ListKind::Tools => *self.changes.borrow(),
            ListKind::Resources | ListKind::ResourceTemplates => self.others[0].load(Ordering::Relaxed),
            ListKind::Prompts => self.others[1].load(Ordering::Relaxed),
        }
    }

    /// What the server tells from now on.
    pub(super) fn events(&self) -> broadcast::Receiver<SessionEvent> {
        self.events.subscribe()
    }

    /// Whether the handler is thinking about a request of this server.
    pub(super) fn is_asking(&self) -> bool {
        locked(&self.asking).questions > 0
    }

    /// How long the handler has been thinking about requests of this server, altogether.
    pub(super) fn asked(&self) -> Duration {
        locked(&self.asking).total()
    }

    pub(super) fn notification(&self, method: &str, params: Option<&RawValue>) {
        if method == "notifications/message" {
            self.logged(params.map_or("{}", RawValue::get));
        }
        let event = match method {
            "notifications/tools/list_changed" => {
                self.changed();
                SessionEvent::ListChanged(ListKind::Tools)
            }
            "notifications/resources/list_changed" => {
                self.others[0].fetch_add(1, Ordering::Relaxed);
                SessionEvent::ListChanged(ListKind::Resources)
            }
            "notifications/prompts/list_changed" => {
                self.others[1].fetch_add(1, Ordering::Relaxed);
                SessionEvent::ListChanged(ListKind::Prompts)
            }
            // Nobody listens to most of it: then it is not even copied.
            _ if self.events.receiver_count() == 0 => return,
            "notifications/message" => SessionEvent::Log(params.map_or("{}", RawValue::get).into()),
            "notifications/resources/updated" => match params.and_then(uri_of) {
                Some(uri) => SessionEvent::ResourceUpdated(uri.into()),
                None => return,
            },
            _ => return,
        };
        // An error means that nobody listens.
        let _ = self.events.send(event);
    }

    pub(super) fn request(&self, peer: &Arc<Peer>, id: &RawValue, method: &str, params: Option<&RawValue>) {
        // An id of another kind is none, and one without end is not repeated.
        let written = id.get();
        let is_id = written.starts_with(|c: char| c == '"' || c == '-' || c.is_ascii_digit());
        if written.len() > limits::REQUEST_ID_BYTES || !is_id {
            return;
        }
        let id = written.to_owned();
        let params = params.map_or("{}", RawValue::get);
        let kind = RequestKind::of(method).filter(|kind| self.handler.offers().has(*kind, params));
        let (sender, params) = (peer.clone(), params.to_owned());
        match kind {
            Some(kind) => self.behind(peer, None, async move {
                let answer = sender.incoming.ask(kind, params, None, None).await;
                let refused = answer.as_ref().err().map(Refusal::rpc);
                let answer = match (&answer, &refused) {
                    (_, Some((code, message))) => Err((*code, message.as_str())),
                    (Ok(result), None) => Ok(result.as_str()),
                    (Err(_), None) => return,
                };
                let _ = timeout(limits::SEND_BEHIND_TIME, sender.answer(&id, answer)).await;
            }),
            None => self.behind(peer, Some(limits::SEND_BEHIND_TIME), {
                let refused = method != "ping";
                async move {
                    let (code, message) = Refusal::NotOffered.rpc();
                    let answer = if refused { Err((code, message.as_str())) } else { Ok("{}") };
                    let _ = sender.answer(&id, answer).await;
                }
            }),
        }
    }

    /// Tells the client that waits, if only one does.
    fn logged(&self, params: &str) {
        let Ok(Some(handler)) = self.waiting.current() else { return };
        if let (Some(wanted), Some(level)) = (handler.log_level(), log::level(params))
            && level >= wanted
        {
            handler.logged(&self.server, level, params);
        }
    }

    /// Has a request of the server answered: by `handler`, by whoever waits for the server, or by the host.
    /// The clocks of calls stop meanwhile.
    pub(super) async fn ask(
        &self,
        kind: RequestKind,
        params: String,
        key: Option<String>,
        handler: Option<&Arc<dyn ClientHandler>>,
    ) -> Result<String, Refusal> {
        let handler = match handler {
            Some(handler) => handler.clone(),
            None => self.waiting.current()?.unwrap_or_else(|| self.handler.clone()),
        };
        if !handler.offers().has(kind, &params) {
            handler.missed(kind);
            return Err(Refusal::NotOffered);
        }
        let _question = Question::begin(&self.asking);
        let answer = handler.answer(ServerRequest { server: self.server.clone(), kind, key, params }).await?;
        // It goes out as it is.
        match serde_json::from_str::<&RawValue>(&answer) {
            Ok(_) => Ok(answer.replace(['\n', '\r'], " ")),
            Err(_) => Err(Refusal::Denied("the client has no valid answer".to_owned())),
        }
    }

    /// Tells the server that nobody waits for this request any more.
    pub(super) fn cancel(&self, peer: &Arc<Peer>, id: u64) {
        if peer.era().is_some_and(super::era::Era::is_stateless) && peer.traits().cancels {
            return;
        }
        let sender = peer.clone();
        self.behind(peer, Some(limits::SEND_BEHIND_TIME), async move {
            let params = Params::default().with("requestId", id).with("reason", "nobody waits any more");
            let _ = sender.notify("notifications/cancelled", &params).await;
        });
    }

    /// Tells the server that nobody asks after a task any more.
    pub(super) fn abandon(&self, peer: &Arc<Peer>, task: &str) {
        let (sender, task, params) = (peer.clone(), task.to_owned(), Params::default().with("taskId", task));
        self.behind(peer, Some(limits::SEND_BEHIND_TIME), async move {
            let Some(mut pending) = sender.ask() else { return };
            let mut message = sender.compose(pending.id(), "tasks/cancel", &params);
            message.name = Some(task);
            if sender.send(message).await.is_ok() {
                let _ = pending.answer().await;
            }
        });
    }

    /// Does something that nobody waits for, within a limit if there is one, unless too much is on its
    /// way already.
    fn behind(&self, peer: &Arc<Peer>, limit: Option<Duration>, sending: impl Future<Output = ()> + Send + 'static) {
        // Without a runtime the link is gone as well.
        let Ok(runtime) = tokio::runtime::Handle::try_current() else { return };
        let Some(place) = Place::take(&self.under_way) else { return };
        let over = peer.over();
        runtime.spawn(async move {
            let _place = place;
            let sending = async {
                match limit {
                    Some(limit) => drop(timeout(limit, sending).await),
                    None => sending.await,
                }
            };
            tokio::select! {
                () = sending => {}
                () = over => {}
            }
        });
    }
}

/// One of the messages that may be under way.
struct Place(Arc<AtomicUsize>);

impl Place {
    fn take(under_way: &Arc<AtomicUsize>) -> Option<Self> {
        let place = Self(under_way.clone());
        (under_way.fetch_add(1, Ordering::AcqRel) < limits::SENT_BEHIND).then_some(place)
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::AcqRel);
    }
}

fn uri_of(params: &RawValue) -> Option<String> {
    #[derive(Deserialize)]
    struct Updated {
        uri: String,
    }
    serde_json::from_str::<Updated>(params.get()).ok().map(|updated| updated.uri)
}
