//! Clients on a pair of streams: of this process, and handed on to an endpoint that runs.

use portcullis::{
    gate::Members,
    secret::Secret,
    serde_json::{Value, json},
    store::Mode,
    testing::FakeServer,
    tokio::{
        self,
        io::{AsyncBufReadExt as _, AsyncRead, AsyncWrite, AsyncWriteExt as _, BufReader, Lines, ReadHalf, WriteHalf},
    },
};
use portcullis_gateway::{Gateway, manage::ManagementClient};
use portcullis_projects::ProjectOptions;

use super::{Endpoint, MANAGEMENT, call, groups::Groups, newer};
use crate::common::within;

/// A client at the other end.
struct Pipe<S> {
    lines: Lines<BufReader<ReadHalf<S>>>,
    write: WriteHalf<S>,
}

impl<S: AsyncRead + AsyncWrite> Pipe<S> {
    fn new(stream: S) -> Self {
        let (read, write) = tokio::io::split(stream);
        Self { lines: BufReader::new(read).lines(), write }
    }

    async fn say(&mut self, message: &Value) {
        self.write.write_all(format!("{message}\n").as_bytes()).await.unwrap();
    }

    /// The next message; none at the end.
    async fn hear(&mut self) -> Option<Value> {
        let line = within(self.lines.next_line()).await.unwrap()?;
        Some(portcullis::serde_json::from_str(&line).unwrap())
    }

    async fn ask(&mut self, message: &Value) -> Value {
        self.say(message).await;
        self.hear().await.unwrap()
    }
}

#[tokio::test]
async fn c2_a_pipe_carries_both_eras_and_what_is_listened_for() {
    let server = FakeServer::new();
    let endpoint = Endpoint::of(&server).await;
    endpoint.host.gate().set_mode("fake", Mode::Allow).await.unwrap();
    let gateway = Gateway::local(endpoint.host.gate().clone(), ProjectOptions::default());
    let (ours, theirs) = tokio::io::duplex(64 << 10);
    let (input, output) = tokio::io::split(theirs);
    let serving = tokio::spawn(async move { gateway.serve_stream(None, input, output).await });
    let mut pipe = Pipe::new(ours);
    pipe.say(&newer("server/discover", json!({}), &json!({}))).await;
    let discovered = pipe.hear().await.unwrap();
    assert!(discovered["result"]["supportedVersions"].as_array().unwrap().contains(&json!("2026-07-28")));
    pipe.say(&newer("tools/call", call(r#"{"text":"newer"}"#), &json!({}))).await;
    let called = pipe.hear().await.unwrap();
    assert_eq!(called["result"]["resultType"], "complete");
    assert_eq!(called["result"]["content"][0]["text"], "newer");
    // Without saying who asks it is of the older era, and of another revision it is refused.
    let mut wrong = newer("tools/list", json!({}), &json!({}));
    wrong["params"]["_meta"]["io.modelcontextprotocol/protocolVersion"] = "2099-01-01".into();
    pipe.say(&wrong).await;
    assert_eq!(pipe.hear().await.unwrap()["error"]["code"], -32_022);
    pipe.say(&json!({"jsonrpc": "2.0", "id": 5, "method": "ping"})).await;
    assert_eq!(pipe.hear().await.unwrap()["result"], json!({}));

    let mut listens = newer("subscriptions/listen", json!({"notifications": {"toolsListChanged": true}}), &json!({}));
    listens["id"] = "listens".into();
    pipe.say(&listens).await;
    let first = pipe.hear().await.unwrap();
    assert_eq!(first["method"], "notifications/subscriptions/acknowledged");
    assert_eq!(first["params"]["_meta"]["io.modelcontextprotocol/subscriptionId"], "listens");
    pipe.say(&listens).await;
    assert_eq!(pipe.hear().await.unwrap()["error"]["code"], -32_600);
    let off = Some(portcullis::gate::Choice::Named(vec!["raw".to_owned()]));
    endpoint.host.gate().select("fake", None, off).await.unwrap();
    let told = pipe.hear().await.unwrap();
    assert_eq!(told["method"], "notifications/tools/list_changed");
    assert_eq!(told["params"]["_meta"]["io.modelcontextprotocol/subscriptionId"], "listens");
    pipe.say(&json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": "listens"}})).await;
    assert_eq!(pipe.hear().await.unwrap()["error"]["code"], -32_800);
    pipe.write.shutdown().await.unwrap();
    within(serving).await.unwrap().unwrap();
}

#[tokio::test]
async fn c2_what_was_asked_before_the_input_ended_is_answered() {
    let server = FakeServer::new();
    let endpoint = Endpoint::of(&server).await;
    endpoint.host.gate().set_mode("fake", Mode::Allow).await.unwrap();
    let mut pipe = Pipe::new(endpoint.management().pipe(None).await.unwrap());
    for id in 0..3 {
        let mut message = newer("tools/call", call(r#"{"text":"x"}"#), &json!({}));
        message["id"] = id.into();
        pipe.say(&message).await;
    }
    pipe.write.shutdown().await.unwrap();
    let mut ids = Vec::new();
    while let Some(answer) = pipe.hear().await {
        assert_eq!(answer["result"]["content"][0]["text"], "x", "{answer}");
        ids.push(answer["id"].as_u64().unwrap());
    }
    ids.sort_unstable();
    assert_eq!(ids, [0, 1, 2]);
}

#[tokio::test]
async fn b4_a_client_that_is_handed_on_is_answered_by_the_one_endpoint() {
    let server = FakeServer::new();
    let endpoint = Endpoint::of(&server).await;
    let mut pipe = Pipe::new(endpoint.management().pipe(None).await.unwrap());
    pipe.say(&newer("tools/call", call(r#"{"text":"x"}"#), &json!({}))).await;
    let question = endpoint.question().await;
    assert_eq!(question.caller, "newer (endpoint)");
    endpoint.management().run("approvals.answer", json!({"id": question.id, "answer": "once"})).await.unwrap();
    assert_eq!(pipe.hear().await.unwrap()["result"]["content"][0]["text"], "x");
    // Nobody else gets one, and of a group that is not there there is none.
    let stranger = ManagementClient::new(endpoint.port, Secret::new("x"));
    assert!(stranger.pipe(None).await.unwrap_err().message.contains("401"));
    assert!(endpoint.management().pipe(Some("nowhere")).await.is_err());
    assert!(!MANAGEMENT.is_empty() && server.calls().len() == 1);
}

#[tokio::test]
async fn s48_a_pipe_shows_what_its_group_holds_by_now_and_ends_with_it() {
    let groups = Groups::new().await;
    let gate = groups.endpoint.host.gate().clone();
    gate.set_mode("fake", Mode::Allow).await.unwrap();
    let mut pipe = Pipe::new(groups.endpoint.management().pipe(Some("web")).await.unwrap());
    let echo = newer("tools/call", call(r#"{"text":"x"}"#), &json!({}));
    assert_eq!(pipe.ask(&echo).await["result"]["content"][0]["text"], "x");
    let other = newer("tools/call", json!({"name": "other__echo"}), &json!({}));
    assert_eq!(pipe.ask(&other).await["error"]["code"], -32_602);
    // A new token is for those who come in by it.
    gate.rotate_group_token("web").await.unwrap();
    assert_eq!(pipe.ask(&echo).await["result"]["content"][0]["text"], "x");
    let servers = Members { servers: vec!["fake".to_owned()], ..Members::default() };
    gate.remove_from_group("web", &servers).await.unwrap();
    assert_eq!(pipe.ask(&echo).await["error"]["code"], -32_602);
    gate.remove_group("web").await.unwrap();
    assert_eq!(pipe.hear().await, None);
}
