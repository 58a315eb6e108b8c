//! What clients are told: changes of lists, words for a log, progress to the last.

use portcullis::{
    serde_json::{Value, json},
    store::Mode,
    testing::{FakeServer, Reply},
    tokio,
};

use super::{
    Endpoint, TOKEN, call,
    http::{open, request},
};
use crate::common::within;

#[tokio::test]
async fn r24_changed_resources_and_prompts_are_told_too_each_once() {
    let server = FakeServer::new();
    let endpoint = Endpoint::of(&server).await;
    endpoint.host.gate().connect("fake").await.unwrap();
    let session = endpoint.session("client", json!({})).await;
    let good = format!("Bearer {TOKEN}");
    let headers =
        [("Authorization", good.as_str()), ("Mcp-Session-Id", session.as_str()), ("Accept", "text/event-stream")];
    let get = request("GET", "/mcp", endpoint.port, &headers, "");
    let mut coming = within(open(endpoint.port, &get)).await.head().await;
    for (list, times) in [("resources", 3), ("prompts", 1)] {
        for _ in 0..times {
            server.say(&json!({"jsonrpc": "2.0", "method": format!("notifications/{list}/list_changed")}).to_string());
        }
        let told = within(coming.event()).await;
        assert_eq!(told["method"], format!("notifications/{list}/list_changed"));
    }
    // What a server said of one is not told as another, and not twice.
    let more = tokio::time::timeout(std::time::Duration::from_millis(1200), coming.event()).await;
    assert!(more.is_err(), "{more:?}");
}

/// Has the server log, tell progress and answer in one breath.
fn talks(server: &FakeServer) {
    server.on("tools/call", |request| {
        let params: Value = portcullis::serde_json::from_str(&request.params).unwrap();
        // It is the id of the request as well.
        let token = &params["_meta"]["progressToken"];
        let mut lines = Vec::new();
        for (level, words) in [("debug", "small"), ("error", "large")] {
            let params = json!({"level": level, "logger": "own", "data": words});
            lines.push(json!({"jsonrpc": "2.0", "method": "notifications/message", "params": params}));
        }
        for progress in 1..=3 {
            let params = json!({"progressToken": token, "progress": progress, "total": 3});
            lines.push(json!({"jsonrpc": "2.0", "method": "notifications/progress", "params": params}));
        }
        lines.push(json!({"jsonrpc": "2.0", "id": token, "result": {"content": []}}));
        Reply::Lines(lines.iter().map(|line| format!("{line}\n").into_bytes()).collect())
    });
}

#[tokio::test]
async fn c7_words_for_a_log_and_all_progress_come_before_the_result() {
    let server = FakeServer::new();
    talks(&server);
    let endpoint = Endpoint::of(&server).await;
    endpoint.host.gate().set_mode("fake", Mode::Allow).await.unwrap();
    let session = endpoint.session("client", json!({})).await;
    let mut params = call("{}");
    params["_meta"] = json!({"progressToken": "p"});
    let body = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params});
    let told = async || {
        let message = endpoint.message(&[("Mcp-Session-Id", &session)], &body);
        let mut coming = within(open(endpoint.port, &message)).await.head().await;
        let mut told = Vec::new();
        loop {
            let event = within(coming.event()).await;
            if event["id"] == 1 {
                assert_eq!(event["result"], json!({"content": []}));
                return told;
            }
            told.push(event["params"].clone());
        }
    };
    let progress: Vec<_> =
        (1..=3).map(|progress| json!({"progressToken": "p", "progress": progress, "total": 3})).collect();
    // Nobody hears a log who did not ask for one.
    assert_eq!(told().await, progress);
    assert_eq!(endpoint.ask(&session, "logging/setLevel", json!({"level": "warning"})).await["result"], json!({}));
    let words = json!({"level": "error", "logger": "fake/own", "data": "large"});
    assert_eq!(told().await, [vec![words], progress].concat());
    let wrong = endpoint.ask(&session, "logging/setLevel", json!({"level": "loud"})).await;
    assert_eq!(wrong["error"]["code"], -32_602);
}

#[tokio::test]
async fn r37_a_stream_that_broke_off_is_taken_up_again_and_nothing_is_called_twice() {
    let server = FakeServer::new();
    let endpoint = Endpoint::of(&server).await;
    let session = endpoint.session("client", json!({})).await;
    let headers = [("Mcp-Session-Id", session.as_str()), ("Accept", "application/json, text/event-stream")];
    let body = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": call(r#"{"text":"x"}"#)});
    let mut coming = within(open(endpoint.port, &endpoint.message(&headers, &body))).await.head().await;
    // A call that waits shows so before there is anything to say.
    let first = within(coming.id()).await;
    let question = endpoint.question().await;
    drop(coming);
    let good = format!("Bearer {TOKEN}");
    let again = async |last: &str| {
        let headers = [
            ("Authorization", good.as_str()),
            ("Mcp-Session-Id", session.as_str()),
            ("Accept", "text/event-stream"),
            ("Last-Event-ID", last),
        ];
        within(open(endpoint.port, &request("GET", "/mcp", endpoint.port, &headers, ""))).await.head().await
    };
    let mut coming = again(&first).await;
    assert_eq!(within(coming.id()).await, first);
    endpoint.answer(&question.id, portcullis::approval::Answer::Once);
    let answer = within(coming.event()).await;
    assert_eq!((&answer["id"], &answer["result"]["content"][0]["text"]), (&json!(1), &json!("x")));
    // Whoever lost the answer on the way gets the same one.
    assert_eq!(within(again(&first).await.event()).await, answer);
    assert_eq!(server.calls().len(), 1);
    // Another session, or an id that is none, gets the stream of its session and nothing of this one.
    let mut other = again("999-0").await;
    assert!(tokio::time::timeout(std::time::Duration::from_millis(300), other.event()).await.is_err());
}
