//! The floor: hand-written JSON over a pipe or a kept-alive connection, nothing checked.

use std::{collections::HashMap, process::Stdio, sync::Arc};

use futures::{FutureExt, future::BoxFuture};
use tokio::{
    io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader},
    net::TcpStream,
    process::{Child, ChildStdin, Command},
    sync::{Mutex, oneshot},
};

use crate::client::{ARGUMENTS, Client, Place, Result};

type Waiting = Arc<std::sync::Mutex<HashMap<u64, oneshot::Sender<usize>>>>;

pub(crate) struct RawStdio {
    input: Mutex<ChildStdin>,
    waiting: Waiting,
    next: std::sync::atomic::AtomicU64,
    _child: Child,
}

pub(crate) struct RawHttp {
    address: String,
    idle: Mutex<Vec<BufReader<TcpStream>>>,
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
            Ok(Box::new(RawHttp { address, idle: Mutex::default() }))
        }
    }
}

async fn read(mut lines: BufReader<tokio::process::ChildStdout>, waiting: Waiting) {
    let mut line = String::new();
    while lines.read_line(&mut line).await.is_ok_and(|read| read > 0) {
        let id = line.split("\"id\":").nth(1).and_then(|rest| rest.split([',', '}']).next()?.parse().ok());
        let sender = id.and_then(|id: u64| waiting.lock().ok()?.remove(&id));
        if let Some(sender) = sender {
            let _ = sender.send(line.len());
        }
        line.clear();
    }
}

fn body(id: u64, tool: &str) -> String {
    format!(
        r#"{{"jsonrpc":"2.0","id":{id},"method":"tools/call","params":{{"name":"{tool}","arguments":{ARGUMENTS}}}}}"#
    )
}

impl Client for RawStdio {
    fn call<'a>(&'a self, tool: &'static str) -> BoxFuture<'a, Result<usize>> {
        async move {
            let id = self.next.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
            let (sender, answer) = oneshot::channel();
            self.waiting.lock().map_err(|_| "poisoned")?.insert(id, sender);
            let line = body(id, tool) + "\n";
            self.input.lock().await.write_all(line.as_bytes()).await?;
            Ok(answer.await?)
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
            let body = body(1, tool);
            let head = format!(
                "POST /mcp HTTP/1.1\r\nHost: {}\r\nContent-Type: application/json\r\nAccept: application/json, text/event-stream\r\nContent-Length: {}\r\n\r\n{body}",
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
            Ok(length)
        }
        .boxed()
    }
}
