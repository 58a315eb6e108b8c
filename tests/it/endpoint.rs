//! The endpoint: one gate for every MCP client.

mod asking;
mod groups;
mod http;
mod load;
mod told;

use std::{sync::Arc, time::Duration};

use portcullis::{
    approval::Answer,
    gate::Choice,
    secret::Secret,
    serde_json::{Value, json},
    session::{ClientHandler, Offers, Refusal, ServerRequest},
    testing::{FakeServer, RAW_RESULT, Reply},
    tokio::{self, sync::oneshot, task::JoinHandle},
};
use portcullis_gateway::{
    EndpointOptions, Gateway, GatewayParts, Guard, ListenError, Listeners, Tokens,
    manage::{self, Grade, ManagementClient, operations},
};
use portcullis_harness::{Harness, Host};
use portcullis_projects::ProjectOptions;

use self::http::{open, raw, request};
use crate::common::{limits, within};

const TOKEN: &str = "mcp-token-of-the-test";
const MANAGEMENT: &str = "management-token-of-the-test";

/// Clients may be asked; the endpoint has no answers of its own.
#[derive(Debug)]
struct OnlyClients;

#[portcullis::async_trait]
impl ClientHandler for OnlyClients {
    fn offers(&self) -> Offers {
        Offers { elicitation_form: true, elicitation_url: true, sampling: true, roots: true }
    }

    async fn answer(&self, _: ServerRequest) -> Result<String, Refusal> {
        Err(Refusal::NotOffered)
    }
}

/// An endpoint that listens.
struct Endpoint {
    host: Host,
    port: u16,
    end: Option<oneshot::Sender<()>>,
    serving: JoinHandle<()>,
}

impl Endpoint {
    async fn new(host: Host, options: EndpointOptions) -> Self {
        let gateway = Gateway::new(GatewayParts {
            gate: host.gate().clone(),
            tokens: Tokens { mcp: Some(Secret::new(TOKEN)), management: Secret::new(MANAGEMENT) },
            guard: Guard::default(),
            projects: ProjectOptions::default(),
            options,
        });
        let listeners = Listeners::loopback(0).unwrap();
        let port = listeners.port();
        let (end, ended) = oneshot::channel::<()>();
        let router = gateway.router();
        let serving = tokio::spawn(async move {
            listeners.serve(router, async { drop(ended.await) }).await;
        });
        Self { host, port, end: Some(end), serving }
    }

    /// One server, with nobody at the terminal: questions wait to be answered by id.
    async fn of(server: &FakeServer) -> Self {
        let host = Harness::new().server("fake", server).waits().limits(limits()).handler(Arc::new(OnlyClients));
        let host = host.start().await.unwrap();
        host.make_ready("fake").await.unwrap();
        Self::new(host, EndpointOptions::default()).await
    }

    async fn post(&self, headers: &[(&str, &str)], body: &Value) -> http::Answer {
        within(raw(self.port, &self.message(headers, body))).await
    }

    fn message(&self, headers: &[(&str, &str)], body: &Value) -> Vec<u8> {
        let authorization = format!("Bearer {TOKEN}");
        let mut all = vec![("Authorization", authorization.as_str())];
        all.extend(headers);
        request("POST", "/mcp", self.port, &all, &body.to_string())
    }

    /// A session of a client of this name.
    async fn session(&self, name: &str, capabilities: Value) -> String {
        let params = json!({"protocolVersion": "2025-11-25", "capabilities": capabilities, "clientInfo": {"name": name, "version": "1"}});
        let answer =
            self.post(&[], &json!({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": params})).await;
        assert_eq!(answer.json()["result"]["serverInfo"]["name"], "portcullis");
        answer.header("mcp-session-id").unwrap()
    }

    async fn ask(&self, session: &str, method: &str, params: Value) -> Value {
        let body = json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params});
        self.post(&[("Mcp-Session-Id", session)], &body).await.json()
    }

    /// A request without session, of the newer era.
    async fn stateless(&self, method: &str, params: Value, capabilities: Value) -> Value {
        let body = newer(method, params, &capabilities);
        let name = body["params"]["name"].as_str().or(body["params"]["uri"].as_str()).unwrap_or_default().to_owned();
        let headers = [("MCP-Protocol-Version", "2026-07-28"), ("Mcp-Method", method), ("Mcp-Name", &name)];
        self.post(&headers, &body).await.json()
    }

    /// The only question, once there is one.
    async fn question(&self) -> portcullis::approval::Question {
        let questions = self.host.gate().questions();
        let mut changes = questions.changes();
        loop {
            if let Some(question) = questions.open().pop() {
                return question;
            }
            within(changes.changed()).await.unwrap();
        }
    }

    fn answer(&self, id: &str, answer: Answer) {
        self.host.gate().questions().answer(id, answer).unwrap();
    }

    fn management(&self) -> ManagementClient {
        ManagementClient::new(self.port, Secret::new(MANAGEMENT))
    }
}

fn newer(method: &str, mut params: Value, capabilities: &Value) -> Value {
    params["_meta"] = json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": capabilities,
        "io.modelcontextprotocol/clientInfo": {"name": "newer", "version": "1"},
    });
    json!({"jsonrpc": "2.0", "id": "n", "method": method, "params": params})
}

fn call(arguments: &str) -> Value {
    let arguments: Value = portcullis::serde_json::from_str(arguments).unwrap();
    json!({"name": "fake__echo", "arguments": arguments})
}

#[tokio::test]
async fn c7_known_tools_answer_before_any_server_has_started_and_results_stay_as_they_are() {
    let server = FakeServer::new();
    let endpoint = Endpoint::of(&server).await;
    endpoint.host.gate().disconnect("fake").await;
    server.forget();
    let session = endpoint.session("client", json!({})).await;
    let tools = endpoint.ask(&session, "tools/list", json!({})).await;
    let names: Vec<_> = tools["result"]["tools"].as_array().unwrap().iter().map(|tool| tool["name"].clone()).collect();
    assert_eq!(names, ["fake__echo", "fake__raw"]);
    assert_eq!(server.started(), 0);

    endpoint.host.gate().set_mode("fake", portcullis::store::Mode::Allow).await.unwrap();
    server.on("tools/call", |_| Reply::Result(RAW_RESULT.to_owned()));
    let body = r#"{"jsonrpc":"2.0","id":"a","method":"tools/call","params":{"name":"fake__raw","arguments":{ "n":1e400,"m":-0 }}}"#;
    let authorization = format!("Bearer {TOKEN}");
    let headers = [("Authorization", authorization.as_str()), ("Mcp-Session-Id", session.as_str())];
    let answer = within(raw(endpoint.port, &request("POST", "/mcp", endpoint.port, &headers, body))).await;
    assert_eq!(answer.body, format!(r#"{{"jsonrpc":"2.0","id":"a","result":{RAW_RESULT}}}"#));
    assert_eq!(server.calls(), [r#"{ "n":1e400,"m":-0 }"#]);
    assert_eq!(answer.header("content-type").unwrap(), "application/json");
    let unknown = endpoint.ask(&session, "tools/call", json!({"name": "fake__nothing"})).await;
    assert_eq!(unknown["error"]["code"], -32_602);
}

#[tokio::test]
async fn b4_a_call_waits_for_an_answer_from_elsewhere_and_the_client_is_told_so() {
    let server = FakeServer::new();
    let endpoint = Endpoint::of(&server).await;
    let session = endpoint.session("client", json!({})).await;
    let mut params = call(r#"{"text":"hello"}"#);
    params["_meta"] = json!({"progressToken": "p"});
    let body = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params});
    let message = endpoint.message(&[("Mcp-Session-Id", &session)], &body);
    let mut coming = within(open(endpoint.port, &message)).await.head().await;
    let question = endpoint.question().await;
    assert_eq!((question.tool.as_str(), question.caller.as_str()), ("echo", "client (endpoint)"));
    assert_eq!((question.arguments.as_str(), question.client.as_deref()), (r#"{"text":"hello"}"#, Some("client 1")));
    let told = within(coming.event()).await;
    assert_eq!(told["params"]["progressToken"], "p");
    assert!(told["params"]["message"].as_str().unwrap().contains(&question.id), "{told}");
    assert!(server.calls().is_empty());
    let open = endpoint.management().run("approvals.list", json!({})).await.unwrap();
    assert!(open.contains(&question.id));
    endpoint.management().run("approvals.answer", json!({"id": question.id, "answer": "once"})).await.unwrap();
    let answer = within(coming.event()).await;
    assert_eq!(answer["result"]["content"][0]["text"], "hello");
    assert_eq!(server.calls().len(), 1);
    let again = endpoint.management().run("approvals.answer", json!({"id": question.id, "answer": "once"})).await;
    assert_eq!(again.unwrap_err().class, "unknown");
}

#[tokio::test]
async fn b4_a_no_is_told_to_the_model_and_a_grant_may_be_for_one_client() {
    let server = FakeServer::new();
    let endpoint = Endpoint::of(&server).await;
    let (one, other) = (endpoint.session("one", json!({})).await, endpoint.session("other", json!({})).await);
    let asked = |answer: Answer| {
        let endpoint = &endpoint;
        async move {
            let question = endpoint.question().await;
            endpoint.answer(&question.id, answer);
        }
    };
    let (denied, ()) = tokio::join!(endpoint.ask(&one, "tools/call", call(r#"{"text":"a"}"#)), asked(Answer::Deny));
    assert_eq!(denied["result"]["isError"], true);
    assert!(denied["result"]["content"][0]["text"].as_str().unwrap().contains("denied"), "{denied}");
    assert!(server.calls().is_empty());
    let (allowed, ()) =
        tokio::join!(endpoint.ask(&one, "tools/call", call(r#"{"text":"b"}"#)), asked(Answer::AlwaysForCaller));
    assert_eq!(allowed["result"]["content"][0]["text"], "b");
    // The same client is not asked again, the other one is.
    let again = endpoint.ask(&one, "tools/call", call(r#"{"text":"c"}"#)).await;
    assert_eq!(again["result"]["content"][0]["text"], "c");
    let (denied, ()) = tokio::join!(endpoint.ask(&other, "tools/call", call(r#"{"text":"d"}"#)), asked(Answer::Deny));
    assert_eq!(denied["result"]["isError"], true);
    assert_eq!(server.calls().len(), 2);
    let grants = endpoint.host.gate().grants().await.unwrap();
    assert_eq!(grants[0].1.caller.as_deref(), Some("one (endpoint)"));
}

#[tokio::test]
async fn a_client_that_goes_away_or_takes_its_call_back_withdraws_the_question() {
    let server = FakeServer::new();
    let endpoint = Endpoint::of(&server).await;
    let session = endpoint.session("client", json!({})).await;
    let headers = [("Mcp-Session-Id", session.as_str())];
    let body = json!({"jsonrpc": "2.0", "id": 7, "method": "tools/call", "params": call("{}")});
    let gone = async || {
        let questions = endpoint.host.gate().questions();
        let mut changes = questions.changes();
        while !questions.open().is_empty() {
            within(changes.changed()).await.unwrap();
        }
    };
    let coming = within(open(endpoint.port, &endpoint.message(&headers, &body))).await;
    endpoint.question().await;
    drop(coming);
    gone().await;

    let cancelled = json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 7}});
    let (answer, ()) = tokio::join!(endpoint.post(&headers, &body), async {
        endpoint.question().await;
        assert_eq!(endpoint.post(&headers, &cancelled).await.status, 202);
    });
    assert_eq!(answer.json()["error"]["code"], -32_800);
    gone().await;
    assert!(server.calls().is_empty());
}

#[tokio::test]
async fn s46_s47_whoever_may_not_ask_reaches_nothing() {
    let server = FakeServer::new();
    let endpoint = Endpoint::of(&server).await;
    let port = endpoint.port;
    let body = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/list"}).to_string();
    let good = format!("Bearer {TOKEN}");
    let own = format!("http://localhost:{port}");
    for (headers, path, expected) in [
        (vec![("Authorization", good.as_str()), ("Host", "evil.com")], "/mcp", 403),
        (vec![("Authorization", &good), ("Origin", "http://evil.com")], "/mcp", 403),
        (vec![("Authorization", &good), ("Origin", "null")], "/mcp", 403),
        (vec![("Authorization", &good), ("Content-Type", "text/plain")], "/mcp", 415),
        (vec![], "/mcp", 401),
        (vec![("Authorization", "Bearer mcp-token-of-the-tes")], "/mcp", 401),
        (vec![], &format!("/mcp?token={TOKEN}"), 401),
        (vec![("Authorization", &good)], "/api/v1/servers", 401),
        (vec![("Authorization", &good)], "/groups/web/mcp", 401),
        // It comes in, without a session.
        (vec![("Authorization", &good), ("Origin", &own)], "/mcp", 400),
    ] {
        let answer = within(raw(port, &request("POST", path, port, &headers, &body))).await;
        assert_eq!(answer.status, expected, "{headers:?} {path}");
        assert!(!answer.head.to_lowercase().contains("access-control"), "{}", answer.head);
    }
    let options = within(raw(port, &request("OPTIONS", "/mcp", port, &[("Authorization", &good)], ""))).await;
    assert_eq!(options.status, 403);
    for path in ["/health", "/ready"] {
        let answer = within(raw(port, &request("GET", path, port, &[("Host", "evil.com")], ""))).await;
        assert_eq!(answer.status, 403, "{path}");
    }
    let health = within(raw(port, &request("GET", "/health", port, &[], ""))).await;
    assert_eq!((health.status, health.body.as_str()), (200, ""));
    assert_eq!(within(raw(port, &request("GET", "/ready", port, &[], ""))).await.status, 401);
    let ready = within(raw(port, &request("GET", "/ready", port, &[("Authorization", &good)], ""))).await;
    assert_eq!(ready.json()["servers"][0]["name"], "fake");
}

#[tokio::test]
async fn s54_many_clients_with_equal_ids_each_see_their_own_answers() {
    let server = FakeServer::new();
    let endpoint = Endpoint::of(&server).await;
    endpoint.host.gate().set_mode("fake", portcullis::store::Mode::Allow).await.unwrap();
    let clients = (0..50).map(|client| {
        let endpoint = &endpoint;
        async move {
            let session = endpoint.session(&format!("client {client}"), json!({})).await;
            for round in 0..8 {
                let text = format!("{client}-{round}");
                let answer = endpoint.ask(&session, "tools/call", call(&json!({"text": text}).to_string())).await;
                assert_eq!(answer["result"]["content"][0]["text"], text.as_str());
            }
        }
    });
    portcullis::futures::future::join_all(clients).await;
    assert_eq!(server.calls().len(), 400);
}

#[tokio::test]
async fn s55_what_is_too_large_or_too_deep_is_refused() {
    let server = FakeServer::new();
    let endpoint = Endpoint::of(&server).await;
    let good = format!("Bearer {TOKEN}");
    let headers = [("Authorization", good.as_str())];
    let sent = async |body: &str| {
        within(raw(endpoint.port, &request("POST", "/mcp", endpoint.port, &headers, body))).await.status
    };
    let padded =
        |length: usize| format!(r#"{{"jsonrpc":"2.0","method":"n","params":{{"a":"{}"}}}}"#, "x".repeat(length - 48));
    assert_eq!(padded(4 << 20).len(), 4 << 20);
    assert_eq!(sent(&padded(4 << 20)).await, 202);
    assert_eq!(sent(&padded((4 << 20) + 1)).await, 413);
    assert_eq!(sent(&format!("{}{}", "[".repeat(200), "]".repeat(200))).await, 400);
    let many: Vec<(String, String)> = (0..10_000).map(|n| (format!("X-{n}"), "1".to_owned())).collect();
    let many: Vec<(&str, &str)> = many.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
    let answer = within(raw(endpoint.port, &request("GET", "/health", endpoint.port, &many, ""))).await;
    assert!(matches!(answer.status, 0 | 431), "{}", answer.status);
    // Others are served as before.
    endpoint.session("client", json!({})).await;
}

#[tokio::test]
async fn r24_a_change_of_the_offered_tools_is_told_once() {
    let server = FakeServer::new();
    let endpoint = Endpoint::of(&server).await;
    let session = endpoint.session("client", json!({})).await;
    let good = format!("Bearer {TOKEN}");
    let headers =
        [("Authorization", good.as_str()), ("Mcp-Session-Id", session.as_str()), ("Accept", "text/event-stream")];
    let get = request("GET", "/mcp", endpoint.port, &headers, "");
    let mut coming = within(open(endpoint.port, &get)).await.head().await;
    let off = Some(Choice::Named(vec!["raw".to_owned()]));
    endpoint.host.gate().select("fake", None, off).await.unwrap();
    let told = within(coming.event()).await;
    assert_eq!(told, json!({"jsonrpc": "2.0", "method": "notifications/tools/list_changed"}));
    let more = tokio::time::timeout(Duration::from_millis(1200), coming.event()).await;
    assert!(more.is_err(), "{more:?}");
}

#[tokio::test]
async fn c7_a_dead_server_hurts_no_other() {
    let (dead, fake) = (FakeServer::new(), FakeServer::new());
    for server in [&dead, &fake] {
        server.on("resources/list", |_| Reply::Result(r#"{"resources":[{"uri":"file:///a","name":"a"}]}"#.into()));
        server.on("resources/read", |request| {
            Reply::Result(json!({"contents": [{"uri": "file:///a", "text": request.params}]}).to_string())
        });
    }
    let host = Harness::new().server("dead", &dead).server("fake", &fake).limits(limits()).start().await.unwrap();
    host.make_ready("dead").await.unwrap();
    host.make_ready("fake").await.unwrap();
    let endpoint = Endpoint::new(host, EndpointOptions::default()).await;
    let session = endpoint.session("client", json!({})).await;
    let uris = async || {
        let listed = endpoint.ask(&session, "resources/list", json!({})).await;
        let listed = listed["result"]["resources"].as_array().unwrap().clone();
        listed.iter().map(|item| item["uri"].as_str().unwrap().to_owned()).collect::<Vec<_>>()
    };
    assert_eq!(uris().await, ["mcp+dead:file:///a", "mcp+fake:file:///a"]);
    // What both have is read by the name that says whose it is.
    let plain = endpoint.ask(&session, "resources/read", json!({"uri": "file:///a"})).await;
    assert_eq!(plain["error"]["code"], -32_002);
    dead.on("initialize", |_| Reply::Crash(1));
    dead.on("resources/list", |_| Reply::Crash(1));
    assert_eq!(uris().await, ["mcp+fake:file:///a"]);
    let read = endpoint.ask(&session, "resources/read", json!({"uri": "mcp+fake:file:///a"})).await;
    assert!(read["result"]["contents"][0]["text"].as_str().unwrap().contains(r#""uri":"file:///a""#), "{read}");
    let plain = endpoint.ask(&session, "resources/read", json!({"uri": "file:///a"})).await;
    assert_eq!(plain["result"]["contents"][0]["uri"], "file:///a");
}

#[tokio::test]
async fn c7_one_server_alone_has_its_own_names() {
    let (fake, other) = (FakeServer::new(), FakeServer::new());
    for server in [&fake, &other] {
        server.on("resources/list", |_| Reply::Result(r#"{"resources":[{"uri":"file:///a","name":"a"}]}"#.into()));
        server
            .on("resources/read", |request| Reply::Result(json!({"contents": [], "got": request.params}).to_string()));
    }
    let host = Harness::new().server("fake", &fake).server("other", &other).limits(limits()).start().await.unwrap();
    host.make_ready("fake").await.unwrap();
    host.make_ready("other").await.unwrap();
    host.gate().set_mode("fake", portcullis::store::Mode::Allow).await.unwrap();
    let endpoint = Endpoint::new(host, EndpointOptions::default()).await;
    let authorization = format!("Bearer {TOKEN}");
    let ask = async |path: &str, method: &str, params: Value| {
        let headers = [
            ("Authorization", authorization.as_str()),
            ("MCP-Protocol-Version", "2026-07-28"),
            ("Mcp-Method", method),
            ("Mcp-Name", params["name"].as_str().or(params["uri"].as_str()).unwrap_or("")),
        ];
        let body = newer(method, params.clone(), &json!({})).to_string();
        within(raw(endpoint.port, &request("POST", path, endpoint.port, &headers, &body))).await
    };
    let own = "/servers/fake/mcp";
    let tools = ask(own, "tools/list", json!({})).await.json();
    let names: Vec<_> = tools["result"]["tools"].as_array().unwrap().iter().map(|tool| tool["name"].clone()).collect();
    assert_eq!(names, ["echo", "raw"]);
    let called = ask(own, "tools/call", json!({"name": "echo", "arguments": {"text": "x"}})).await.json();
    assert_eq!(called["result"]["content"][0]["text"], "x");
    let listed = ask(own, "resources/list", json!({})).await.json();
    assert_eq!(listed["result"]["resources"][0]["uri"], "file:///a");
    let read = ask(own, "resources/read", json!({"uri": "file:///b"})).await.json();
    assert!(read["result"]["got"].as_str().unwrap().contains(r#""uri":"file:///b""#), "{read}");
    assert!(other.requests("resources/read").is_empty());
    // Off or unknown, it is not there; without the token nobody learns even that.
    endpoint.host.gate().disable("fake").await.unwrap();
    for path in [own, "/servers/none/mcp"] {
        assert_eq!(ask(path, "tools/list", json!({})).await.status, 404);
        let answer = within(raw(endpoint.port, &request("POST", path, endpoint.port, &[], "{}"))).await;
        assert_eq!(answer.status, 401);
    }
}

#[tokio::test]
async fn c1_a_taken_port_names_its_owner_and_is_free_at_the_end_with_calls_in_flight() {
    let server = FakeServer::new();
    let mut endpoint = Endpoint::of(&server).await;
    let port = endpoint.port;
    match Listeners::loopback(port) {
        Err(ListenError::Taken { port: taken, owner }) => {
            assert_eq!(taken, port);
            #[cfg(target_os = "linux")]
            assert!(owner.unwrap().contains(&format!("process {}", std::process::id())));
            #[cfg(not(target_os = "linux"))]
            drop(owner);
        }
        other => panic!("{other:?}"),
    }
    let session = endpoint.session("client", json!({})).await;
    let body = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": call("{}")});
    let _coming = open(port, &endpoint.message(&[("Mcp-Session-Id", &session)], &body)).await;
    endpoint.question().await;
    drop(endpoint.end.take());
    within(&mut endpoint.serving).await.unwrap();
    within(endpoint.host.gate().close()).await;
    assert_eq!(Listeners::loopback(port).unwrap().port(), port);
    assert!(server.calls().is_empty());
}

#[tokio::test]
async fn c6_every_operation_is_a_route_that_the_management_token_alone_opens() {
    let server = FakeServer::new();
    let endpoint = Endpoint::of(&server).await;
    let described = manage::document();
    for operation in operations() {
        let verb = format!("{:?}", operation.verb);
        let path = operation.path.replace("{name}", "fake").replace("{id}", "none").replace("{kind}", "secret");
        let path = format!("{}{path}", manage::ROOT);
        for token in ["", TOKEN] {
            let authorization = format!("Bearer {token}");
            let headers = [("Authorization", authorization.as_str())];
            let answer =
                within(raw(endpoint.port, &request(&verb.to_uppercase(), &path, endpoint.port, &headers, "{}"))).await;
            assert_eq!((answer.status, answer.body.as_str()), (401, ""), "{}", operation.id);
        }
        let entry = &described["paths"][format!("{}{}", manage::ROOT, operation.path)][verb.to_lowercase()];
        assert_eq!(entry["operationId"], operation.id);
        assert!(operation.tool.is_none() || operation.grade != Grade::Dangerous, "{}", operation.id);
        let help = std::process::Command::new(crate::cli::portcullis()).args([operation.command, "--help"]).output();
        assert!(help.unwrap().status.success(), "{}", operation.command);
    }
    let client = endpoint.management();
    let servers = client.run("servers.list", json!({})).await.unwrap();
    assert!(servers.contains(r#""name":"fake""#));
    let error = client.run("servers.show", json!({"name": "a/b?c"})).await.unwrap_err();
    assert_eq!((error.class.as_str(), error.code.as_str()), ("unknown", "unknown-server"));
    let error = client.run("servers.enable", json!({"name": "fake", "more": 1})).await.unwrap_err();
    assert_eq!(error.class, "usage");
    let begun = client.run("calls.start", json!({"server": "fake", "tool": "echo", "arguments": r#"{"text":"x"}"#}));
    let begun: Value = portcullis::serde_json::from_str(&begun.await.unwrap()).unwrap();
    let id = begun["question"]["id"].as_str().unwrap();
    client.run("approvals.answer", json!({"id": id, "answer": "once"})).await.unwrap();
    let done = within(client.run("calls.wait", json!({"id": id}))).await.unwrap();
    assert!(done.contains(r#""text":"x""#), "{done}");
    let trail = client.run("audit.list", json!({"lines": 2})).await.unwrap();
    let trail: Value = portcullis::serde_json::from_str(&trail).unwrap();
    let events: Vec<_> = trail.as_array().unwrap().iter().map(|line| line["event"].as_str().unwrap()).collect();
    assert_eq!(events, ["answer", "call"]);
    let secret = json!({"kind": "secret", "name": "KEY", "value": "s3cret"});
    client.run("secrets.set", secret).await.unwrap();
    let secrets = client.run("secrets.list", json!({})).await.unwrap();
    assert!(secrets.contains("KEY") && !secrets.contains("s3cret"), "{secrets}");
    let error = client.run("secrets.set", json!({"kind": "secret", "name": "KEY", "value": ["s3cret"]})).await;
    assert!(!format!("{:?}", error.unwrap_err()).contains("s3cret"));
    client.run("secrets.remove", json!({"kind": "secret", "name": "KEY"})).await.unwrap();
    assert_eq!(
        client.run("secrets.remove", json!({"kind": "secret", "name": "KEY"})).await.unwrap_err().class,
        "unknown"
    );
}
