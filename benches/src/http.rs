//! A load generator for anything that speaks MCP over HTTP, written by hand: kept-alive connections, the
//! request as bytes, the answer as JSON, whatever its framing. It is the floor for HTTP rows and the client
//! of every endpoint row, so that they differ in what answers alone.

use std::{
    sync::atomic::{AtomicU64, Ordering},
    time::{Duration, Instant},
};

use futures::{FutureExt, future::BoxFuture};
use serde_json::{Value, json};
use tokio::{
    io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader},
    net::TcpStream,
    sync::Mutex,
};

use crate::client::{ARGUMENTS, Client, Result};

/// How long a connection that nobody uses is still used again; the first servers close it after five seconds.
const KEPT: Duration = Duration::from_secs(3);

/// How it speaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Talk {
    /// `tools/call` and nothing else.
    Bare,
    /// Revision 2026-07-28: no session, everything in each request.
    Stateless,
    /// Revision 2025-11-25: a handshake first, and its session in each request.
    Session,
    /// The arguments alone as the body; the answer is whatever comes.
    Rest,
    /// As mcp-hub's own API wants it: the server's and the tool's name beside the arguments.
    Hub,
}

pub(crate) struct Http {
    address: String,
    path: String,
    talk: Talk,
    tool: String,
    /// Header lines, each with its end.
    headers: String,
    /// What goes with each request of the revision without sessions.
    meta: Option<Value>,
    /// The id of the next request: within a session no two may be under way with one.
    next: AtomicU64,
    idle: Mutex<Vec<(Instant, BufReader<TcpStream>)>>,
}

impl Http {
    /// Ready to call `tool` at `http://host:port/path`.
    pub(crate) async fn connect(url: &str, talk: Talk, tool: &str) -> Result<Self> {
        let rest = url.strip_prefix("http://").ok_or("not an http:// address")?;
        let (address, path) = rest.split_once('/').unwrap_or((rest, ""));
        let mut client = Self {
            address: address.to_owned(),
            path: format!("/{path}"),
            talk,
            tool: tool.to_owned(),
            headers: String::new(),
            meta: None,
            next: AtomicU64::new(1),
            idle: Mutex::default(),
        };
        match talk {
            Talk::Bare | Talk::Rest | Talk::Hub => {}
            Talk::Stateless => {
                client.meta = Some(json!({
                    "io.modelcontextprotocol/protocolVersion": "2026-07-28",
                    "io.modelcontextprotocol/clientCapabilities": {},
                    "io.modelcontextprotocol/clientInfo": {"name": "bench", "version": "1"},
                }));
                client.headers =
                    format!("MCP-Protocol-Version: 2026-07-28\r\nMcp-Method: tools/call\r\nMcp-Name: {tool}\r\n");
            }
            Talk::Session => client.shake_hands().await?,
        }
        Ok(client)
    }

    fn body(&self) -> Result<String> {
        if self.talk == Talk::Rest {
            return Ok(ARGUMENTS.to_owned());
        }
        let arguments = serde_json::from_str::<Value>(ARGUMENTS)?;
        if self.talk == Talk::Hub {
            return Ok(json!({"server_name": "bench", "tool": self.tool, "arguments": arguments}).to_string());
        }
        let mut params = json!({"name": self.tool, "arguments": arguments});
        if let Some(meta) = &self.meta {
            params["_meta"] = meta.clone();
        }
        let id = self.next.fetch_add(1, Ordering::Relaxed);
        Ok(json!({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params}).to_string())
    }

    async fn shake_hands(&mut self) -> Result<()> {
        let params = json!({
            "protocolVersion": "2025-11-25",
            "capabilities": {},
            "clientInfo": {"name": "bench", "version": "1"},
        });
        let initialize = json!({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": params});
        let answer = self.exchange(&initialize.to_string()).await?;
        let revision = answer.json()?["result"]["protocolVersion"].as_str().ok_or("no revision")?.to_owned();
        self.headers = format!("MCP-Protocol-Version: {revision}\r\n");
        if let Some(session) = answer.session {
            self.headers += &format!("Mcp-Session-Id: {session}\r\n");
        }
        let initialized = json!({"jsonrpc": "2.0", "method": "notifications/initialized"});
        self.exchange(&initialized.to_string()).await.map(drop)
    }

    async fn stream(&self) -> Result<BufReader<TcpStream>> {
        let kept = self.idle.lock().await.pop();
        if let Some((_, stream)) = kept.filter(|(since, _)| since.elapsed() < KEPT) {
            return Ok(stream);
        }
        let stream = TcpStream::connect(&self.address).await?;
        stream.set_nodelay(true)?;
        Ok(BufReader::with_capacity(64 << 10, stream))
    }

    async fn exchange(&self, body: &str) -> Result<Answer> {
        let mut stream = self.stream().await?;
        let request = format!(
            "POST {} HTTP/1.1\r\nHost: {}\r\nContent-Type: application/json\r\nAccept: application/json, text/event-stream\r\n{}Content-Length: {}\r\n\r\n{body}",
            self.path,
            self.address,
            self.headers,
            body.len()
        );
        stream.write_all(request.as_bytes()).await?;
        let answer = Answer::read(&mut stream).await?;
        if answer.stays {
            self.idle.lock().await.push((Instant::now(), stream));
        }
        Ok(answer)
    }
}

impl Client for Http {
    fn call<'a>(&'a self, tool: &'static str) -> BoxFuture<'a, Result<usize>> {
        async move {
            if !self.tool.ends_with(tool) {
                return Err(format!("this client calls {} alone", self.tool).into());
            }
            let answer = self.exchange(&self.body()?).await?;
            let value = answer.json()?;
            match self.talk {
                Talk::Rest | Talk::Hub => Ok(answer.body.len()),
                // How much was answered, so that nothing of it is left out.
                _ => match value["result"]["content"][0]["text"].as_str() {
                    Some(text) => Ok(text.len()),
                    None => Err(format!("no result: {value}").into()),
                },
            }
        }
        .boxed()
    }
}

struct Answer {
    session: Option<String>,
    /// Whether the connection can be used again.
    stays: bool,
    is_stream: bool,
    body: Vec<u8>,
}

impl Answer {
    async fn read(stream: &mut BufReader<TcpStream>) -> Result<Self> {
        let mut line = String::new();
        stream.read_line(&mut line).await?;
        let status = line.split(' ').nth(1).unwrap_or_default().to_owned();
        let mut answer = Self { session: None, stays: true, is_stream: false, body: Vec::new() };
        let (mut length, mut chunked) = (0, false);
        loop {
            line.clear();
            stream.read_line(&mut line).await?;
            let Some((name, value)) = line.split_once(':') else { break };
            let value = value.trim();
            if name.eq_ignore_ascii_case("content-length") {
                length = value.parse()?;
            } else if name.eq_ignore_ascii_case("transfer-encoding") {
                chunked = value.eq_ignore_ascii_case("chunked");
            } else if name.eq_ignore_ascii_case("content-type") {
                answer.is_stream = value.starts_with("text/event-stream");
            } else if name.eq_ignore_ascii_case("mcp-session-id") {
                answer.session = Some(value.to_owned());
            } else if name.eq_ignore_ascii_case("connection") {
                answer.stays = !value.eq_ignore_ascii_case("close");
            }
        }
        if chunked {
            loop {
                line.clear();
                stream.read_line(&mut line).await?;
                let length = usize::from_str_radix(line.split(';').next().unwrap_or_default().trim(), 16)?;
                let at = answer.body.len();
                answer.body.resize(at + length, 0);
                stream.read_exact(&mut answer.body[at..]).await?;
                // The end of the chunk, or of the body.
                line.clear();
                stream.read_line(&mut line).await?;
                if length == 0 {
                    break;
                }
            }
        } else {
            answer.body.resize(length, 0);
            stream.read_exact(&mut answer.body).await?;
        }
        if !status.starts_with('2') {
            return Err(format!("answered {status}: {}", String::from_utf8_lossy(&answer.body)).into());
        }
        Ok(answer)
    }

    /// The body, or the last event of a stream of them.
    fn json(&self) -> Result<Value> {
        if !self.is_stream {
            return Ok(serde_json::from_slice(&self.body)?);
        }
        let text = std::str::from_utf8(&self.body)?;
        let data =
            text.lines().rev().filter_map(|line| line.strip_prefix("data:")).find(|data| !data.trim().is_empty());
        Ok(serde_json::from_str(data.ok_or("a stream without an event")?)?)
    }
}
