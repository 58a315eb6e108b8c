//! Requests of clients without sessions that wait for something the client has to answer first.
//!
//! Such a client cannot be asked: its request is answered with what is wanted (`input_required`, SEP-2322), and
//! goes on when it is put again with the answers. Meanwhile it waits here, under a token that nobody can
//! guess, for exactly the request that it was.

use std::{
    collections::BTreeMap,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use portcullis::{
    async_trait,
    session::{ClientHandler, LogLevel, Offers, Refusal, RequestKind, ServerRequest, TaskStatus},
};
use serde_json::{Value, json, value::RawValue};
use tokio::{
    sync::{mpsc, oneshot},
    task::JoinHandle,
    time::Instant,
};

use super::{
    asking::{self, Missed, ProgressToken, Puts},
    client::Client,
    message::RpcError,
    tasks, unguessable,
};

/// How long a client may take for its answers.
const WAITS: Duration = Duration::from_secs(300);
/// Most requests of one endpoint that wait.
const WAITING: usize = 256;
/// How long after a question others are waited for, to be asked with it.
const GATHER: Duration = Duration::from_millis(20);

/// What a request under way says.
#[derive(Debug)]
pub(super) enum Event {
    Asks(ServerRequest, Answered),
    /// It goes on as a task of its server.
    Works(TaskStatus),
    Done(Result<String, RpcError>),
}

type Answered = oneshot::Sender<Result<String, Refusal>>;

/// A request under way, and what comes of it.
#[derive(Debug)]
struct Running {
    events: mpsc::Receiver<Event>,
    /// Messages for the client, on whichever stream it waits.
    told: mpsc::Receiver<String>,
    work: Work,
    /// What the request was.
    about: String,
    listening: Arc<AtomicBool>,
    progress: ProgressToken,
    /// Gives it up, if it waits for too long.
    expires: Option<Aborts>,
}

/// What is done for a request, in a task of this process that ends with it, and what its server wants to know.
#[derive(Debug)]
pub(super) struct Work {
    _task: Aborts,
    open: BTreeMap<String, (ServerRequest, Answered)>,
    count: u64,
    /// What the client said before it was asked.
    answers: Answers,
    client: Arc<Client>,
}

/// A task of this process that ends when nobody wants it any more.
#[derive(Debug)]
pub(super) struct Aborts(JoinHandle<()>);

impl Aborts {
    pub(super) fn spawn(work: impl Future<Output = ()> + Send + 'static) -> Self {
        Self(tokio::spawn(work))
    }
}

impl Drop for Aborts {
    fn drop(&mut self) {
        self.0.abort();
    }
}

impl Work {
    /// Has something asked, unless the client said it already; whether it is open.
    pub(super) fn ask(&mut self, request: ServerRequest, answer: Answered) -> bool {
        self.count += 1;
        let key = request.key.clone().filter(|key| !self.open.contains_key(key));
        let key = key.unwrap_or_else(|| format!("q{}", self.count));
        match self.answers.remove(&key) {
            Some(known) => drop(answer.send(Ok(known))),
            None => drop(self.open.insert(key, (request, answer))),
        }
        self.is_asking()
    }

    /// Hands over answers. Those to what was not asked are nobody's.
    pub(super) fn answer(&mut self, answers: Answers) {
        for (key, response) in answers {
            if let Some((_, answer)) = self.open.remove(&key) {
                let _ = answer.send(Ok(response));
            }
        }
    }

    pub(super) fn is_asking(&self) -> bool {
        !self.open.is_empty()
    }

    /// What is open, as a client is told.
    pub(super) fn requests(&self) -> Value {
        let requests = self.open.iter().map(|(key, (request, _))| {
            let params: Value = serde_json::from_str(&asking::labelled(request)).unwrap_or_default();
            (key.clone(), json!({"method": request.kind.method(), "params": params}))
        });
        Value::Object(requests.collect())
    }

    pub(super) fn client(&self) -> &Arc<Client> {
        &self.client
    }
}

impl Running {
    /// From here on the client asks after it. Nobody is told of progress any more.
    fn becomes_a_task(self, status: &TaskStatus) -> Result<String, RpcError> {
        tasks::begin(self.work, self.events, status)
    }
}

/// Asks by way of the answer to the request.
#[derive(Debug)]
pub(crate) struct Suspends {
    client: Arc<Client>,
    /// What the client is told on the way.
    on: mpsc::Sender<String>,
    events: mpsc::Sender<Event>,
    /// Whether the client waits for an answer, rather than we for it.
    listening: Arc<AtomicBool>,
    pub(crate) missed: Missed,
}

#[async_trait]
impl ClientHandler for Suspends {
    fn offers(&self) -> Offers {
        self.client.offers()
    }

    fn log_level(&self) -> Option<LogLevel> {
        self.client.log_level()
    }

    fn logged(&self, server: &str, _: LogLevel, params: &str) {
        asking::log(&self.client, &self.on, server, params);
    }

    async fn answer(&self, request: ServerRequest) -> Result<String, Refusal> {
        self.client.endpoint.pace.ask(&request.server)?;
        self.put(request).await
    }

    fn missed(&self, kind: RequestKind) {
        self.missed.note(kind);
    }

    fn is_listening(&self) -> bool {
        self.listening.load(Ordering::Relaxed)
    }

    // Clients of this era are known by their names alone.
    fn answers_for_all(&self) -> bool {
        false
    }

    fn takes_tasks(&self) -> bool {
        self.client.may_become_a_task()
    }

    fn works(&self, task: &TaskStatus) {
        // What does not fit is said again with the next look.
        let _ = self.events.try_send(Event::Works(task.clone()));
    }
}

#[async_trait]
impl Puts for Suspends {
    async fn put(&self, request: ServerRequest) -> Result<String, Refusal> {
        let gone = |()| Refusal::Denied("the client went away".to_owned());
        let (answer, answered) = oneshot::channel();
        self.events.send(Event::Asks(request, answer)).await.map_err(|_| gone(()))?;
        answered.await.map_err(|_| gone(()))?
    }

    fn is_put_again(&self) -> bool {
        true
    }
}

/// What a client says each time that it puts a request.
#[derive(Debug)]
pub(crate) struct Put {
    pub(crate) answers: Answers,
    /// Its token for progress.
    pub(crate) token: Option<String>,
    pub(crate) log_level: Option<LogLevel>,
}

/// Answers of a client, by the name of what was asked.
pub(crate) type Answers = BTreeMap<String, String>;

/// The answers that came with a request.
///
/// # Errors
///
/// What to answer where they are none.
pub(crate) fn answers(responses: Option<&RawValue>) -> Result<Answers, RpcError> {
    let responses: BTreeMap<String, &RawValue> = match responses {
        Some(responses) => serde_json::from_str(responses.get())
            .map_err(|_| RpcError::invalid_params("`inputResponses` is an object, an answer for each question"))?,
        None => BTreeMap::new(),
    };
    // What is no object answers nothing, and is asked again.
    let answers = responses.into_iter().filter(|(_, response)| response.get().starts_with('{'));
    Ok(answers.map(|(key, response)| (key, response.get().to_owned())).collect())
}

/// The requests of one endpoint that wait.
#[derive(Debug, Default)]
pub(crate) struct Suspended {
    waiting: Arc<Mutex<BTreeMap<String, Running>>>,
}

impl Suspended {
    fn waiting(&self) -> MutexGuard<'_, BTreeMap<String, Running>> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Gives up all that wait.
    pub(crate) fn end(&self) {
        let ended = std::mem::take(&mut *self.waiting());
        drop(ended);
    }

    /// Begins a request that may have to ask; `about` tells it from every other. What `answers` knows already is
    /// not asked: a client that was told no state, or lost it, begins anew with all that it knows. What it wants to
    /// tell on the way goes to `on`.
    pub(crate) async fn begin<F>(
        &self,
        about: String,
        client: &Arc<Client>,
        put: Put,
        on: &mpsc::Sender<String>,
        work: impl FnOnce(ProgressToken, mpsc::Sender<String>, Arc<Suspends>) -> F,
    ) -> Result<String, RpcError>
    where
        F: Future<Output = Result<String, RpcError>> + Send + 'static,
    {
        let (events, received) = mpsc::channel(16);
        let (tell, told) = mpsc::channel(16);
        let listening = Arc::new(AtomicBool::new(true));
        let asks = Suspends {
            client: client.clone(),
            on: tell.clone(),
            events: events.clone(),
            listening: listening.clone(),
            missed: Missed::default(),
        };
        let progress = ProgressToken::default();
        client.set_log_level(put.log_level);
        progress.set(put.token);
        let work = work(progress.clone(), tell, Arc::new(asks));
        let task = Aborts::spawn(async move {
            let done = work.await;
            // An error means that nobody waits.
            let _ = events.send(Event::Done(done)).await;
        });
        let work = Work { _task: task, open: BTreeMap::new(), count: 0, answers: put.answers, client: client.clone() };
        let running = Running { events: received, told, work, about, listening, progress, expires: None };
        self.follow(running, on).await
    }

    /// Goes on with a request that was put again.
    pub(crate) async fn resume(
        &self,
        about: &str,
        state: &str,
        put: Put,
        on: &mpsc::Sender<String>,
    ) -> Result<String, RpcError> {
        let unknown = || RpcError::invalid_params("`requestState` is not that of a request that waits");
        let mut running = {
            let mut waiting = self.waiting();
            // Somebody else's, or another request: it stays for whoever it belongs to.
            if waiting.get(state).is_none_or(|running| running.about != about) {
                return Err(unknown());
            }
            waiting.remove(state).ok_or_else(unknown)?
        };
        running.expires = None;
        running.work.client.set_log_level(put.log_level);
        running.progress.set(put.token);
        running.work.answer(put.answers);
        if running.work.is_asking() {
            return self.keep(running);
        }
        self.follow(running, on).await
    }

    /// Until it is done or asks something.
    async fn follow(&self, mut running: Running, on: &mpsc::Sender<String>) -> Result<String, RpcError> {
        running.listening.store(true, Ordering::Relaxed);
        let lost = || RpcError::new(RpcError::INTERNAL, "the request ended without a result");
        // Several questions of one server come together.
        let mut until = None;
        loop {
            let event = tokio::select! {
                biased;
                Some(told) = running.told.recv() => {
                    let _ = on.send(told).await;
                    continue;
                }
                event = running.events.recv() => event.ok_or_else(lost)?,
                () = tokio::time::sleep_until(until.unwrap_or_else(Instant::now)), if until.is_some() => {
                    return self.keep(running);
                }
            };
            match event {
                Event::Done(result) => {
                    while let Ok(told) = running.told.try_recv() {
                        let _ = on.send(told).await;
                    }
                    return result;
                }
                Event::Asks(request, answer) => {
                    if running.work.ask(request, answer) {
                        until.get_or_insert_with(|| Instant::now() + GATHER);
                    }
                }
                Event::Works(status) => {
                    if running.work.client.takes_tasks() && running.work.client.endpoint.tasks.has_room() {
                        return running.becomes_a_task(&status);
                    }
                }
            }
        }
    }

    /// Keeps it for the answers, and says what is wanted.
    fn keep(&self, mut running: Running) -> Result<String, RpcError> {
        let state = unguessable()?;
        let requests = running.work.requests();
        let result = json!({"resultType": "input_required", "inputRequests": requests, "requestState": state});
        running.listening.store(false, Ordering::Relaxed);
        let mut waiting = self.waiting();
        if waiting.len() >= WAITING {
            return Err(RpcError::new(RpcError::INTERNAL, format!("{WAITING} requests wait for answers already")));
        }
        let (all, key) = (Arc::downgrade(&self.waiting), state.clone());
        running.expires = Some(Aborts::spawn(async move {
            tokio::time::sleep(WAITS).await;
            if let Some(waiting) = all.upgrade() {
                let expired = waiting.lock().unwrap_or_else(PoisonError::into_inner).remove(&key);
                drop(expired);
            }
        }));
        waiting.insert(state, running);
        Ok(result.to_string())
    }
}
