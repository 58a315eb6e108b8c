//! Who comes in, how many, and with how much.

use portcullis::{
    approval::Answer,
    serde_json::json,
    testing::FakeServer,
    tokio::{self, net::TcpStream},
};
use portcullis_gateway::{EndpointOptions, ListenError, Listeners};
use portcullis_harness::Harness;

use super::{
    Endpoint, TOKEN, call,
    http::{open, raw, request},
};
use crate::common::{limits, within};

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

/// An endpoint with room for so many connections.
async fn narrow(server: &FakeServer, places: usize) -> Endpoint {
    let host = Harness::new().server("fake", server).waits().limits(limits()).start().await.unwrap();
    host.make_ready("fake").await.unwrap();
    Endpoint::at(Listeners::loopback(0).unwrap().places(places), host, EndpointOptions::default())
}

#[tokio::test]
async fn s55_a_thousand_idle_connections_keep_nobody_out() {
    let server = FakeServer::new();
    let endpoint = narrow(&server, 128).await;
    let mut idle = Vec::new();
    for _ in 0..1000 {
        idle.push(TcpStream::connect(("127.0.0.1", endpoint.port)).await.unwrap());
    }
    let session = endpoint.session("client", json!({})).await;
    let (called, ()) = tokio::join!(endpoint.ask(&session, "tools/call", call(r#"{"text":"x"}"#)), async {
        let question = endpoint.question().await;
        // Nor those who came before and are served.
        for _ in 0..300 {
            idle.push(TcpStream::connect(("127.0.0.1", endpoint.port)).await.unwrap());
        }
        let answer = json!({"id": question.id, "answer": "once"});
        endpoint.management().run("approvals.answer", answer).await.unwrap();
    });
    assert_eq!(called["result"]["content"][0]["text"], "x");
}

#[tokio::test]
async fn s55_calls_that_wait_for_a_person_do_not_keep_the_person_out() {
    let server = FakeServer::new();
    let endpoint = narrow(&server, 8).await;
    let session = endpoint.session("client", json!({})).await;
    let headers = [("Mcp-Session-Id", session.as_str())];
    let mut waiting = Vec::new();
    for id in 0..8 {
        let body = json!({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": call("{}")});
        waiting.push(within(open(endpoint.port, &endpoint.message(&headers, &body))).await);
    }
    let questions = endpoint.host.gate().questions();
    let mut changes = questions.changes();
    while questions.open().len() < 8 {
        within(changes.changed()).await.unwrap();
    }
    // One more call finds no room; whoever answers does.
    let body = json!({"jsonrpc": "2.0", "id": 9, "method": "tools/call", "params": call("{}")});
    assert_eq!(endpoint.post(&headers, &body).await.status, 503);
    for question in questions.open() {
        let answer = json!({"id": question.id, "answer": Answer::Deny});
        endpoint.management().run("approvals.answer", answer).await.unwrap();
    }
    for mut answer in waiting {
        assert_eq!(within(answer.json()).await["result"]["isError"], true);
    }
    assert_eq!(endpoint.ask(&session, "ping", json!({})).await["result"], json!({}));
}
