//! The other side of a session: what is sent to it, and where its answers go.
//!
//! An answer goes straight from the wire to the request that waits for it; nothing stands in
//! between that could be late, full or gone. An answer that comes twice, too late or to nobody is
//! dropped.

use std::{
    borrow::Cow,
    collections::HashMap,
    fmt,
    sync::{
        Arc, Mutex, MutexGuard, OnceLock, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
};

use futures::future::BoxFuture;
use serde::Deserialize;
use serde_json::value::RawValue;
use tokio::{
    sync::{mpsc, oneshot, watch},
    time::Instant,
};

use super::{
    era::Era,
    incoming::Incoming,
    message::{self, Message, Params, RpcError},
    waiter::Waiter,
};
use crate::{
    link::LinkError,
    wire::{self, Inbox, Kind, Noise, Outgoing, Received, Receiver, Wire, WireTraits},
};

/// What a request got.
#[derive(Debug)]
pub(super) enum Answer {
    /// The result, as it was written.
    Result(String),
    Error(RpcError),
    /// Something that is no answer.
    Unreadable,
}

/// One server, as the session talks to it.
pub(super) struct Peer {
    wire: Arc<dyn Wire>,
    traits: WireTraits,
    inbox: OnceLock<Inbox>,
    next: AtomicU64,
    waiting: Mutex<Waiting>,
    era: OnceLock<Era>,
    ended: watch::Sender<bool>,
    pub(super) incoming: Incoming,
}

struct Waiting {
    requests: HashMap<u64, Request>,
    /// How many of them nobody waits for, but as long as the session lasts.
    lasting: usize,
    /// When the newest was made.
    newest: Instant,
    /// Nothing is answered any more.
    over: bool,
}

struct Request {
    answer: oneshot::Sender<Answer>,
    progressed: Option<Instant>,
    /// Who is told of progress.
    told: Option<mpsc::Sender<Box<RawValue>>>,
}

impl fmt::Debug for Peer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Peer").field("era", &self.era).finish_non_exhaustive()
    }
}

/// The receiving end of a peer, as the wire holds it.
struct Mailbox(std::sync::Weak<Peer>);

impl Receiver for Mailbox {
    fn receive(&self, text: Cow<'_, [u8]>) -> Result<Received, Noise> {
        self.0.upgrade().ok_or(Noise)?.receive(text)
    }
}

impl Peer {
    pub(super) fn new(wire: Box<dyn Wire>, incoming: Incoming) -> Arc<Self> {
        let wire: Arc<dyn Wire> = wire.into();
        let peer = Arc::new(Self {
            traits: wire.traits(),
            wire,
            inbox: OnceLock::new(),
            next: AtomicU64::new(0),
            waiting: Mutex::new(Waiting { requests: HashMap::new(), lasting: 0, newest: Instant::now(), over: false }),
            era: OnceLock::new(),
            ended: watch::Sender::new(false),
            incoming,
        });
        let _ = peer.inbox.set(Inbox::new(Mailbox(Arc::downgrade(&peer))));
        peer
    }

    fn waiting(&self) -> MutexGuard<'_, Waiting> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn inbox(&self) -> &Inbox {
        self.inbox.get_or_init(|| Inbox::new(Mailbox(std::sync::Weak::new())))
    }

    pub(super) fn traits(&self) -> WireTraits {
        self.traits
    }

    /// Receives until the link ends.
    pub(super) async fn run(&self) -> Result<(), LinkError> {
        self.wire.run(self.inbox().clone()).await
    }

    pub(super) async fn close(&self) {
        self.wire.close().await;
    }

    /// The revision that both sides agreed upon; none during the handshake.
    pub(super) fn era(&self) -> Option<&Era> {
        self.era.get()
    }

    pub(super) fn agree(&self, era: Era) {
        let _ = self.era.set(era);
    }

    /// From here on nothing is answered; all who wait are woken.
    pub(super) fn finish(&self) {
        let mut waiting = self.waiting();
        waiting.over = true;
        waiting.requests.clear();
        drop(waiting);
        self.ended.send_replace(true);
    }

    /// Completes once nothing is answered any more. Borrows nothing.
    pub(super) fn over(&self) -> impl Future<Output = ()> + Send + 'static {
        let mut ended = self.ended.subscribe();
        async move {
            // An error means that the peer is gone.
            let _ = ended.wait_for(|ended| *ended).await;
        }
    }

    /// A request that waits from now on, or nothing where nothing is answered any more.
    pub(super) fn ask(self: &Arc<Self>) -> Option<Pending> {
        let id = self.next.fetch_add(1, Ordering::Relaxed);
        let (answer, answered) = oneshot::channel();
        let mut waiting = self.waiting();
        if waiting.over {
            return None;
        }
        waiting.newest = Instant::now();
        waiting.requests.insert(id, Request { answer, progressed: None, told: None });
        Some(Pending { peer: self.clone(), id, answered, sent: false, done: false })
    }

    /// How long ago the newest request was made, if none waits.
    pub(super) fn idle(&self) -> Option<std::time::Duration> {
        let waiting = self.waiting();
        (waiting.requests.len() <= waiting.lasting).then(|| waiting.newest.elapsed())
    }

    /// The listening request, of which there is one at most, lasts as long as the session.
    pub(super) fn lasts(&self, lasts: bool) {
        self.waiting().lasting = usize::from(lasts);
    }

    fn outgoing(&self, kind: Kind, method: &'static str, text: Vec<u8>) -> Outgoing {
        let era = self.era();
        Outgoing {
            kind,
            method: Cow::Borrowed(method),
            text,
            name: None,
            parameters: Vec::new(),
            revision: era.map(|era| era.revision().clone()),
            stateless: era.is_some_and(Era::is_stateless),
        }
    }

    /// A request as it is sent, with its id in its place.
    pub(super) fn compose(&self, id: u64, method: &'static str, params: &Params) -> Outgoing {
        let meta = self.era().map_or("", Era::meta);
        self.outgoing(Kind::Request(id), method, message::request(id, method, meta, params))
    }

    /// The same for somebody who may offer something else than the host.
    pub(super) fn compose_for(&self, id: u64, method: &'static str, params: &Params, waiter: &Waiter) -> Outgoing {
        let Some(handler) = &waiter.handler else { return self.compose(id, method, params) };
        let meta = self.era().map_or(Cow::Borrowed(""), |era| era.meta_for(&**handler));
        self.outgoing(Kind::Request(id), method, message::request(id, method, &meta, params))
    }

    /// The same before a revision was agreed upon, as if it were `revision` without a handshake.
    pub(super) fn compose_stateless(&self, id: u64, method: &'static str, revision: &str, meta: &str) -> Outgoing {
        let text = message::request(id, method, meta, &Params::default());
        Outgoing { revision: Some(revision.into()), stateless: true, ..self.outgoing(Kind::Request(id), method, text) }
    }

    /// Sends a message; where answers take the same way, completes when no more comes. An error
    /// concerns this message.
    pub(super) fn send(&self, message: Outgoing) -> BoxFuture<'_, Result<(), LinkError>> {
        self.wire.send(message, self.inbox())
    }

    pub(super) async fn notify(&self, method: &'static str, params: &Params) -> Result<(), LinkError> {
        let meta = self.era().map_or("", Era::meta);
        let message = self.outgoing(Kind::Notification, method, message::notification(method, meta, params));
        self.wire.send(message, self.inbox()).await
    }

    pub(super) async fn answer(&self, id: &str, answer: Result<&str, (i64, &str)>) -> Result<(), LinkError> {
        let message = self.outgoing(Kind::Answer, "", message::answer(id, answer));
        self.wire.send(message, self.inbox()).await
    }

    fn receive(self: &Arc<Self>, text: Cow<'_, [u8]>) -> Result<Received, Noise> {
        let (id, answer) = match Message::read(&text) {
            Message::Result(id, result) => {
                let waits = self.take(id)?;
                let range = wire::range_of(&text, result.get());
                let result = match text {
                    Cow::Borrowed(_) => Ok(result.get().to_owned()),
                    Cow::Owned(mut text) => {
                        text.truncate(range.end);
                        text.drain(..range.start);
                        String::from_utf8(text)
                    }
                };
                return self.answered(id, waits, result.map_or(Answer::Unreadable, Answer::Result));
            }
            Message::Error(id, error) => (id, Answer::Error(error)),
            Message::Unreadable(id) => (id, Answer::Unreadable),
            Message::Request { id, method, params } => {
                self.incoming.request(self, id, &method, params);
                return Ok(Received::Other);
            }
            Message::Notification { method, params } => {
                self.notified(&method, params);
                return Ok(Received::Other);
            }
            Message::Noise => return Err(Noise),
        };
        let waits = self.take(id)?;
        self.answered(id, waits, answer)
    }

    fn take(&self, id: u64) -> Result<Request, Noise> {
        self.waiting().requests.remove(&id).ok_or(Noise)
    }

    #[allow(clippy::unused_self, reason = "reads as what happens to the peer's request")]
    fn answered(&self, id: u64, request: Request, answer: Answer) -> Result<Received, Noise> {
        // Nobody waits where the one who asked is being dropped right now.
        let _ = request.answer.send(answer);
        Ok(Received::Answer(id))
    }

    fn notified(&self, method: &str, params: Option<&RawValue>) {
        #[derive(Deserialize)]
        #[serde(rename_all = "camelCase")]
        struct Progress<'a> {
            #[serde(borrow)]
            progress_token: &'a RawValue,
        }
        if method == "notifications/progress" {
            let progress = params.and_then(|params| serde_json::from_str::<Progress<'_>>(params.get()).ok());
            if let Some(id) = progress.and_then(|progress| progress.progress_token.get().parse::<u64>().ok())
                && let Some(request) = self.waiting().requests.get_mut(&id)
            {
                request.progressed = Some(Instant::now());
                if let (Some(told), Some(params)) = (&request.told, params) {
                    // Whoever reads too slowly misses some.
                    let _ = told.try_send(params.to_owned());
                }
            }
        } else {
            self.incoming.notification(method, params);
        }
    }
}

/// A request that waits for its answer. Dropped without one, it tells the server that nobody waits.
#[derive(Debug)]
pub(super) struct Pending {
    peer: Arc<Peer>,
    id: u64,
    answered: oneshot::Receiver<Answer>,
    /// Whether the server may know of it.
    sent: bool,
    done: bool,
}

impl Pending {
    pub(super) fn id(&self) -> u64 {
        self.id
    }

    /// Has `told` hear of its progress.
    pub(super) fn tells(&self, told: Option<&mpsc::Sender<Box<RawValue>>>) {
        if let Some(told) = told
            && let Some(request) = self.peer.waiting().requests.get_mut(&self.id)
        {
            request.told = Some(told.clone());
        }
    }

    /// From here on the server may know of it.
    pub(super) fn sent(&mut self) {
        self.sent = true;
    }

    /// The answer, or nothing once there will be none. Cancel-safe.
    pub(super) async fn answer(&mut self) -> Option<Answer> {
        let answer = (&mut self.answered).await.ok();
        self.done = true;
        answer
    }

    /// The answer if it is there already.
    pub(super) fn answer_now(&mut self) -> Option<Answer> {
        let answer = self.answered.try_recv().ok();
        self.done |= answer.is_some();
        answer
    }

    /// When its last progress came.
    pub(super) fn progressed(&self) -> Option<Instant> {
        self.peer.waiting().requests.get(&self.id).and_then(|request| request.progressed)
    }

    /// Nothing was sent, or nobody is there to be told.
    pub(super) fn forget(&mut self) {
        self.sent = false;
    }
}

impl Drop for Pending {
    fn drop(&mut self) {
        if self.done {
            return;
        }
        // An answer that came in this very moment: nothing to cancel.
        let unanswered = self.peer.waiting().requests.remove(&self.id).is_some();
        if self.sent && unanswered {
            self.peer.incoming.cancel(&self.peer, self.id);
        }
    }
}
