//! The endpoint: one gate for every MCP client.

mod asking;
mod connections;
mod groups;
mod http;
mod load;
mod management;
mod offer;
mod pipes;
mod tasks;
mod told;

use std::sync::Arc;

use portcullis::{
    approval::Answer,
    secret::Secret,
    serde_json::{Value, json},
    session::{ClientHandler, Offers, Refusal, ServerRequest},
    testing::FakeServer,
    tokio::{self, sync::oneshot, task::JoinHandle},
};
use portcullis_gateway::{EndpointOptions, Gateway, GatewayParts, Guard, Listeners, Tokens, manage::ManagementClient};
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
        Self::at(Listeners::loopback(0).unwrap(), host, options)
    }

    fn at(listeners: Listeners, host: Host, options: EndpointOptions) -> Self {
        let gateway = Gateway::new(GatewayParts {
            gate: host.gate().clone(),
            tokens: Tokens { mcp: Some(Secret::new(TOKEN)), management: Secret::new(MANAGEMENT) },
            guard: Guard::default(),
            projects: ProjectOptions::default(),
            options,
        });
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
        let name = ["name", "uri", "taskId"].iter().find_map(|name| body["params"][name].as_str());
        let name = name.unwrap_or_default().to_owned();
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
