//! The management API.

use portcullis::{
    serde_json::{Value, json},
    testing::FakeServer,
    tokio,
};
use portcullis_gateway::manage::{self, Grade, operations};

use super::{
    Endpoint, TOKEN,
    http::{open, raw, request},
};
use crate::common::within;

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

#[tokio::test]
async fn a_call_whose_caller_goes_away_is_taken_back() {
    let server = FakeServer::new();
    let endpoint = Endpoint::of(&server).await;
    let client = endpoint.management();
    let questions = endpoint.host.gate().questions();
    let begun = client.run("calls.start", json!({"server": "fake", "tool": "echo", "arguments": "{}"})).await.unwrap();
    let begun: Value = portcullis::serde_json::from_str(&begun).unwrap();
    let id = begun["question"]["id"].as_str().unwrap().to_owned();
    let waits = tokio::spawn(async move { client.run("calls.wait", json!({"id": id})).await });
    assert_eq!(endpoint.question().await.tool, "echo");
    // Whoever waits and goes away takes the call back; whoever began it and does not wait leaves it for a while.
    let mut changes = questions.changes();
    tokio::task::yield_now().await;
    let wanted = endpoint.session("other", json!({})).await;
    waits.abort();
    drop(wanted);
    while !questions.open().is_empty() {
        within(changes.changed()).await.unwrap();
    }
    assert!(server.calls().is_empty());
    // One that never asks ends with its caller, too.
    server.on("tools/call", |_| portcullis::testing::Reply::Nothing);
    endpoint.host.gate().set_mode("fake", portcullis::store::Mode::Allow).await.unwrap();
    let authorization = format!("Bearer {}", super::MANAGEMENT);
    let body = json!({"server": "fake", "tool": "echo", "arguments": "{}"}).to_string();
    let start = operations().find(|operation| operation.id == "calls.start").unwrap();
    let path = format!("{}{}", manage::ROOT, start.path);
    let headers = [("Authorization", authorization.as_str())];
    let coming = within(open(endpoint.port, &request("POST", &path, endpoint.port, &headers, &body))).await;
    within(server.until(|server| !server.calls().is_empty())).await;
    drop(coming);
    within(server.until(|server| server.received().iter().any(|line| line.contains("notifications/cancelled")))).await;
}
