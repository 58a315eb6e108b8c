//! Requests of clients without sessions that wait for something the client has to answer first.
//!
//! Such a client cannot be asked: its request is answered with what is wanted (`input_required`, SEP-2322), and
//! goes on when it is put again with the answers. Meanwhile it waits here, under a token that nobody can
//! guess, for exactly the request that it was.

use std::{
    collections::BTreeMap,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use base64::{Engine as _, prelude::BASE64_URL_SAFE_NO_PAD};
use portcullis::{
    async_trait,
    session::{ClientHandler, Offers, Refusal, ServerRequest},
};
use serde_json::{Value, json, value::RawValue};
use tokio::{
    sync::{mpsc, oneshot},
    task::JoinHandle,
};

use super::{asking, message::RpcError};

/// How long a client may take for its answers.
const WAITS: Duration = Duration::from_secs(300);
/// Most requests of one endpoint that wait.
const WAITING: usize = 256;
/// How often others may run before the questions that were asked so far are sent.
const TURNS: usize = 8;

/// What a request under way says.
#[derive(Debug)]
enum Event {
    Asks(ServerRequest, oneshot::Sender<Result<String, Refusal>>),
    Done(Result<String, RpcError>),
}

/// A request under way, in a task of its own that ends with it.
#[derive(Debug)]
struct Running {
    events: mpsc::Receiver<Event>,
    /// Messages for the client, on whichever stream it waits.
    told: mpsc::Receiver<String>,
    task: JoinHandle<()>,
    open: BTreeMap<String, (ServerRequest, oneshot::Sender<Result<String, Refusal>>)>,
    /// What the request was.
    about: String,
    count: u64,
}

impl Drop for Running {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// Asks by way of the answer to the request.
#[derive(Debug)]
struct Suspends {
    offers: Offers,
    events: mpsc::Sender<Event>,
}

#[async_trait]
impl ClientHandler for Suspends {
    fn offers(&self) -> Offers {
        self.offers
    }

    async fn answer(&self, request: ServerRequest) -> Result<String, Refusal> {
        let gone = |()| Refusal::Denied("the client went away".to_owned());
        let (answer, answered) = oneshot::channel();
        self.events.send(Event::Asks(request, answer)).await.map_err(|_| gone(()))?;
        answered.await.map_err(|_| gone(()))?
    }
}

/// The answers that came with a request, and what they belong to.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Answers<'a> {
    pub(crate) state: &'a str,
    pub(crate) responses: Option<&'a RawValue>,
}

/// The requests of one endpoint that wait.
#[derive(Debug, Default)]
pub(crate) struct Suspended {
    waiting: Arc<Mutex<BTreeMap<String, Running>>>,
    next: AtomicU64,
}

impl Suspended {
    fn waiting(&self) -> MutexGuard<'_, BTreeMap<String, Running>> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Begins a request that may have to ask; `about` tells it from every other. What it wants to tell on the
    /// way goes to `on`.
    pub(crate) async fn begin<F>(
        &self,
        about: String,
        offers: Offers,
        on: &mpsc::Sender<String>,
        work: impl FnOnce(mpsc::Sender<String>, Arc<dyn ClientHandler>) -> F,
    ) -> Result<String, RpcError>
    where
        F: Future<Output = Result<String, RpcError>> + Send + 'static,
    {
        let (events, received) = mpsc::channel(16);
        let (tell, told) = mpsc::channel(16);
        let work = work(tell, Arc::new(Suspends { offers, events: events.clone() }));
        let task = tokio::spawn(async move {
            let done = work.await;
            // An error means that nobody waits.
            let _ = events.send(Event::Done(done)).await;
        });
        let running = Running { events: received, told, task, open: BTreeMap::new(), about, count: 0 };
        self.follow(running, on).await
    }

    /// Goes on with a request that was put again.
    pub(crate) async fn resume(
        &self,
        about: &str,
        answers: Answers<'_>,
        on: &mpsc::Sender<String>,
    ) -> Result<String, RpcError> {
        let unknown = || RpcError::invalid_params("`requestState` is not that of a request that waits");
        let mut running = {
            let mut waiting = self.waiting();
            // Somebody else's, or another request: it stays for whoever it belongs to.
            if waiting.get(answers.state).is_none_or(|running| running.about != about) {
                return Err(unknown());
            }
            waiting.remove(answers.state).ok_or_else(unknown)?
        };
        let responses: BTreeMap<String, &RawValue> = match answers.responses {
            Some(responses) => serde_json::from_str(responses.get())
                .map_err(|_| RpcError::invalid_params("`inputResponses` is an object, an answer for each question"))?,
            None => BTreeMap::new(),
        };
        for (key, response) in responses {
            // Answers to what was not asked are nobody's.
            if !response.get().starts_with('{') {
                continue;
            }
            if let Some((_, answer)) = running.open.remove(&key) {
                let _ = answer.send(Ok(response.get().to_owned()));
            }
        }
        if running.open.is_empty() {
            return self.follow(running, on).await;
        }
        self.keep(running)
    }

    /// Until it is done or asks something.
    async fn follow(&self, mut running: Running, on: &mpsc::Sender<String>) -> Result<String, RpcError> {
        let lost = || RpcError::new(RpcError::INTERNAL, "the request ended without a result");
        let mut next = loop {
            tokio::select! {
                biased;
                Some(told) = running.told.recv() => drop(on.send(told).await),
                event = running.events.recv() => break event.ok_or_else(lost)?,
            }
        };
        // Several questions of one server come together.
        let mut turns = 0;
        loop {
            match next {
                Event::Done(result) => {
                    while let Ok(told) = running.told.try_recv() {
                        let _ = on.send(told).await;
                    }
                    return result;
                }
                Event::Asks(request, answer) => {
                    running.count += 1;
                    running.open.insert(format!("q{}", running.count), (request, answer));
                }
            }
            next = loop {
                match running.events.try_recv() {
                    Ok(event) => break event,
                    Err(_) if turns == TURNS => return self.keep(running),
                    Err(_) => {
                        turns += 1;
                        tokio::task::yield_now().await;
                    }
                }
            };
        }
    }

    /// Keeps it for the answers, and says what is wanted.
    fn keep(&self, running: Running) -> Result<String, RpcError> {
        let mut token = [0; 24];
        getrandom::fill(&mut token)
            .map_err(|_| RpcError::new(RpcError::INTERNAL, "the operating system gave no random numbers"))?;
        let state = format!("{}.{}", BASE64_URL_SAFE_NO_PAD.encode(token), self.next.fetch_add(1, Ordering::Relaxed));
        let requests: serde_json::Map<String, Value> = running
            .open
            .iter()
            .map(|(key, (request, _))| {
                let params: Value = serde_json::from_str(&asking::labelled(request)).unwrap_or_default();
                (key.clone(), json!({"method": request.kind.method(), "params": params}))
            })
            .collect();
        let result = json!({"resultType": "input_required", "inputRequests": requests, "requestState": state});
        let mut waiting = self.waiting();
        if waiting.len() >= WAITING {
            return Err(RpcError::new(RpcError::INTERNAL, format!("{WAITING} requests wait for answers already")));
        }
        waiting.insert(state.clone(), running);
        drop(waiting);
        let waiting = Arc::downgrade(&self.waiting);
        tokio::spawn(async move {
            tokio::time::sleep(WAITS).await;
            if let Some(waiting) = waiting.upgrade() {
                drop(waiting.lock().unwrap_or_else(PoisonError::into_inner).remove(&state));
            }
        });
        Ok(result.to_string())
    }
}
