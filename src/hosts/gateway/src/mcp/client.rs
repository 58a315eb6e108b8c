//! One client: who it says it is, what it offers, what of it is under way.

use std::{
    collections::HashMap,
    hash::BuildHasher as _,
    sync::{
        Arc, Mutex, MutexGuard, OnceLock, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
};

use portcullis::session::{LogLevel, Offers};
use serde::Deserialize;
use serde_json::{Value, value::RawValue};
use tokio::sync::{broadcast, mpsc, oneshot};

use super::message::{self, RpcError};
use crate::endpoint::Endpoint;

/// Messages on their way to a client that it has not read yet; what is told unasked beyond that is lost.
const UNREAD: usize = 256;
/// Most requests of ours that a client has not answered; more are refused.
const ASKED: usize = 32;
/// Most requests of one client that are under way at one time.
const UNDER_WAY: usize = 1024;
/// Longest name and version that are shown, in characters.
const NAME_LENGTH: usize = 64;

/// What a client says of itself. Nobody checks it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Identity {
    pub(crate) name: String,
    pub(crate) version: String,
    pub(crate) offers: Offers,
    /// Whether its calls may become tasks (SEP-2663).
    pub(crate) tasks: bool,
}

impl Identity {
    /// From `clientInfo` and `capabilities` as they were written.
    pub(crate) fn read(info: Option<&RawValue>, capabilities: Option<&RawValue>) -> Self {
        #[derive(Deserialize, Default)]
        #[serde(default)]
        struct Info {
            name: String,
            version: String,
        }
        #[derive(Deserialize, Default)]
        #[serde(default)]
        struct Capabilities {
            elicitation: Option<Elicitation>,
            sampling: Option<Value>,
            roots: Option<Value>,
            extensions: serde_json::Map<String, Value>,
        }
        #[derive(Deserialize, Default)]
        #[serde(default)]
        struct Elicitation {
            form: Option<Value>,
            url: Option<Value>,
        }
        let info: Info = info.and_then(|info| serde_json::from_str(info.get()).ok()).unwrap_or_default();
        let capabilities: Capabilities =
            capabilities.and_then(|text| serde_json::from_str(text.get()).ok()).unwrap_or_default();
        let short = |text: String| text.chars().filter(|c| !c.is_control()).take(NAME_LENGTH).collect::<String>();
        let tasks = capabilities.extensions.get(super::tasks::EXTENSION).is_some_and(Value::is_object);
        let elicitation = capabilities.elicitation;
        Self {
            name: short(info.name),
            version: short(info.version),
            offers: Offers {
                // Whoever names no mode takes forms, as before there were others.
                elicitation_form: elicitation.as_ref().is_some_and(|modes| modes.form.is_some() || modes.url.is_none()),
                elicitation_url: elicitation.is_some_and(|modes| modes.url.is_some()),
                sampling: capabilities.sampling.is_some(),
                roots: capabilities.roots.is_some(),
            },
            tasks,
        }
    }
}

/// Numbers of clients with a session or without a name.
static NUMBERS: AtomicU64 = AtomicU64::new(1);
/// Marks the number of a client that is known by its name; counting never comes here.
const OF_A_NAME: u64 = 1 << 63;

/// A client of an endpoint: of a session, of one request without one, or of a pipe.
#[derive(Debug)]
pub(crate) struct Client {
    pub(crate) endpoint: Arc<Endpoint>,
    /// Tells clients of this process apart.
    pub(crate) number: u64,
    /// Whether it speaks a revision without handshake.
    pub(crate) stateless: bool,
    identity: OnceLock<Identity>,
    /// From which level on it wants to hear words for a log.
    log_level: Mutex<Option<LogLevel>>,
    next: AtomicU64,
    asked: Mutex<HashMap<u64, oneshot::Sender<Result<String, RpcError>>>>,
    under_way: Mutex<HashMap<String, oneshot::Sender<()>>>,
    notices: broadcast::Sender<Arc<str>>,
    pub(super) subscriptions: super::subscriptions::Subscriptions,
    /// Its answers that are told as they come.
    pub(super) streams: super::streams::Streams,
}

impl Client {
    /// One that will introduce itself.
    pub(crate) fn new(endpoint: Arc<Endpoint>) -> Arc<Self> {
        Self::of(endpoint, NUMBERS.fetch_add(1, Ordering::Relaxed), None)
    }

    /// One of a revision without handshake, for one request. What calls itself the same at the same endpoint counts
    /// as one client; what has no name, as another each time.
    pub(crate) fn stateless(endpoint: Arc<Endpoint>, identity: Identity) -> Arc<Self> {
        let number = match identity.name.is_empty() {
            true => NUMBERS.fetch_add(1, Ordering::Relaxed),
            false => endpoint.hasher.hash_one((&endpoint.label, &identity.name, &identity.version)) | OF_A_NAME,
        };
        Self::of(endpoint, number, Some(identity))
    }

    fn of(endpoint: Arc<Endpoint>, number: u64, identity: Option<Identity>) -> Arc<Self> {
        Arc::new(Self {
            endpoint,
            number,
            stateless: identity.is_some(),
            identity: identity.map_or_else(OnceLock::new, OnceLock::from),
            log_level: Mutex::default(),
            next: AtomicU64::new(1),
            asked: Mutex::default(),
            under_way: Mutex::default(),
            notices: broadcast::Sender::new(UNREAD),
            subscriptions: super::subscriptions::Subscriptions::default(),
            streams: super::streams::Streams::default(),
        })
    }

    /// Notes who it is; the first word counts.
    pub(crate) fn introduce(&self, identity: Identity) -> &Identity {
        self.identity.get_or_init(|| identity)
    }

    pub(crate) fn identity(&self) -> Option<&Identity> {
        self.identity.get()
    }

    pub(crate) fn offers(&self) -> Offers {
        self.identity().map(|identity| identity.offers).unwrap_or_default()
    }

    /// Whether a call of its may become a task of its own.
    pub(crate) fn takes_tasks(&self) -> bool {
        self.stateless && self.identity().is_some_and(|identity| identity.tasks)
    }

    /// Whether a server may make a task of a call of its: we ask after it for whoever does not, but in front of one
    /// server alone the client speaks for itself.
    pub(crate) fn may_become_a_task(&self) -> bool {
        self.takes_tasks() || !self.endpoint.is_of_one_server()
    }

    pub(crate) fn log_level(&self) -> Option<LogLevel> {
        *self.log_level.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn set_log_level(&self, level: Option<LogLevel>) {
        *self.log_level.lock().unwrap_or_else(PoisonError::into_inner) = level;
    }

    /// Who asks, as grants and the trail know it: what a client calls itself and how it came in.
    pub(crate) fn caller(&self) -> String {
        let name = self.identity().map(|identity| identity.name.as_str()).filter(|name| !name.is_empty());
        format!("{} ({})", name.unwrap_or("unnamed client"), self.endpoint.label)
    }

    /// What it says of itself, for the person who is asked.
    pub(crate) fn description(&self) -> Option<String> {
        let identity = self.identity()?;
        Some(format!("{} {}", identity.name, identity.version).trim().to_owned()).filter(|text| !text.is_empty())
    }

    fn asked(&self) -> MutexGuard<'_, HashMap<u64, oneshot::Sender<Result<String, RpcError>>>> {
        self.asked.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Asks the client something, on the way of a request of its own, and waits for the answer. Cancel-safe:
    /// dropped, the client is told that nobody waits.
    pub(crate) async fn ask(
        self: &Arc<Self>,
        on: &mpsc::Sender<String>,
        method: &str,
        params: &str,
    ) -> Result<String, RpcError> {
        let gone = || RpcError::new(RpcError::INTERNAL, "the client went away, or takes no stream of events");
        let id = self.next.fetch_add(1, Ordering::Relaxed);
        let (answer, answered) = oneshot::channel();
        {
            let mut asked = self.asked();
            if asked.len() >= ASKED {
                return Err(RpcError::new(RpcError::INTERNAL, format!("the client left {ASKED} requests unanswered")));
            }
            asked.insert(id, answer);
        }
        let asked = Asked { client: self, id, on };
        on.send(message::request(id, method, params)).await.map_err(|_| gone())?;
        let answer = answered.await.map_err(|_| gone());
        std::mem::forget(asked);
        answer?
    }

    /// An answer of the client to a request of ours. Unknown ones are dropped.
    pub(crate) fn answered(&self, id: u64, answer: Result<&RawValue, &RawValue>) {
        #[derive(Deserialize)]
        struct Error {
            code: i64,
            #[serde(default)]
            message: String,
        }
        let Some(waits) = self.asked().remove(&id) else { return };
        let answer = match answer {
            Ok(result) => Ok(result.get().to_owned()),
            Err(error) => Err(match serde_json::from_str::<Error>(error.get()) {
                Ok(error) => RpcError::new(error.code, error.message),
                Err(_) => RpcError::new(RpcError::INTERNAL, "the client answered with something else"),
            }),
        };
        let _ = waits.send(answer);
    }

    fn under_way(&self) -> MutexGuard<'_, HashMap<String, oneshot::Sender<()>>> {
        self.under_way.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Notes that a request is under way; completes if the client takes it back.
    ///
    /// # Errors
    ///
    /// An id that is under way already, or too many of them.
    pub(crate) fn begin(&self, id: &str) -> Result<(UnderWay<'_>, oneshot::Receiver<()>), RpcError> {
        let (cancel, cancelled) = oneshot::channel();
        let mut under_way = self.under_way();
        if under_way.len() >= UNDER_WAY {
            return Err(RpcError::new(RpcError::INTERNAL, format!("{UNDER_WAY} requests are under way already")));
        }
        if under_way.contains_key(id) {
            return Err(RpcError::new(RpcError::INVALID_REQUEST, "a request of this id is under way"));
        }
        under_way.insert(id.to_owned(), cancel);
        drop(under_way);
        Ok((UnderWay { client: self, id: id.to_owned() }, cancelled))
    }

    /// The client takes the request of this id back.
    pub(crate) fn cancel(&self, id: &str) {
        if let Some(cancel) = self.under_way().remove(id) {
            let _ = cancel.send(());
        }
    }

    /// Tells the client something that it did not ask for.
    pub(crate) fn tell(&self, message: &str) {
        // An error means that it does not listen.
        let _ = self.notices.send(message.into());
    }

    /// What it is told from now on.
    pub(crate) fn notices(&self) -> broadcast::Receiver<Arc<str>> {
        self.notices.subscribe()
    }
}

/// A request of ours that the client has not answered.
struct Asked<'a> {
    client: &'a Client,
    id: u64,
    on: &'a mpsc::Sender<String>,
}

impl Drop for Asked<'_> {
    fn drop(&mut self) {
        self.client.asked().remove(&self.id);
        let params = format!(r#"{{"requestId":{},"reason":"nobody waits any more"}}"#, self.id);
        let _ = self.on.try_send(message::notification("notifications/cancelled", &params));
    }
}

/// A request of the client that is under way.
#[derive(Debug)]
pub(crate) struct UnderWay<'a> {
    client: &'a Client,
    id: String,
}

impl Drop for UnderWay<'_> {
    fn drop(&mut self) {
        self.client.under_way().remove(&self.id);
    }
}
