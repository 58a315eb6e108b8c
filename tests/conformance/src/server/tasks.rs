//! Tools that go on as tasks (SEP-2663), for clients that take them.

use std::{
    collections::HashMap,
    sync::{Mutex, MutexGuard, PoisonError},
    thread,
    time::{Duration, Instant},
};

use serde_json::{Map, Value, json};

use crate::{
    Failure, Request,
    content::{form, text},
};

/// How the extension is called.
pub(crate) const EXTENSION: &str = "io.modelcontextprotocol/tasks";
/// When nothing moves: there is no clock that the suite would compare.
const AT: &str = "2026-07-28T00:00:00Z";

/// Its tools, with their one argument.
const TOOLS: &[(&str, &str, &str)] = &[
    ("greet", "name", "string"),
    ("slow_compute", "seconds", "number"),
    ("failing_job", "reason", "string"),
    ("protocol_error_job", "reason", "string"),
    ("confirm_delete", "filename", "string"),
    ("multi_input", "reason", "string"),
    ("test_tool_with_task", "reason", "string"),
];

/// The tasks of the server.
#[derive(Debug, Default)]
pub(crate) struct Tasks(Mutex<(u64, HashMap<String, Task>)>);

#[derive(Debug)]
struct Task {
    ends: Instant,
    comes: Result<Value, Value>,
    open: Map<String, Value>,
    cancelled: bool,
}

impl Tasks {
    fn lock(&self) -> MutexGuard<'_, (u64, HashMap<String, Task>)> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn begin(&self, after: Duration, comes: Result<Value, Value>, open: Map<String, Value>) -> Value {
        let mut tasks = self.lock();
        tasks.0 += 1;
        let id = format!("task-{}", tasks.0);
        let task = Task { ends: Instant::now() + after, comes, open, cancelled: false };
        let mut created = task.described(&id);
        created["resultType"] = "task".into();
        tasks.1.insert(id, task);
        created
    }
}

impl Task {
    fn status(&self) -> &'static str {
        match () {
            () if self.cancelled => "cancelled",
            () if !self.open.is_empty() => "input_required",
            () if Instant::now() < self.ends => "working",
            () if self.comes.is_ok() => "completed",
            () => "failed",
        }
    }

    fn described(&self, id: &str) -> Value {
        json!({
            "taskId": id, "status": self.status(), "createdAt": AT, "lastUpdatedAt": AT, "ttlMs": 3_600_000,
            "pollIntervalMs": 100,
        })
    }

    fn detailed(&self, id: &str) -> Value {
        let mut detailed = self.described(id);
        match (self.status(), &self.comes) {
            ("input_required", _) => detailed["inputRequests"] = self.open.clone().into(),
            ("completed", Ok(result)) => detailed["result"] = result.clone(),
            ("failed", Err(error)) => detailed["error"] = error.clone(),
            _ => {}
        }
        detailed
    }
}

pub(crate) fn tools() -> impl Iterator<Item = Value> {
    TOOLS.iter().map(|(name, argument, kind)| {
        let schema = json!({"type": "object", "properties": {*argument: {"type": kind}}});
        json!({"name": name, "description": format!("{name} of the suite"), "inputSchema": schema})
    })
}

/// `tasks/get`, `tasks/update`, `tasks/cancel`.
pub(crate) fn asked(request: Request<'_>, method: &str) -> Result<Value, Failure> {
    if !takes(request) {
        return Err(needed());
    }
    let id = request.params["taskId"].as_str().unwrap_or_default();
    let mut tasks = request.server.tasks.lock();
    let task = tasks.1.get_mut(id).ok_or_else(|| Failure::Rpc(-32_602, "no such task".to_owned()))?;
    match method {
        "tasks/update" => {
            let answers = request.params["inputResponses"].as_object();
            task.open.retain(|key, _| answers.is_none_or(|answers| !answers.contains_key(key)));
        }
        "tasks/cancel" => task.cancelled |= matches!(task.status(), "working" | "input_required"),
        _ => return Ok(task.detailed(id)),
    }
    Ok(json!({}))
}

fn takes(request: Request<'_>) -> bool {
    let offers = &request.params["_meta"]["io.modelcontextprotocol/clientCapabilities"];
    offers["extensions"].get(EXTENSION).is_some()
}

fn needed() -> Failure {
    Failure::Needs(json!({"extensions": {EXTENSION: {}}}))
}

/// A call of one of its tools; nothing where the tool is none.
pub(crate) fn call(request: Request<'_>, name: &str) -> Option<Result<Value, Failure>> {
    TOOLS.iter().any(|(known, ..)| *known == name).then(|| carried_out(request, name))
}

fn carried_out(request: Request<'_>, name: &str) -> Result<Value, Failure> {
    let arguments = &request.params["arguments"];
    let said = |words: String| json!({"content": [text(words)]});
    let begin = |after, comes, open| Ok(request.server.tasks.begin(after, comes, open));
    let asks = |keys: &[&str]| {
        let form = json!({"method": "elicitation/create", "params": form("Really?", "confirm", "boolean")});
        keys.iter().map(|key| ((*key).to_owned(), form.clone())).collect::<Map<_, _>>()
    };
    let soon = Duration::from_millis(200);
    match name {
        "greet" => Ok(said(format!("Hello, {}!", arguments["name"].as_str().unwrap_or("nobody")))),
        "slow_compute" => {
            let seconds = Duration::try_from_secs_f64(arguments["seconds"].as_f64().unwrap_or(0.0)).unwrap_or_default();
            let done = said(format!("{} seconds", seconds.as_secs_f64()));
            if !takes(request) {
                thread::sleep(seconds);
                return Ok(done);
            }
            begin(seconds, Ok(done), Map::new())
        }
        _ if !takes(request) => Err(needed()),
        "failing_job" => {
            let failed = json!({"content": [text("it went wrong")], "isError": true});
            begin(soon, Ok(failed), Map::new())
        }
        "protocol_error_job" => begin(soon, Err(json!({"code": -32_603, "message": "it broke"})), Map::new()),
        "confirm_delete" => begin(Duration::ZERO, Ok(said("deleted".to_owned())), asks(&["confirm"])),
        "multi_input" => begin(Duration::ZERO, Ok(said("both".to_owned())), asks(&["first", "second"])),
        _ => {
            let answer = request.ask("user_name", "elicitation/create", &form("Who are you?", "name", "string"))?;
            let name = answer["content"]["name"].as_str().unwrap_or("nobody");
            begin(soon, Ok(said(format!("Hello, {name}!"))), Map::new())
        }
    }
}
