//! The floor: a client written by hand for this one call, over a pipe or a kept-alive connection. It
//! writes the request and reads the answer as JSON, as whoever wants the result has to; it checks,
//! bounds and remembers nothing.

use std::{collections::HashMap, process::Stdio, sync::Arc};

use futures::{FutureExt, future::BoxFuture};
use serde_json::{Value, json};
use tokio::{
    io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader},
    net::TcpStream,
    process::{Child, ChildStdin, Command},
    sync::{Mutex, oneshot},
};

use crate::client::{ARGUMENTS, Client, Place, Result};

type Waiting = Arc<std::sync::Mutex<HashMap<u64, oneshot::Sender<Value>>>>;

pub(crate) struct RawStdio {
    input: Mutex<ChildStdin>,
    waiting: Waiting,
    next: std::sync::atomic::AtomicU64,
    _child: Child,
}

pub(crate) struct RawHttp {
    address: String,
    idle: Mutex<Vec<BufReader<TcpStream>>>,
    /// Whether it asks an endpoint, in the revision without sessions.
    endpoint: bool,
}

/// The same client for an endpoint of ours at `port`, behind which the server is called `bench`.
pub(crate) fn of_endpoint(port: u64) -> RawHttp {
    RawHttp { address: format!("127.0.0.1:{port}"), idle: Mutex::default(), endpoint: true }
}

pub(crate) async fn connect(place: &Place) -> Result<Box<dyn Client>> {
    match place {
        Place::Stdio(command) => {
            let mut child = Command::new(&command[0])
                .args(&command[1..])
                .stdin(Stdio::piped())
                .stdout(Stdio::piped())
                .kill_on_drop(true)
                .spawn()?;
            let (Some(input), Some(output)) = (child.stdin.take(), child.stdout.take()) else {
                return Err("no pipes".into());
            };
            let waiting = Waiting::default();
            tokio::spawn(read(BufReader::with_capacity(64 << 10, output), waiting.clone()));
            Ok(Box::new(RawStdio { input: Mutex::new(input), waiting, next: 1.into(), _child: child }))
        }
        Place::Http(url) => {
            let address = url.trim_start_matches("http://").trim_end_matches("/mcp").to_owned();
            Ok(Box::new(RawHttp { address, idle: Mutex::default(), endpoint: false }))
        }
    }
}

async fn read(mut lines: BufReader<tokio::process::ChildStdout>, waiting: Waiting) {
    let mut line = String::new();
    while lines.read_line(&mut line).await.is_ok_and(|read| read > 0) {
        let Ok(mut answer) = serde_json::from_str::<Value>(&line) else { return };
        let sender = answer["id"].as_u64().and_then(|id| waiting.lock().ok()?.remove(&id));
        if let Some(sender) = sender {
            let _ = sender.send(answer["result"].take());
        }
        line.clear();
    }
}

/// How much was answered, so that nothing of it is left out.
fn size(result: &Value) -> usize {
    result["content"][0]["text"].as_str().map_or(0, str::len)
}

fn body(id: u64, tool: &str, endpoint: bool) -> String {
    let arguments = serde_json::from_str::<Value>(ARGUMENTS).unwrap_or_default();
    let mut params = json!({"name": tool, "arguments": arguments});
    if endpoint {
        params["_meta"] = json!({
            "io.modelcontextprotocol/protocolVersion": "2026-07-28",
            "io.modelcontextprotocol/clientCapabilities": {},
            "io.modelcontextprotocol/clientInfo": {"name": "bench", "version": "1"},
        });
    }
    json!({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params}).to_string()
}

impl Client for RawStdio {
    fn call<'a>(&'a self, tool: &'static str) -> BoxFuture<'a, Result<usize>> {
        async move {
            let id = self.next.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
            let (sender, answer) = oneshot::channel();
            self.waiting.lock().map_err(|_| "poisoned")?.insert(id, sender);
            let line = body(id, tool, false) + "\n";
            self.input.lock().await.write_all(line.as_bytes()).await?;
            Ok(size(&answer.await?))
        }
        .boxed()
    }
}

impl Client for RawHttp {
    fn call<'a>(&'a self, tool: &'static str) -> BoxFuture<'a, Result<usize>> {
        async move {
            let idle = self.idle.lock().await.pop();
            let mut stream = match idle {
                Some(stream) => stream,
                None => {
                    let stream = TcpStream::connect(&self.address).await?;
                    stream.set_nodelay(true)?;
                    BufReader::with_capacity(64 << 10, stream)
                }
            };
            let (name, more) = match self.endpoint {
                true => {
                    let name = format!("bench__{tool}");
                    let more = format!(
                        "MCP-Protocol-Version: 2026-07-28\r\nMcp-Method: tools/call\r\nMcp-Name: {name}\r\n"
                    );
                    (name, more)
                }
                false => (tool.to_owned(), String::new()),
            };
            let body = body(1, &name, self.endpoint);
            let head = format!(
                "POST /mcp HTTP/1.1\r\nHost: {}\r\nContent-Type: application/json\r\nAccept: application/json, text/event-stream\r\n{more}Content-Length: {}\r\n\r\n{body}",
                self.address,
                body.len()
            );
            stream.write_all(head.as_bytes()).await?;
            let (mut line, mut length) = (String::new(), 0);
            loop {
                line.clear();
                stream.read_line(&mut line).await?;
                if line.trim().is_empty() {
                    break;
                }
                if let Some(value) = line.to_ascii_lowercase().strip_prefix("content-length:") {
                    length = value.trim().parse()?;
                }
            }
            let mut answer = vec![0; length];
            stream.read_exact(&mut answer).await?;
            self.idle.lock().await.push(stream);
            Ok(size(&serde_json::from_slice::<Value>(&answer)?["result"]))
        }
        .boxed()
    }
}
