//! A transport that needs nothing but the core: a server inside this program that says everything back.
//!
//! ```json
//! {"mcpServers": {"parrot": {"type": "echo", "prefix": "Polly: "}}}
//! ```
//!
//! It is registered wherever this crate is linked, and the example to copy for a transport of one's own.

use std::{
    collections::BTreeMap,
    fmt,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use portcullis::{
    Definition, async_trait,
    diagnostic::Code,
    inventory,
    lines::Lines,
    link::{Exit, Keeper, Link},
    reference::SecretResolver,
    serde_json::{json, value::RawValue},
    tokio::{
        self,
        io::{AsyncBufReadExt, AsyncWriteExt, BufReader, DuplexStream},
        sync::watch,
    },
    transport::{Field, FieldValue, OpenContext, Plan, Transport, TransportError, TransportKind},
    trust::{Consent, TrustView},
};

/// The kind.
pub static KIND: TransportKind = TransportKind {
    name: "echo",
    summary: "a server inside this program that says everything back",
    implied_by: None,
    spellings: &[],
    vscode: None,
    fields: &[Field {
        name: "prefix",
        value: FieldValue::Text,
        required: false,
        secret: false,
        doc: "what every answer begins with",
    }],
    foreign: Code::FieldUnsupported,
    refusal: None,
    check: |_, _| {},
    build: || Arc::new(Echo::default()),
};

inventory::submit! { &KIND }

/// A result that no typed model keeps as it is.
const RAW_RESULT: &str = r#"{"content":[{"type":"text","text":"é\u00e9"}],"structuredContent":{"n":9007199254740993,"f":1.0,"big":123456789012345678901234567890,"z":1,"a":1e400},"futureField":{"a":1}}"#;

/// What was started and said; a test looks at it.
#[derive(Debug, Default)]
struct Witness {
    started: usize,
    running: usize,
    calls: Vec<String>,
}

type Seen = Arc<Mutex<Witness>>;

/// The transport.
#[derive(Debug, Default)]
pub struct Echo {
    seen: Seen,
}

impl Transport for Echo {
    fn plan(&self, definition: &Definition, context: &OpenContext) -> Result<Box<dyn Plan>, TransportError> {
        let written = definition.text("prefix").unwrap_or_default();
        let prefix = context
            .surroundings
            .expand(written)
            .map_err(|source| TransportError::Reference { field: "prefix".to_owned(), source })?;
        let view = TrustView {
            server: definition.name().to_owned(),
            kind: KIND.name.to_owned(),
            target: "a server inside this program".to_owned(),
            target_label: "runs",
            written: None,
            arguments: vec![prefix.clone()],
            directory: None,
            names: Vec::new(),
            names_label: "environment",
            reads: Vec::new(),
            warnings: Vec::new(),
        };
        let message_bytes = context.limits.message_bytes;
        Ok(Box::new(EchoPlan { view, prefix, message_bytes, seen: self.seen.clone() }))
    }
}

#[derive(Debug)]
struct EchoPlan {
    view: TrustView,
    prefix: String,
    message_bytes: usize,
    seen: Seen,
}

#[async_trait]
impl Plan for EchoPlan {
    fn view(&self) -> &TrustView {
        &self.view
    }

    async fn open(self: Box<Self>, consent: Consent, _: &dyn SecretResolver) -> Result<Link, TransportError> {
        if !consent.covers(&self.view) {
            return Err(TransportError::Consent);
        }
        let (near, far) = tokio::io::duplex(64 << 10);
        let (read, write) = tokio::io::split(near);
        let (set, exit) = watch::channel(None);
        let server = Server::new(self.prefix, self.seen, set);
        let task = tokio::spawn(server.serve(far)).abort_handle();
        Ok(Link::new(Lines::new(read, write, self.message_bytes), EchoKeeper { task, exit }))
    }
}

struct Server {
    prefix: String,
    seen: Seen,
    exit: watch::Sender<Option<Exit>>,
}

impl Drop for Server {
    fn drop(&mut self) {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner).running -= 1;
        self.exit.send_replace(Some(Exit::Unknown));
    }
}

impl Server {
    fn new(prefix: String, seen: Seen, exit: watch::Sender<Option<Exit>>) -> Self {
        {
            let mut seen = seen.lock().unwrap_or_else(PoisonError::into_inner);
            seen.started += 1;
            seen.running += 1;
        }
        Self { prefix, seen, exit }
    }

    /// Answers until the input ends.
    async fn serve(self, stream: DuplexStream) {
        let (read, mut write) = tokio::io::split(stream);
        let mut lines = BufReader::new(read).lines();
        while let Ok(Some(line)) = lines.next_line().await {
            if let Some(answer) = self.answer(&line)
                && write.write_all(answer.as_bytes()).await.is_err()
            {
                break;
            }
        }
    }

    fn answer(&self, line: &str) -> Option<String> {
        let message = parts(line)?;
        let id = message.get("id")?;
        let result = match text(message.get("method")?)?.as_str() {
            "initialize" => json!({
                "protocolVersion": "2025-11-25",
                "capabilities": {"tools": {}},
                "serverInfo": {"name": "echo", "version": env!("CARGO_PKG_VERSION")},
            })
            .to_string(),
            "ping" => "{}".to_owned(),
            "tools/list" => json!({"tools": [
                {"name": "echo", "description": "Says it back",
                 "inputSchema": {"type": "object", "properties": {"text": {"type": "string"}}}},
                {"name": "raw", "description": "A result with odd numbers", "inputSchema": {"type": "object"}},
            ]})
            .to_string(),
            "tools/call" => {
                self.seen.lock().unwrap_or_else(PoisonError::into_inner).calls.push(line.to_owned());
                self.call(&parts(message.get("params")?.get())?)
            }
            _ => {
                let error = json!({"code": -32601, "message": "no such method"});
                return Some(format!("{{\"jsonrpc\":\"2.0\",\"id\":{id},\"error\":{error}}}\n"));
            }
        };
        Some(format!("{{\"jsonrpc\":\"2.0\",\"id\":{id},\"result\":{result}}}\n"))
    }

    fn call(&self, params: &Parts) -> String {
        if params.get("name").and_then(|name| text(name)).as_deref() == Some("raw") {
            return RAW_RESULT.to_owned();
        }
        let arguments = params.get("arguments").and_then(|arguments| parts(arguments.get())).unwrap_or_default();
        let said = arguments.get("text").and_then(|said| text(said)).unwrap_or_default();
        json!({"content": [{"type": "text", "text": format!("{}{said}", self.prefix)}]}).to_string()
    }
}

/// The members of an object, each as it was written: a number may be one that nothing here can hold.
type Parts = BTreeMap<String, Box<RawValue>>;

fn parts(object: &str) -> Option<Parts> {
    portcullis::serde_json::from_str(object).ok()
}

fn text(value: &RawValue) -> Option<String> {
    portcullis::serde_json::from_str(value.get()).ok()
}

/// Ends the server's task.
struct EchoKeeper {
    task: tokio::task::AbortHandle,
    exit: watch::Receiver<Option<Exit>>,
}

impl fmt::Debug for EchoKeeper {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("EchoKeeper").finish_non_exhaustive()
    }
}

#[async_trait]
impl Keeper for EchoKeeper {
    async fn ended(&self) -> Exit {
        self.exit.clone().wait_for(Option::is_some).await.ok().and_then(|exit| *exit).unwrap_or(Exit::Unknown)
    }

    fn stderr_tail(&self) -> String {
        String::new()
    }

    async fn close(&self, _grace: Duration) -> Exit {
        self.task.abort();
        self.ended().await
    }
}

impl Drop for EchoKeeper {
    fn drop(&mut self) {
        self.task.abort();
    }
}

#[cfg(test)]
mod tests {
    use portcullis::{
        Registry,
        testing::{contract::Subject, transport_contract},
    };

    use super::*;

    #[derive(Debug)]
    struct Parrot(Seen);

    fn parrot(prefix: &str) -> Definition {
        Definition::new("parrot", "echo", [("prefix".to_owned(), prefix.into())].into_iter().collect())
    }

    impl Subject for Parrot {
        fn definition(&self) -> Definition {
            parrot("")
        }
        fn other(&self) -> Definition {
            parrot("other")
        }
        fn unset(&self) -> Option<Definition> {
            Some(parrot("${PORTCULLIS_UNSET}"))
        }
        fn context(&self) -> OpenContext {
            OpenContext::default()
        }
        fn started(&self) -> usize {
            self.0.lock().unwrap().started
        }
        fn running(&self) -> usize {
            self.0.lock().unwrap().running
        }
        fn calls(&self) -> Vec<String> {
            self.0.lock().unwrap().calls.clone()
        }
    }

    #[tokio::test]
    async fn it_keeps_the_contract() {
        let echo = Echo::default();
        transport_contract(&echo, || {
            let mut seen = echo.seen.lock().unwrap();
            *seen = Witness { running: seen.running, ..Witness::default() };
            Parrot(echo.seen.clone())
        })
        .await;
    }

    #[test]
    fn e3_linking_it_is_enough() {
        let registry = Registry::linked(&["echo"]).unwrap();
        assert!(registry.transport("echo").is_ok());
    }
}
