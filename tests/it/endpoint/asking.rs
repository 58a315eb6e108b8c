//! What servers ask in the middle of a call, and decisions that are asked for in the client.

use portcullis::{
    serde_json::{Value, json},
    testing::{FakeServer, Reply},
    tokio,
};
use portcullis_gateway::EndpointOptions;
use portcullis_harness::Harness;

use super::{Endpoint, call, http::open};
use crate::common::{limits, within};

/// Has the server ask for a form with each call, and answer with what it was told.
fn asks_for_a_form(server: &FakeServer) {
    server.on("tools/call", |_| {
        let asks = r#"{"jsonrpc":"2.0","id":"e","method":"elicitation/create","params":{"message":"who?","requestedSchema":{"type":"object","properties":{}}}}"#;
        Reply::Lines(vec![format!("{asks}\n").into_bytes()])
    });
}

/// Answers the call of the server, once it was told.
async fn answered(server: &FakeServer) {
    let told = |server: &FakeServer| server.received().iter().any(|line| line.contains(r#""id":"e""#));
    within(server.until(told)).await;
    let received = server.received();
    let call: Value =
        portcullis::serde_json::from_str(received.iter().rfind(|line| line.contains("tools/call")).unwrap()).unwrap();
    server.say(&json!({"jsonrpc": "2.0", "id": call["id"], "result": {"content": []}}).to_string());
}

#[tokio::test]
async fn c7_what_a_server_asks_goes_to_the_client_that_called() {
    let server = FakeServer::new();
    asks_for_a_form(&server);
    let endpoint = Endpoint::of(&server).await;
    endpoint.host.gate().set_mode("fake", portcullis::store::Mode::Allow).await.unwrap();
    let session = endpoint.session("client", json!({"elicitation": {}})).await;
    let headers = [("Mcp-Session-Id", session.as_str())];
    let body = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": call("{}")});
    let mut coming = within(open(endpoint.port, &endpoint.message(&headers, &body))).await.head().await;
    let asked = within(coming.event()).await;
    assert_eq!(asked["method"], "elicitation/create");
    assert_eq!(asked["params"]["message"], "The server \"fake\" asks: who?");
    let told = json!({"jsonrpc": "2.0", "id": asked["id"], "result": {"action": "accept", "content": {"a": 1}}});
    assert_eq!(endpoint.post(&headers, &told).await.status, 202);
    answered(&server).await;
    assert_eq!(within(coming.event()).await["result"], json!({"content": []}));
    assert!(server.received().iter().any(|line| line.contains(r#""content":{"a":1}"#)));

    // A client that offers nothing is not asked, and the server hears the error of the specification.
    server.forget();
    let session = endpoint.session("silent", json!({})).await;
    let (answer, ()) = tokio::join!(endpoint.ask(&session, "tools/call", call("{}")), answered(&server));
    assert_eq!(answer["result"], json!({"content": []}));
    assert!(server.received().iter().any(|line| line.contains("-32601")));
}

#[tokio::test]
async fn c7_a_client_without_a_session_is_asked_by_the_answer_to_its_call() {
    let server = FakeServer::new();
    asks_for_a_form(&server);
    let endpoint = Endpoint::of(&server).await;
    endpoint.host.gate().set_mode("fake", portcullis::store::Mode::Allow).await.unwrap();
    let offers = json!({"elicitation": {}});
    let asked = endpoint.stateless("tools/call", call(r#"{"text":"a"}"#), offers.clone()).await;
    let result = &asked["result"];
    assert_eq!(result["resultType"], "input_required");
    assert_eq!(result["inputRequests"]["q1"]["method"], "elicitation/create");
    let state = result["requestState"].as_str().unwrap();
    let again = |arguments: &str, state: &str| {
        let mut params = call(arguments);
        params["requestState"] = state.into();
        params["inputResponses"] = json!({"q1": {"action": "decline"}});
        params
    };
    // Neither a token that was made up nor another call goes on with it.
    for (arguments, state) in [(r#"{"text":"a"}"#, "x"), (r#"{"text":"b"}"#, state)] {
        let refused = endpoint.stateless("tools/call", again(arguments, state), offers.clone()).await;
        assert_eq!(refused["error"]["code"], -32_602, "{refused}");
    }
    let (done, ()) = tokio::join!(
        endpoint.stateless("tools/call", again(r#"{"text":"a"}"#, state), offers.clone()),
        answered(&server)
    );
    assert_eq!(done["result"], json!({"resultType": "complete", "content": []}));
    let used = endpoint.stateless("tools/call", again(r#"{"text":"a"}"#, state), offers).await;
    assert_eq!(used["error"]["code"], -32_602);
    assert_eq!(server.calls().len(), 1);
}

#[tokio::test]
async fn c7_a_client_that_takes_no_stream_is_not_waited_for() {
    let server = FakeServer::new();
    asks_for_a_form(&server);
    let endpoint = Endpoint::of(&server).await;
    endpoint.host.gate().set_mode("fake", portcullis::store::Mode::Allow).await.unwrap();
    let session = endpoint.session("client", json!({"elicitation": {}})).await;
    let headers = [("Mcp-Session-Id", session.as_str()), ("Accept", "application/json")];
    let body = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": call("{}")});
    let (answer, ()) = tokio::join!(endpoint.post(&headers, &body), answered(&server));
    assert_eq!(answer.json()["result"], json!({"content": []}));
    // Those who may be asked decline where they cannot be.
    assert!(!server.received().iter().any(|line| line.contains("accept")), "{:?}", server.received());
}

#[tokio::test]
async fn s30_a_question_is_put_to_none_of_two_clients_of_one_name() {
    let server = FakeServer::new();
    server.on("tools/call", |_| Reply::Nothing);
    let endpoint = Endpoint::of(&server).await;
    endpoint.host.gate().set_mode("fake", portcullis::store::Mode::Allow).await.unwrap();
    let offers = json!({"elicitation": {}});
    let one = |text: &str| endpoint.stateless("tools/call", call(&json!({"text": text}).to_string()), offers.clone());
    let asks = async {
        within(server.until(|server| server.calls().len() == 2)).await;
        server.say(r#"{"jsonrpc":"2.0","id":"e","method":"elicitation/create","params":{"message":"who?","requestedSchema":{"type":"object","properties":{}}}}"#);
        within(server.until(|server| server.received().iter().any(|line| line.contains(r#""id":"e""#)))).await;
        let received = server.received();
        for call in received.iter().filter(|line| line.contains("tools/call")) {
            let call: Value = portcullis::serde_json::from_str(call).unwrap();
            server.say(&json!({"jsonrpc": "2.0", "id": call["id"], "result": {"content": []}}).to_string());
        }
    };
    let (first, second, ()) = tokio::join!(one("a"), one("b"), asks);
    for answer in [first, second] {
        assert_eq!(answer["result"], json!({"resultType": "complete", "content": []}));
    }
}

#[tokio::test]
async fn b4_a_client_may_be_asked_for_the_decision_where_a_person_switched_that_on() {
    let server = FakeServer::new();
    let host = Harness::new().server("fake", &server).waits().limits(limits()).start().await.unwrap();
    host.make_ready("fake").await.unwrap();
    let endpoint = Endpoint::new(host, EndpointOptions { ask_in_client: true }).await;
    let session = endpoint.session("client", json!({"elicitation": {}})).await;
    let headers = [("Mcp-Session-Id", session.as_str())];
    let decide = async |content: Value| {
        let body = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": call(r#"{"text":"x"}"#)});
        let mut coming = within(open(endpoint.port, &endpoint.message(&headers, &body))).await.head().await;
        let asked = within(coming.event()).await;
        let words = asked["params"]["message"].as_str().unwrap().to_owned();
        assert!(words.contains("\"echo\"") && words.contains(r#"{"text":"x"}"#), "{words}");
        let told = json!({"jsonrpc": "2.0", "id": asked["id"], "result": content});
        assert_eq!(endpoint.post(&headers, &told).await.status, 202);
        within(coming.event()).await["result"].clone()
    };
    let denied = decide(json!({"action": "accept", "content": {"decision": "deny"}})).await;
    assert_eq!(denied["isError"], true);
    assert_eq!(decide(json!({"action": "decline"})).await["isError"], true);
    assert!(server.calls().is_empty());
    let allowed = decide(json!({"action": "accept", "content": {"decision": "once"}})).await;
    assert_eq!(allowed["content"][0]["text"], "x");
    assert_eq!(server.calls().len(), 1);
    // A form that is left decides nothing: somebody else still may.
    let body = json!({"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": call(r#"{"text":"y"}"#)});
    let mut coming = within(open(endpoint.port, &endpoint.message(&headers, &body))).await.head().await;
    let asked = within(coming.event()).await;
    let left = json!({"jsonrpc": "2.0", "id": asked["id"], "result": {"action": "cancel"}});
    assert_eq!(endpoint.post(&headers, &left).await.status, 202);
    let question = endpoint.question().await;
    endpoint.answer(&question.id, portcullis::approval::Answer::Once);
    assert_eq!(within(coming.event()).await["result"]["content"][0]["text"], "y");
}
