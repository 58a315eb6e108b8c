//! The floor: a client written by hand for this one call, over a pipe or a kept-alive connection (`http.rs`).
//! It writes the request and reads the answer as JSON, as whoever wants the result has to; it checks, bounds
//! and remembers nothing.

use std::{collections::HashMap, process::Stdio, sync::Arc};

use futures::{FutureExt, future::BoxFuture};
use serde_json::{Value, json};
use tokio::{
    io::{AsyncBufReadExt, AsyncWriteExt, BufReader},
    process::{Child, ChildStdin, Command},
    sync::{Mutex, oneshot},
};

use crate::{
    client::{ARGUMENTS, Client, Place, Result},
    http::{Http, Talk},
};

type Waiting = Arc<std::sync::Mutex<HashMap<u64, oneshot::Sender<Value>>>>;

pub(crate) struct RawStdio {
    input: Mutex<ChildStdin>,
    waiting: Waiting,
    next: std::sync::atomic::AtomicU64,
    _child: Child,
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
        Place::Http(url) => Ok(Box::new(Http::connect(url, Talk::Bare, "echo").await?)),
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

fn body(id: u64, tool: &str) -> String {
    let arguments = serde_json::from_str::<Value>(ARGUMENTS).unwrap_or_default();
    let params = json!({"name": tool, "arguments": arguments});
    json!({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params}).to_string()
}

impl Client for RawStdio {
    fn call<'a>(&'a self, tool: &'static str) -> BoxFuture<'a, Result<usize>> {
        async move {
            let id = self.next.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
            let (sender, answer) = oneshot::channel();
            self.waiting.lock().map_err(|_| "poisoned")?.insert(id, sender);
            let line = body(id, tool) + "\n";
            self.input.lock().await.write_all(line.as_bytes()).await?;
            Ok(size(&answer.await?))
        }
        .boxed()
    }
}
