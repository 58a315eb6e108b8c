//! Both protocol eras, over a wire that a test writes by hand.

use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering},
};

use portcullis::{
    approval::Answer,
    async_trait,
    audit::AuditEvent,
    gate::ErrorClass,
    serde_json::{self, Value, json},
    session::{ClientHandler, Lifecycle, ListKind, Offers, Refusal, ServerRequest, SessionEvent},
    store::Mode,
    testing::{FakeServer, Reply, Request},
};
use portcullis_harness::{Harness, Host};

use crate::common::{limits, within};

const STATELESS: &str = "2026-07-28";

/// A server of the newer era: no handshake, and what it is told with every request has to be there.
pub(crate) fn stateless() -> FakeServer {
    let server = FakeServer::new();
    server.on("initialize", |_| Reply::Error(-32601, "no such method".to_owned()));
    server.on("server/discover", |request| {
        assert_eq!(meta(request)["io.modelcontextprotocol/protocolVersion"], STATELESS);
        Reply::Result(
            json!({"resultType": "complete", "supportedVersions": [STATELESS], "ttlMs": 0, "cacheScope": "private",
                "capabilities": {"tools": {"listChanged": true}, "resources": {}, "prompts": {}}})
            .to_string(),
        )
    });
    server.on("subscriptions/listen", |_| Reply::Nothing);
    server
}

fn meta(request: &Request) -> Value {
    let params: Value = serde_json::from_str(&request.params).unwrap();
    params["_meta"].clone()
}

#[derive(Debug, Default)]
pub(crate) struct Person {
    asked: AtomicUsize,
    refuses: bool,
}

#[async_trait]
impl ClientHandler for Person {
    fn offers(&self) -> Offers {
        Offers { elicitation_form: true, ..Offers::default() }
    }

    async fn answer(&self, request: ServerRequest) -> Result<String, Refusal> {
        assert_eq!(request.server, "fake");
        self.asked.fetch_add(1, Ordering::SeqCst);
        if self.refuses {
            return Err(Refusal::Denied("not today".to_owned()));
        }
        Ok(json!({"action": "accept", "content": {"name": "Ada"}}).to_string())
    }
}

pub(crate) async fn host(server: &FakeServer, lifecycle: Lifecycle, person: &Arc<Person>) -> Host {
    let host = Harness::new()
        .server("fake", server)
        .limits(limits())
        .lifecycle(lifecycle)
        .handler(person.clone())
        .start()
        .await
        .unwrap();
    host.make_ready("fake").await.unwrap();
    host
}

#[tokio::test]
async fn a_server_of_the_newer_era_is_told_everything_with_every_request() {
    let server = stateless();
    let host = host(&server, Lifecycle::Stateless, &Arc::default()).await;
    host.approver().will_say(Answer::Once);
    within(host.call("fake", "echo", r#"{"text":"x"}"#)).await.unwrap();
    assert!(server.requests("initialize").is_empty());
    for method in ["server/discover", "tools/list", "tools/call"] {
        for request in server.requests(method) {
            let meta = meta(&request);
            assert_eq!(meta["io.modelcontextprotocol/protocolVersion"], STATELESS, "{method}");
            assert_eq!(meta["io.modelcontextprotocol/clientInfo"]["name"], "portcullis", "{method}");
            assert!(meta["io.modelcontextprotocol/clientCapabilities"]["elicitation"].is_object(), "{method}");
        }
    }
    assert!(!server.received().iter().any(|line| line.contains("notifications/initialized")));
}

#[tokio::test]
async fn a_server_that_knows_only_the_newer_era_is_found_by_its_refusal() {
    let server = stateless();
    let host = host(&server, Lifecycle::Auto, &Arc::default()).await;
    host.approver().will_say(Answer::Once);
    within(host.call("fake", "echo", "{}")).await.unwrap();
    assert!(!server.requests("initialize").is_empty() && !server.requests("server/discover").is_empty());
}

#[tokio::test]
async fn r26_revisions_that_are_not_spoken_are_an_error_that_names_them() {
    for (revision, works) in [
        ("2024-11-05", true),
        ("2025-03-26", true),
        ("2025-06-18", true),
        ("2025-11-25", true),
        ("1999-01-01", false),
        ("", false),
        ("\u{1b}[31m", false),
    ] {
        let server = FakeServer::new();
        let answer = json!({"protocolVersion": revision, "capabilities": {"tools": {}}, "serverInfo": {"name": "s", "version": "1"}});
        server.on("initialize", move |_| Reply::Result(answer.to_string()));
        let host = Harness::new().server("fake", &server).limits(limits()).start().await.unwrap();
        host.trust("fake").await.unwrap();
        let started = within(host.gate().refresh("fake")).await;
        assert_eq!(started.is_ok(), works, "{revision}");
        if let Err(error) = started {
            let text = error.to_string();
            assert!(
                text.contains("`fake`") && text.contains("protocol revision") && !text.contains('\u{1b}'),
                "{text}"
            );
            assert_eq!((error.class(), server.running()), (ErrorClass::Unreachable, 0));
        }
    }
    for answer in [r#"{"protocolVersion":7}"#, "[]", "{}", r#""2025-11-25""#] {
        let server = FakeServer::new();
        server.on("initialize", move |_| Reply::Result(answer.to_owned()));
        let host = Harness::new().server("fake", &server).limits(limits()).start().await.unwrap();
        host.trust("fake").await.unwrap();
        let error = within(host.gate().refresh("fake")).await.unwrap_err();
        assert!(error.to_string().contains("something else"), "{answer}: {error}");
    }
}

/// Asks for a name before it does anything.
fn asks(server: &FakeServer, rounds: usize) {
    server.on("tools/call", move |request| {
        let params: Value = serde_json::from_str(&request.params).unwrap();
        let round: usize = params["requestState"].as_str().map_or(0, |state| state.parse().unwrap());
        if round > 0 {
            assert_eq!(params["inputResponses"]["who"]["content"]["name"], "Ada");
        }
        if round == rounds {
            return Reply::text("done");
        }
        Reply::Result(
            json!({"resultType": "input_required", "requestState": (round + 1).to_string(), "inputRequests": {
                "who": {"method": "elicitation/create", "params": {"message": "Who?", "requestedSchema": {}}}}})
            .to_string(),
        )
    });
}

#[tokio::test]
async fn s21_each_attempt_at_a_call_is_approved_and_written_down_for_itself() {
    let server = stateless();
    asks(&server, 2);
    let person = Arc::<Person>::default();
    let host = host(&server, Lifecycle::Stateless, &person).await;
    for _ in 0..3 {
        host.approver().will_say(Answer::Once);
    }
    let result = within(host.call("fake", "echo", r#"{"text":"x"}"#)).await.unwrap();
    assert!(result.get().contains("done"));
    assert_eq!(person.asked.load(Ordering::SeqCst), 2);
    assert_eq!(server.calls(), [r#"{"text":"x"}"#; 3]);
    assert_eq!(host.approver().asked().len(), 3);
    let calls = host.audit().lines().into_iter().filter(|line| line.event == AuditEvent::Call);
    let outcomes: Vec<_> = calls.filter_map(|line| line.outcome).collect();
    assert_eq!(outcomes, ["input-required", "input-required", "ok"]);

    // The person says no to the second attempt: nothing more is sent.
    server.forget();
    host.approver().will_say(Answer::Once);
    host.approver().will_say(Answer::Deny);
    let error = within(host.call("fake", "echo", "{}")).await.unwrap_err();
    assert_eq!((error.code(), server.calls().len()), ("denied", 1));
}

#[tokio::test]
async fn a_server_that_asks_without_end_or_gets_no_answer_ends_its_call() {
    let server = stateless();
    asks(&server, usize::MAX);
    let host = host(&server, Lifecycle::Stateless, &Arc::default()).await;
    host.gate().set_mode("fake", Mode::Allow).await.unwrap();
    let error = within(host.call("fake", "echo", "{}")).await.unwrap_err();
    assert!(error.to_string().contains("more and more"), "{error}");
    assert_eq!(server.calls().len(), portcullis::limits::INPUT_ROUNDS + 1);

    let server = stateless();
    asks(&server, 1);
    let host =
        self::host(&server, Lifecycle::Stateless, &Arc::new(Person { refuses: true, ..Person::default() })).await;
    host.gate().set_mode("fake", Mode::Allow).await.unwrap();
    let error = within(host.call("fake", "echo", "{}")).await.unwrap_err();
    assert!(error.to_string().contains("elicitation") && error.to_string().contains("not today"), "{error}");
    assert_eq!(server.calls().len(), 1);
}

#[tokio::test]
async fn a_task_is_asked_after_until_it_is_done_and_cancelled_when_nobody_waits() {
    let server = stateless();
    let task = |status: &str, more: Value| {
        let mut task = json!({"resultType": "task", "taskId": "t-1", "status": status, "pollIntervalMs": 1,
            "createdAt": "2026-12-01T00:00:00Z", "lastUpdatedAt": "2026-12-01T00:00:00Z", "ttlMs": null});
        task.as_object_mut().unwrap().extend(more.as_object().cloned().unwrap_or_default());
        Reply::Result(task.to_string())
    };
    server.on("tools/call", move |_| task("working", json!({})));
    let looks = AtomicUsize::new(0);
    server.on("tasks/get", move |request| {
        assert!(request.params.contains("\"taskId\":\"t-1\""));
        match looks.fetch_add(1, Ordering::SeqCst) {
            0 => task("working", json!({})),
            1 => task("input_required", json!({"inputRequests": {"q": {"method": "elicitation/create"}}})),
            _ => task("completed", json!({"result": {"content": [], "n": 1}})),
        }
    });
    server.on("tasks/update", |request| {
        assert!(request.params.contains("Ada"), "{}", request.params);
        Reply::Result("{}".to_owned())
    });
    server.on("tasks/cancel", |_| Reply::Result("{}".to_owned()));
    let host = host(&server, Lifecycle::Stateless, &Arc::default()).await;
    host.gate().set_mode("fake", Mode::Allow).await.unwrap();
    let result = within(host.call("fake", "echo", "{}")).await.unwrap();
    assert_eq!(result.get(), r#"{"content":[],"n":1}"#);
    assert_eq!((server.calls().len(), server.requests("tasks/get").len()), (1, 3));

    server.on("tasks/get", move |_| task("failed", json!({"error": {"code": -7, "message": "broke"}})));
    assert!(within(host.call("fake", "echo", "{}")).await.unwrap_err().to_string().contains("broke"));
    server.on("tasks/get", move |_| task("working", json!({})));
    tokio::select! {
        _ = host.call("fake", "echo", "{}") => panic!("it is never done"),
        () = within(server.until(|server| server.requests("tasks/get").len() > 6)) => {}
    }
    within(server.until(|server| !server.requests("tasks/cancel").is_empty())).await;
}

#[tokio::test]
async fn what_a_server_asks_is_answered_by_the_host_and_stops_the_clock() {
    #[derive(Debug)]
    struct Slow;
    #[async_trait]
    impl ClientHandler for Slow {
        fn offers(&self) -> Offers {
            Offers { roots: true, ..Offers::default() }
        }
        async fn answer(&self, _: ServerRequest) -> Result<String, Refusal> {
            tokio::time::sleep(std::time::Duration::from_millis(900)).await;
            Ok(r#"{"roots":[]}"#.to_owned())
        }
    }
    let server = FakeServer::new();
    let limits = portcullis::Limits { idle: std::time::Duration::from_millis(400), ..limits() };
    let host = Harness::new().server("fake", &server).limits(limits).handler(Arc::new(Slow)).start().await.unwrap();
    host.make_ready("fake").await.unwrap();
    host.gate().set_mode("fake", Mode::Allow).await.unwrap();
    // The answer to the call comes with the answer to the question.
    server.on("tools/call", |_| Reply::Lines(vec![br#"{"jsonrpc":"2.0","id":"q","method":"roots/list"}"#.to_vec()]));
    let answering = async {
        server.until(|server| server.received().iter().any(|line| line.contains(r#""roots":[]"#))).await;
        let call = server.requests("tools/call").pop().unwrap();
        let id = meta(&call)["progressToken"].clone();
        server.say(&format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{{"content":[]}}}}"#));
    };
    let (result, ()) = within(async { tokio::join!(host.call("fake", "echo", "{}"), answering) }).await;
    result.unwrap();
}

#[tokio::test]
async fn everything_else_that_a_server_offers_is_read_and_heard() {
    let server = FakeServer::new();
    server.on("initialize", |_| {
        Reply::Result(
            json!({"protocolVersion": "2025-11-25", "serverInfo": {"name": "s", "version": "1"},
                "capabilities": {"tools": {}, "resources": {"subscribe": true}, "prompts": {}, "logging": {}}})
            .to_string(),
        )
    });
    server.on("resources/list", |request| {
        Reply::Result(match request.params.contains("cursor") {
            false => r#"{"resources":[{"uri":"a:1","name":"one","n":1e400}],"nextCursor":"x"}"#.to_owned(),
            true => r#"{"resources":[{"uri":"a:2","name":"two"}]}"#.to_owned(),
        })
    });
    server.on("resources/read", |_| Reply::Result(r#"{"contents":[{"uri":"a:1","text":"é","n":1.0}]}"#.to_owned()));
    server.on("prompts/get", |request| {
        assert!(request.params.contains(r#""arguments":{"a":"b"}"#), "{}", request.params);
        Reply::Result(r#"{"messages":[]}"#.to_owned())
    });
    server.on("resources/subscribe", |_| Reply::Result("{}".to_owned()));
    server.on("logging/setLevel", |_| Reply::Result("{}".to_owned()));
    let host = host(&server, Lifecycle::Auto, &Arc::default()).await;
    let gate = host.gate();
    let resources = within(gate.list("fake", ListKind::Resources)).await.unwrap();
    assert_eq!(
        resources.iter().map(|item| item.get()).collect::<Vec<_>>(),
        [r#"{"uri":"a:1","name":"one","n":1e400}"#, r#"{"uri":"a:2","name":"two"}"#]
    );
    let read = within(gate.read("fake", "a:1")).await.unwrap();
    assert_eq!(read.get(), r#"{"contents":[{"uri":"a:1","text":"é","n":1.0}]}"#);
    let arguments = serde_json::value::RawValue::from_string(r#"{"a":"b"}"#.to_owned()).unwrap();
    within(gate.prompt("fake", "p", Some(&arguments))).await.unwrap();
    within(gate.ping("fake")).await.unwrap();
    let error = within(gate.list("fake", ListKind::ResourceTemplates)).await.unwrap_err();
    assert!(error.to_string().contains("-32601"), "{error}");

    let mut listening = within(gate.listen("fake", Some("info"), &["a:1".to_owned()])).await.unwrap();
    server.say(r#"{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"info","data":"hi"}}"#);
    server.say(r#"{"jsonrpc":"2.0","method":"notifications/resources/updated","params":{"uri":"a:1"}}"#);
    server.say(r#"{"jsonrpc":"2.0","method":"notifications/prompts/list_changed"}"#);
    let mut heard = Vec::new();
    while heard.len() < 3 {
        heard.push(within(listening.next()).await.unwrap().unwrap());
    }
    assert_eq!(heard[0], SessionEvent::Log(r#"{"level":"info","data":"hi"}"#.into()));
    assert_eq!(heard[1], SessionEvent::ResourceUpdated("a:1".into()));
    assert_eq!(heard[2], SessionEvent::ListChanged(ListKind::Prompts));
    within(gate.disconnect("fake")).await;
    assert!(within(listening.next()).await.is_none());
    let reads = host.audit().lines().into_iter().filter(|line| line.event == AuditEvent::Read);
    assert_eq!(reads.filter_map(|line| line.detail).collect::<Vec<_>>(), ["resource", "prompt"]);
}

#[tokio::test]
async fn s30_a_form_that_was_offered_is_no_page() {
    let server = FakeServer::new();
    let person = Arc::<Person>::default();
    let host = host(&server, Lifecycle::Auto, &person).await;
    within(host.gate().connect("fake")).await.unwrap();
    let answers = |id: &str| {
        let lines = server.received().into_iter().map(|line| serde_json::from_str::<Value>(&line).unwrap());
        lines.filter(|line| line["id"] == id).collect::<Vec<_>>()
    };
    for (id, mode) in [("page", json!("url")), ("form", json!("form")), ("unsaid", Value::Null)] {
        let params = json!({"mode": mode, "message": "?", "url": "https://example.com", "requestedSchema": {}});
        server.say(&json!({"jsonrpc": "2.0", "id": id, "method": "elicitation/create", "params": params}).to_string());
        within(server.until(|_| !answers(id).is_empty())).await;
    }
    assert_eq!(answers("page")[0]["error"]["code"], -32601);
    assert_eq!(answers("form")[0]["result"]["action"], "accept");
    assert_eq!(answers("unsaid")[0]["result"]["action"], "accept");
    assert_eq!(person.asked.load(Ordering::SeqCst), 2);
}
