//! Calls that a server makes a task of, for clients that take them and for those that do not.

use std::sync::{Arc, Mutex};

use portcullis::{
    serde_json::{Value, json},
    session::Lifecycle,
    store::Mode,
    testing::{FakeServer, RAW_RESULT, Reply},
    tokio,
};
use portcullis_gateway::EndpointOptions;
use portcullis_harness::Harness;

use super::{Endpoint, call};
use crate::{
    common::{limits, within},
    eras,
};

/// An endpoint in front of a server of which every call becomes a task, and what that says when it is asked after.
struct Tasks {
    endpoint: Endpoint,
    server: FakeServer,
    stage: Arc<Mutex<Value>>,
}

fn declared() -> Value {
    json!({"elicitation": {}, "extensions": {"io.modelcontextprotocol/tasks": {}}})
}

fn task(more: &Value) -> Reply {
    let mut task = json!({"resultType": "task", "taskId": "theirs", "status": "working", "pollIntervalMs": 1,
        "ttlMs": 60_000, "createdAt": "2026-07-28T00:00:00Z", "lastUpdatedAt": "2026-07-28T00:00:00Z"});
    task.as_object_mut().unwrap().extend(more.as_object().cloned().unwrap());
    Reply::Result(task.to_string())
}

impl Tasks {
    async fn new() -> Self {
        let server = eras::stateless();
        server.on("tools/call", |_| task(&json!({"statusMessage": "begun"})));
        let stage = Arc::new(Mutex::new(json!({})));
        let says = stage.clone();
        server.on("tasks/get", move |_| match says.lock().unwrap().clone() {
            // As it was written, where that matters.
            Value::String(raw) => Reply::Result(raw),
            stage => task(&stage),
        });
        server.on("tasks/cancel", |_| Reply::Result("{}".to_owned()));
        server.on("tasks/update", |_| Reply::Result("{}".to_owned()));
        let host = Harness::new().server("fake", &server).limits(limits()).lifecycle(Lifecycle::Stateless);
        let host = host.start().await.unwrap();
        host.make_ready("fake").await.unwrap();
        host.gate().set_mode("fake", Mode::Allow).await.unwrap();
        Self { endpoint: Endpoint::new(host, EndpointOptions::default()).await, server, stage }
    }

    fn goes_on(&self, stage: Value) {
        *self.stage.lock().unwrap() = stage;
    }

    async fn begin(&self) -> Value {
        let begun = self.endpoint.stateless("tools/call", call(r#"{"text":"x"}"#), declared()).await;
        begun["result"].clone()
    }

    async fn ask(&self, method: &str, id: &str, more: Value) -> Value {
        let mut params = json!({"taskId": id});
        params.as_object_mut().unwrap().extend(more.as_object().cloned().unwrap());
        self.endpoint.stateless(method, params, declared()).await
    }

    /// What is said of it, once it stands there.
    async fn is(&self, id: &str, status: &str) -> Value {
        loop {
            let said = within(self.ask("tasks/get", id, json!({}))).await["result"].clone();
            if said["status"] == status {
                return said;
            }
            assert_eq!(said["status"], "working", "{said}");
            tokio::task::yield_now().await;
        }
    }
}

#[tokio::test]
async fn c7_a_call_goes_on_as_a_task_and_asks_where_its_server_does() {
    let tasks = Tasks::new().await;
    let begun = tasks.begin().await;
    let id = begun["taskId"].as_str().unwrap();
    assert_eq!((&begun["resultType"], &begun["status"]), (&json!("task"), &json!("working")));
    assert_eq!((&begun["statusMessage"], &begun["pollIntervalMs"]), (&json!("begun"), &json!(100)));
    // An id of ours, that is not the server's.
    assert!(id.len() >= 32 && id != "theirs" && begun["ttlMs"].as_u64().unwrap() >= 60_000, "{begun}");
    tasks.goes_on(json!({"status": "input_required", "inputRequests": {
        "who": {"method": "elicitation/create", "params": {"message": "who?"}},
    }}));
    let asks = tasks.is(id, "input_required").await;
    assert_eq!(asks["inputRequests"]["who"]["params"]["message"], "The server \"fake\" asks: who?");
    let unknown = json!({"inputResponses": {"other": {"action": "accept"}}});
    assert_eq!(tasks.ask("tasks/update", id, unknown).await["result"], json!({"resultType": "complete"}));
    assert!(tasks.server.requests("tasks/update").is_empty());
    let result = format!(r#"{{"taskId":"theirs","status":"completed","result":{RAW_RESULT}}}"#);
    tasks.goes_on(Value::String(result));
    let answer = json!({"inputResponses": {"who": {"action": "accept", "content": {"n": 1}}}});
    assert_eq!(tasks.ask("tasks/update", id, answer).await["result"], json!({"resultType": "complete"}));
    within(tasks.server.until(|server| !server.requests("tasks/update").is_empty())).await;
    let told = &tasks.server.requests("tasks/update")[0].params;
    assert!(told.contains(r#""who":{"action":"accept","content":{"n":1}}"#), "{told}");
    // The result is what its server wrote, byte by byte, and done is done.
    let body = super::newer("tasks/get", json!({"taskId": id}), &declared());
    let headers = [("MCP-Protocol-Version", "2026-07-28"), ("Mcp-Method", "tasks/get"), ("Mcp-Name", id)];
    let mut raw = String::new();
    while !raw.contains(r#""status":"completed""#) {
        raw = tasks.endpoint.post(&headers, &body).await.body;
    }
    assert!(raw.contains(&RAW_RESULT[1..]), "{raw}");
    assert_eq!(tasks.ask("tasks/cancel", id, json!({})).await["result"], json!({"resultType": "complete"}));
    assert!(tasks.endpoint.post(&headers, &body).await.body.contains(&RAW_RESULT[1..]));
    assert_eq!(tasks.server.calls().len(), 1);
}

#[tokio::test]
async fn c7_a_task_that_is_cancelled_is_cancelled_at_its_server_and_one_that_fails_says_why() {
    let tasks = Tasks::new().await;
    let begun = tasks.begin().await;
    let id = begun["taskId"].as_str().unwrap();
    assert_eq!(tasks.ask("tasks/cancel", id, json!({})).await["result"], json!({"resultType": "complete"}));
    assert_eq!(tasks.ask("tasks/get", id, json!({})).await["result"]["status"], "cancelled");
    within(tasks.server.until(|server| !server.requests("tasks/cancel").is_empty())).await;
    let begun = tasks.begin().await;
    tasks.goes_on(json!({"status": "failed", "error": {"code": -7, "message": "broke", "data": {"a": 1}}}));
    let failed = tasks.is(begun["taskId"].as_str().unwrap(), "failed").await;
    assert_eq!(failed["error"], json!({"code": -7, "message": "broke", "data": {"a": 1}}));
    assert!(failed.get("result").is_none());
    // What is not there is not there, and whoever takes no tasks has none.
    assert_eq!(tasks.ask("tasks/get", "none", json!({})).await["error"]["code"], -32_602);
    let refused = tasks.endpoint.stateless("tasks/get", json!({"taskId": id}), json!({})).await;
    assert_eq!(refused["error"]["code"], -32_021);
    assert!(refused["error"]["data"]["requiredCapabilities"]["extensions"].is_object(), "{refused}");
    for removed in ["tasks/list", "tasks/result"] {
        assert_eq!(tasks.ask(removed, id, json!({})).await["error"]["code"], -32_601);
    }
}

#[tokio::test]
async fn c7_whoever_takes_no_tasks_gets_the_result_when_it_is_there() {
    let tasks = Tasks::new().await;
    tasks.goes_on(json!({"status": "completed", "result": {"content": [], "n": 1}}));
    let done = tasks.endpoint.stateless("tools/call", call("{}"), json!({})).await;
    assert_eq!(done["result"], json!({"resultType": "complete", "content": [], "n": 1}));
    let session = tasks.endpoint.session("client", json!({})).await;
    let done = tasks.endpoint.ask(&session, "tools/call", call("{}")).await;
    assert_eq!(done["result"], json!({"content": [], "n": 1}));
    // The server is told that a call may become a task, since we ask after it.
    let calls = tasks.server.requests("tools/call");
    assert!(calls.iter().all(|call| call.params.contains("io.modelcontextprotocol/tasks")), "{calls:?}");
}
