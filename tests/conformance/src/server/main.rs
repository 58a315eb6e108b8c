//! The server that the official conformance suite expects behind an endpoint: its tools, resources and prompts.
//!
//! It speaks MCP over standard input and output: 2025-11-25, as most servers do, or 2026-07-28 with `--newer`.

#![allow(clippy::print_stdout, reason = "standard output is the wire")]

mod content;
mod prompts;
mod resources;
mod tasks;
mod tools;

use std::{
    collections::HashMap,
    env,
    io::{self, BufRead as _, Write as _},
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicBool, AtomicU64, Ordering},
        mpsc,
    },
    thread,
};

use serde_json::{Value, json};

/// Why there is no result.
#[derive(Debug)]
enum Failure {
    /// An error of JSON-RPC.
    Rpc(i64, String),
    /// The client lacks these capabilities.
    Needs(Value),
    /// The client is asked first: under these keys, by these methods, with these parameters.
    Asks(Vec<(&'static str, &'static str, Value)>),
}

/// What all requests share.
#[derive(Debug, Default)]
struct Server {
    /// Whether it speaks the revision without handshake.
    newer: bool,
    next: AtomicU64,
    asked: Mutex<HashMap<u64, mpsc::Sender<Value>>>,
    /// Whether the tool and the prompt that come and go are away.
    tool_away: AtomicBool,
    prompt_away: AtomicBool,
    tasks: tasks::Tasks,
}

/// One request.
#[derive(Debug, Clone, Copy)]
struct Request<'a> {
    server: &'a Server,
    params: &'a Value,
}

impl Server {
    fn say(message: &Value) {
        let mut out = io::stdout().lock();
        // Whoever does not listen any more closes the input next.
        let _ = writeln!(out, "{message}").and_then(|()| out.flush());
    }

    fn notify(method: &str, params: &Value) {
        Self::say(&json!({"jsonrpc": "2.0", "method": method, "params": params}));
    }

    fn answered(&self, message: &Value) {
        let id = message["id"].as_u64();
        let waits = id.and_then(|id| self.asked.lock().unwrap_or_else(PoisonError::into_inner).remove(&id));
        if let Some(waits) = waits {
            let _ = waits.send(message.clone());
        }
    }
}

impl Request<'_> {
    /// Asks the client; its result, or its error.
    fn ask(self, key: &'static str, method: &'static str, params: &Value) -> Result<Value, Failure> {
        if self.server.newer {
            let answer = self.params["inputResponses"].get(key).filter(|answer| answer.is_object());
            return answer.cloned().ok_or_else(|| Failure::Asks(vec![(key, method, params.clone())]));
        }
        let id = self.server.next.fetch_add(1, Ordering::Relaxed);
        let (answer, answered) = mpsc::channel();
        self.server.asked.lock().unwrap_or_else(PoisonError::into_inner).insert(id, answer);
        Server::say(&json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}));
        let answer = answered.recv().map_err(|_| Failure::Rpc(-32_603, "nobody answered".to_owned()))?;
        match answer.get("result") {
            Some(result) => Ok(result.clone()),
            None => Err(Failure::Rpc(-32_603, format!("the client answered {}", answer["error"]))),
        }
    }

    /// Whether the client offers it.
    fn offers(self, capability: &str) -> bool {
        let offers = &self.params["_meta"]["io.modelcontextprotocol/clientCapabilities"];
        !self.server.newer || offers.get(capability).is_some()
    }

    fn carry_out(self, method: &str) -> Result<Value, Failure> {
        let mut capabilities = json!({
            "tools": {"listChanged": true}, "prompts": {"listChanged": true},
            "resources": {"subscribe": !self.server.newer}, "completions": {}, "logging": {},
        });
        let info = json!({"name": "conformance-server", "version": env!("CARGO_PKG_VERSION")});
        if self.server.newer {
            capabilities["extensions"] = json!({tasks::EXTENSION: {}});
        }
        match method {
            "tasks/get" | "tasks/update" | "tasks/cancel" if self.server.newer => tasks::asked(self, method),
            "server/discover" if self.server.newer => Ok(json!({
                "supportedVersions": ["2026-07-28"], "capabilities": capabilities, "ttlMs": 0, "cacheScope": "private",
                "_meta": {"io.modelcontextprotocol/serverInfo": info},
            })),
            "initialize" if !self.server.newer => {
                Ok(json!({"protocolVersion": "2025-11-25", "serverInfo": info, "capabilities": capabilities}))
            }
            "ping" | "logging/setLevel" | "resources/subscribe" | "resources/unsubscribe" if !self.server.newer => {
                Ok(json!({}))
            }
            "tools/list" => Ok(json!({"tools": tools::list(self.server)})),
            "tools/call" => tools::call(self),
            "resources/list" => Ok(json!({"resources": resources::list()})),
            "resources/templates/list" => Ok(json!({"resourceTemplates": resources::templates()})),
            "resources/read" => resources::read(self.params["uri"].as_str().unwrap_or_default()),
            "prompts/list" => Ok(json!({"prompts": prompts::list(self.server)})),
            "prompts/get" => prompts::get(self),
            "completion/complete" => {
                let typed = self.params["argument"]["value"].as_str().unwrap_or_default();
                let words = ["paris", "park", "party"].into_iter().filter(|word| word.starts_with(typed));
                let values: Vec<_> = words.collect();
                Ok(json!({"completion": {"values": values, "total": values.len(), "hasMore": false}}))
            }
            _ => Err(Failure::Rpc(-32_601, format!("no method `{method}`"))),
        }
    }

    fn answer(self, method: &str, id: &Value) -> Value {
        let (member, value) = match self.carry_out(method) {
            Ok(mut result) => {
                if self.server.newer && result.get("resultType").is_none() {
                    result["resultType"] = "complete".into();
                }
                ("result", result)
            }
            Err(Failure::Rpc(code, text)) => ("error", json!({"code": code, "message": text})),
            Err(Failure::Needs(capabilities)) => {
                let data = json!({"requiredCapabilities": capabilities});
                ("error", json!({"code": -32_021, "message": "the client lacks what is needed", "data": data}))
            }
            Err(Failure::Asks(asked)) => {
                let requests: serde_json::Map<_, _> = asked
                    .into_iter()
                    .map(|(key, method, params)| (key.to_owned(), json!({"method": method, "params": params})))
                    .collect();
                let state = self.params["requestState"].as_str().unwrap_or("0").parse::<u32>().unwrap_or(0) + 1;
                let result = json!({
                    "resultType": "input_required", "inputRequests": requests, "requestState": state.to_string(),
                });
                ("result", result)
            }
        };
        json!({"jsonrpc": "2.0", "id": id, member: value})
    }
}

fn main() {
    let server = Arc::new(Server { newer: env::args().any(|argument| argument == "--newer"), ..Server::default() });
    for line in io::stdin().lock().lines().map_while(Result::ok) {
        let Ok(message) = serde_json::from_str::<Value>(&line) else { continue };
        let Some(method) = message["method"].as_str().map(str::to_owned) else {
            server.answered(&message);
            continue;
        };
        if message["id"].is_null() {
            continue;
        }
        let server = server.clone();
        // A request may wait for the client, whose answer is the next line.
        thread::spawn(move || {
            let request = Request { server: &server, params: &message["params"] };
            Server::say(&request.answer(&method, &message["id"]));
        });
    }
}
