//! What is offered: of several servers, of one alone, while some are dead.

use std::time::Duration;

use portcullis::{
    gate::Choice,
    serde_json::{Value, json},
    testing::{FakeServer, RAW_RESULT, Reply},
    tokio,
};
use portcullis_gateway::EndpointOptions;
use portcullis_harness::Harness;

use super::{
    Endpoint, TOKEN,
    http::{open, raw, request},
    newer,
};
use crate::common::{limits, within};

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
