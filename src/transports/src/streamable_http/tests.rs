//! Plans, and openings of a server on this machine.

mod faults;
mod logs;
mod plans;

use std::{
    error::Error,
    fs,
    io::{BufRead, BufReader},
    net::TcpListener,
    path::PathBuf,
    process::{Child, Command, Stdio},
    time::Duration,
};

use portcullis::{
    link::{Keeper, LinkError},
    reference::Surroundings,
    serde_json::{self, json},
    testing::{BareClient, consent_to},
};
use tempfile::TempDir;

use super::*;

const LIMIT: usize = 200_000;
const SOON: Duration = Duration::from_secs(10);

fn context(environment: &[(&str, &str)]) -> OpenContext {
    let environment = environment.iter().map(|(name, value)| (name.into(), value.into())).collect();
    let surroundings = Surroundings { environment, ..Surroundings::default() };
    OpenContext { surroundings, limits: Limits { message_bytes: LIMIT, ..Limits::default() } }
}

fn plan(fields: &Value, context: &OpenContext) -> Result<HttpPlan, TransportError> {
    let definition = Definition::new("search", "streamable-http", fields.as_object().cloned().unwrap());
    HttpPlan::new(&definition, context)
}

async fn start(fields: &Value) -> Result<(HttpWire, HttpKeeper), TransportError> {
    let context = context(&[("TOKEN", "canary-token"), ("BAD", "canary\r\nX-Evil: 1")]);
    let plan = plan(fields, &context)?;
    let consent = consent_to(&plan.view);
    plan.start(consent, &context.surroundings).await
}

/// All that an error says, sources and `Debug` included.
fn everything(error: &(dyn Error + 'static)) -> String {
    let mut text = format!("{error:?}");
    let mut next = Some(error);
    while let Some(error) = next {
        text.push_str(&error.to_string());
        next = error.source();
    }
    text
}

/// `fixture-server --http`.
struct Fixture {
    child: Child,
    address: String,
    folder: TempDir,
}

impl Fixture {
    fn start(flags: &[&str]) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let mut child = Command::new(portcullis_fixtures::server_path())
            .args(["--http", "--http-log"])
            .arg(folder.path().join("log"))
            .args(flags)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let address = line.trim_end().strip_prefix("listening on ").unwrap().to_owned();
        Self { child, address, folder }
    }

    fn fields(&self) -> Value {
        json!({
            "url": format!("http://{}/mcp?key=canary-query", self.address),
            "headers": {"X-Api-Key": "${TOKEN}", "X-Plain": "canary-literal"},
        })
    }

    /// The requests it saw with this RPC method (or `GET`, `DELETE`).
    fn seen(&self, what: &str) -> usize {
        let log: PathBuf = self.folder.path().join("log");
        let log = fs::read_to_string(log).unwrap_or_default();
        log.lines().filter(|line| line.split(' ').step_by(2).any(|word| word == what)).count()
    }
}

impl Drop for Fixture {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// An open server, spoken to message by message.
struct Server {
    client: BareClient,
    keeper: HttpKeeper,
}

impl Server {
    async fn open(fields: &Value) -> Self {
        let (wire, keeper) = start(fields).await.unwrap();
        Self { client: BareClient::over(wire), keeper }
    }

    async fn connect(fields: &Value) -> Result<Self, LinkError> {
        let mut server = Self::open(fields).await;
        server.client.initialize().await?;
        Ok(server)
    }

    async fn ask(&mut self, method: &str, params: Value) -> Result<Value, LinkError> {
        self.client.ask(method, params).await
    }

    async fn call(&mut self, tool: &str, arguments: Value) -> Result<Value, LinkError> {
        self.ask("tools/call", json!({"name": tool, "arguments": arguments})).await
    }

    async fn say(&mut self, text: &str) -> Result<String, LinkError> {
        let result = self.call("echo", json!({"text": text})).await?;
        Ok(result["content"][0]["text"].as_str().unwrap().to_owned())
    }
}

/// The error of one call on a server with `flags`, sent once, after which other requests work.
async fn error_of_a_call(flags: &[&str]) -> LinkError {
    let fixture = Fixture::start(&[&["--http-on", "tools/call"], flags].concat());
    let mut server = Server::connect(&fixture.fields()).await.unwrap();
    let error = server.call("echo", json!({"text": "x"})).await.unwrap_err();
    assert_eq!(fixture.seen("tools/call"), 1, "r34: exactly one POST; {flags:?}");
    let ping = server.ask("ping", json!({})).await.unwrap();
    assert_eq!(ping, json!({}), "one failed call is nobody else's business; {flags:?}");
    assert!(!everything(&error).contains("canary"), "{error:?}");
    error
}
