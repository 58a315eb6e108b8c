//! Calls that go on as tasks (SEP-2663): of clients that take them, once a server made one of it.
//!
//! The client gets an id that nobody can guess and asks after it; the call itself goes on here, and its session asks
//! after the task of the server.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use jiff::Timestamp;
use portcullis::session::TaskStatus;
use serde::Deserialize;
use serde_json::{Value, json, value::RawValue};
use tokio::sync::mpsc;

use super::{
    calls,
    client::Client,
    message::{RpcError, object},
    suspended::{self, Aborts, Event, Work},
    unguessable,
};

/// How the extension is called among capabilities.
pub(crate) const EXTENSION: &str = "io.modelcontextprotocol/tasks";
/// Most tasks of one endpoint; further calls are answered when they are done.
const TASKS: usize = 256;
/// Longest results that are kept for one endpoint, in bytes, all together.
const RESULT_BYTES: usize = 64 << 20;
/// How long a task takes, where its server does not say.
const USUAL: Duration = Duration::from_secs(3600);
/// Longest that one is kept, however long its server keeps it.
const LONGEST: Duration = Duration::from_secs(24 * 3600);
/// How long it is kept beyond that, for a result that came last.
const BEYOND: Duration = Duration::from_secs(900);
/// How often a client asks after it, where its server does not say, and bounds of what it says.
const POLL_MS: (u64, u64, u64) = (100, 1000, 30_000);

type All = Arc<Mutex<HashMap<String, Task>>>;

/// The tasks of one endpoint, by id.
#[derive(Debug, Default)]
pub(crate) struct Tasks(All);

#[derive(Debug)]
struct Task {
    created: Timestamp,
    updated: Timestamp,
    ttl: Duration,
    poll_ms: u64,
    message: Option<String>,
    stage: Stage,
    /// Notes what happens.
    _follows: Aborts,
    _expires: Aborts,
}

#[derive(Debug)]
enum Stage {
    /// Follows what it says, and may ask.
    Working(Work),
    Done(Result<String, RpcError>),
    Cancelled,
}

impl Task {
    fn status(&self) -> &'static str {
        match &self.stage {
            Stage::Working(work) if work.is_asking() => "input_required",
            Stage::Working(..) => "working",
            Stage::Done(Ok(_)) => "completed",
            Stage::Done(Err(_)) => "failed",
            Stage::Cancelled => "cancelled",
        }
    }

    fn kept(&self) -> usize {
        match &self.stage {
            Stage::Done(Ok(result)) => result.len(),
            _ => 0,
        }
    }

    /// What every answer about it holds.
    fn described(&self, id: &str, kind: &str) -> Value {
        let mut described = json!({
            "resultType": kind,
            "taskId": id,
            "status": self.status(),
            "createdAt": self.created.to_string(),
            "lastUpdatedAt": self.updated.to_string(),
            "ttlMs": millis(self.ttl),
            "pollIntervalMs": self.poll_ms,
        });
        if let Some(message) = &self.message {
            described["statusMessage"] = message.as_str().into();
        }
        described
    }

    /// The same with what came of it, its result as it was written.
    fn detailed(&self, id: &str) -> String {
        let mut described = self.described(id, "complete");
        match &self.stage {
            Stage::Working(work) if work.is_asking() => described["inputRequests"] = work.requests(),
            Stage::Done(Err(error)) => described["error"] = error.to_json(),
            Stage::Done(Ok(result)) => {
                let members = described.as_object().into_iter().flatten();
                let members: Vec<_> = members.map(|(name, value)| (name.clone(), value.to_string())).collect();
                let members = members.iter().map(|(name, value)| (name.as_str(), value.as_str()));
                return object(members.chain([("result", result.as_str())]));
            }
            _ => {}
        }
        described.to_string()
    }
}

fn millis(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}

fn poll(status: &TaskStatus) -> u64 {
    let (least, usual, most) = POLL_MS;
    status.poll_interval_ms.unwrap_or(usual).clamp(least, most)
}

fn locked(all: &All) -> MutexGuard<'_, HashMap<String, Task>> {
    all.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Tasks {
    /// Whether there may be another one.
    pub(super) fn has_room(&self) -> bool {
        locked(&self.0).len() < TASKS
    }

    /// Ends them all.
    pub(crate) fn end(&self) {
        let ended = std::mem::take(&mut *locked(&self.0));
        drop(ended);
    }
}

/// Goes on with a call as a task; what the client is told at once.
///
/// # Errors
///
/// That the system gave no random numbers.
pub(super) fn begin(work: Work, events: mpsc::Receiver<Event>, status: &TaskStatus) -> Result<String, RpcError> {
    let all = work.client().endpoint.tasks.0.clone();
    let id = unguessable()?;
    let now = Timestamp::now();
    let ttl = status.ttl_ms.map_or(USUAL, Duration::from_millis).min(LONGEST) + BEYOND;
    // Those two hold it weakly: whatever ends the endpoint ends its tasks.
    let (weak, key) = (Arc::downgrade(&all), id.clone());
    let expires = Aborts::spawn(async move {
        tokio::time::sleep(ttl).await;
        if let Some(all) = weak.upgrade() {
            let expired = locked(&all).remove(&key);
            drop(expired);
        }
    });
    // Held until it stands there: what happens at once on another thread would be noted nowhere.
    let mut tasks = locked(&all);
    let (weak, key) = (Arc::downgrade(&all), id.clone());
    let follows = Aborts::spawn(async move {
        let mut events = events;
        while let Some(event) = events.recv().await {
            let Some(all) = weak.upgrade() else { return };
            if note(&all, &key, event) {
                return;
            }
        }
    });
    let mut task = Task {
        created: now,
        updated: now,
        ttl,
        poll_ms: poll(status),
        message: None,
        stage: Stage::Working(work),
        _follows: follows,
        _expires: expires,
    };
    task.message = said(&task, status);
    let created = task.described(&id, "task").to_string();
    tasks.insert(id, task);
    drop(tasks);
    Ok(created)
}

/// The server's words on where it stands, without its secrets.
fn said(task: &Task, status: &TaskStatus) -> Option<String> {
    let Stage::Working(work) = &task.stage else { return None };
    let redacted = |text: &String| work.client().endpoint.gate().redact(text).into_owned();
    status.message.as_ref().map(redacted)
}

/// Notes what happened; whether it was the last thing.
fn note(all: &All, id: &str, event: Event) -> bool {
    let mut tasks = locked(all);
    let kept: usize = tasks.values().map(Task::kept).sum();
    let Some(task) = tasks.get_mut(id) else { return true };
    let Stage::Working(work) = &mut task.stage else { return true };
    task.updated = Timestamp::now();
    match event {
        Event::Asks(request, answer) => {
            work.ask(request, answer);
            false
        }
        Event::Works(status) => {
            if status.poll_interval_ms.is_some() {
                task.poll_ms = poll(&status);
            }
            task.message = said(task, &status).or(task.message.take());
            false
        }
        Event::Done(result) => {
            let too_much = || {
                let why = format!("the results of tasks hold {RESULT_BYTES} bytes already: fetch them, or cancel some");
                RpcError::new(RpcError::INTERNAL, why)
            };
            let result = result.and_then(|result| match kept + result.len() > RESULT_BYTES {
                true => Err(too_much()),
                false => Ok(result),
            });
            task.message = None;
            task.stage = Stage::Done(result);
            true
        }
    }
}

/// `tasks/get`, `tasks/update`, `tasks/cancel`.
///
/// # Errors
///
/// What to answer: the client takes no tasks, or there is none of this id.
pub(super) fn request(client: &Client, method: &str, params: Option<&RawValue>) -> Result<String, RpcError> {
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Params<'a> {
        task_id: String,
        #[serde(borrow, default)]
        input_responses: Option<&'a RawValue>,
    }
    if !client.takes_tasks() {
        let needed = json!({"requiredCapabilities": {"extensions": {EXTENSION: {}}}});
        return Err(RpcError::new(RpcError::MISSING_CAPABILITY, "the client takes no tasks").with_data(needed));
    }
    let Params { task_id: id, input_responses } = calls::read(params)?;
    let answers = suspended::answers(input_responses)?;
    let mut tasks = locked(&client.endpoint.tasks.0);
    let task = tasks.get_mut(&id).ok_or_else(|| RpcError::invalid_params("there is no such task"))?;
    match method {
        "tasks/update" => {
            if let Stage::Working(work) = &mut task.stage {
                work.answer(answers);
                task.updated = Timestamp::now();
            }
        }
        "tasks/cancel" => {
            if matches!(task.stage, Stage::Working(..)) {
                task.updated = Timestamp::now();
                task.message = None;
                let ended = std::mem::replace(&mut task.stage, Stage::Cancelled);
                drop(tasks);
                drop(ended);
            }
        }
        _ => return Ok(task.detailed(&id)),
    }
    // What became of it is asked after.
    Ok(r#"{"resultType":"complete"}"#.to_owned())
}
