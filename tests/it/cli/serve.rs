//! `serve` in one process, everything else in others.

use std::{
    io::{BufRead as _, BufReader, Lines, Read as _, Write as _},
    net::TcpStream,
    process::{Child, ChildStdin, ChildStdout, ExitStatus, Stdio},
    thread::JoinHandle,
    time::{Duration, Instant},
};

use serde_json::{Value, json};

use super::{
    json::{misfit, shapes},
    program::Home,
};

/// An endpoint in a process of its own.
struct Serving {
    child: Child,
    said: Value,
}

impl Serving {
    fn of(home: &Home, more: &[&str]) -> Self {
        let arguments = [&["--json", "serve", "--port", "0"], more].concat();
        let mut child =
            home.command(&arguments).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        Self { child, said: serde_json::from_str(&line).unwrap() }
    }

    fn port(&self) -> u16 {
        self.said["port"].as_u64().unwrap().try_into().unwrap()
    }

    /// A call of the newer era, in a thread, since it may wait for an answer.
    fn call(&self, home: &Home, arguments: &Value) -> JoinHandle<Value> {
        let token = std::fs::read_to_string(self.said["token"].as_str().unwrap()).unwrap();
        home.shows_no_secret("the token", &token);
        let meta = json!({
            "io.modelcontextprotocol/protocolVersion": "2026-07-28",
            "io.modelcontextprotocol/clientCapabilities": {},
            "io.modelcontextprotocol/clientInfo": {"name": "client", "version": "1"},
        });
        let params = json!({"name": "files__echo", "arguments": arguments, "_meta": meta});
        let body = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}).to_string();
        let port = self.port();
        std::thread::spawn(move || {
            let mut stream = TcpStream::connect(("127.0.0.1", port)).unwrap();
            let request = format!(
                "POST /mcp HTTP/1.1\r\nHost: localhost:{port}\r\nConnection: close\r\nAuthorization: Bearer {}\r\n\
                 Content-Type: application/json\r\nMCP-Protocol-Version: 2026-07-28\r\nMcp-Method: tools/call\r\n\
                 Mcp-Name: files__echo\r\nContent-Length: {}\r\n\r\n{body}",
                token.trim(),
                body.len()
            );
            stream.write_all(request.as_bytes()).unwrap();
            let mut answer = String::new();
            stream.read_to_string(&mut answer).unwrap();
            let (_, body) = answer.split_once("\r\n\r\n").unwrap();
            serde_json::from_str(body).unwrap_or_else(|_| panic!("{answer}"))
        })
    }
}

impl Drop for Serving {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The questions, once there are this many.
fn questions(home: &Home, count: usize) -> Vec<Value> {
    let began = Instant::now();
    loop {
        let open = home.run(&["--json", "approvals"]).ends(0).json();
        let open = open.as_array().unwrap();
        if open.len() == count {
            return open.clone();
        }
        assert!(began.elapsed() < Duration::from_secs(20), "{open:?}");
    }
}

#[test]
fn b4_a_call_of_any_client_is_answered_from_another_terminal() {
    let home = Home::new();
    home.ready(&[], &json!({}));
    let none = home.run(&["--json", "approvals"]).ends(4);
    assert_eq!(none.error_code(), "no-endpoint");
    let serving = Serving::of(&home, &[]);
    let shapes = shapes();
    let fits = |heading: &str, value: &Value| assert_eq!(misfit(&shapes[heading], value, heading), None);
    fits("serve", &serving.said);
    assert_eq!(home.run(&["--json", "serve", "--port", "0"]).ends(11).error_code(), "serving");
    let taken = home.run(&["--json", "serve", "--port", &serving.port().to_string()]).ends(4);
    assert_eq!(taken.error_code(), "port");
    #[cfg(target_os = "linux")]
    assert!(taken.err.contains("portcullis"), "{}", taken.err);

    let call = serving.call(&home, &json!({"text": "x"}));
    let open = questions(&home, 1);
    fits("approvals", &json!(open));
    assert_eq!(open[0]["caller"], "client (endpoint)");
    let id = open[0]["id"].as_str().unwrap();
    let shown = home.run(&["approvals"]).ends(0).out;
    assert!(shown.contains(r#""text": "x""#) && shown.contains(&format!("portcullis approve {id}")), "{shown}");
    fits("approve", &home.run(&["--json", "approve", id]).ends(0).json());
    assert_eq!(call.join().unwrap()["result"]["content"][0]["text"], "x");
    assert_eq!(home.run(&["--json", "approve", id]).ends(12).error_code(), "question");

    let calls = [serving.call(&home, &json!({"text": "y"})), serving.call(&home, &json!({"text": "z"}))];
    let open = questions(&home, 2);
    home.run(&["deny", open[0]["id"].as_str().unwrap()]).ends(0);
    fits("deny --all", &home.run(&["--json", "deny", "--all"]).ends(0).json());
    for call in calls {
        let answer = call.join().unwrap();
        assert_eq!(answer["result"]["isError"], true, "{answer}");
    }
    let log = home.run(&["log"]).ends(0).out;
    assert!(log.contains("client (endpoint)"), "{log}");
}

#[test]
fn a11_the_command_line_uses_the_servers_of_a_running_endpoint() {
    let home = Home::new();
    home.ready(&["--started", &home.text("started")], &json!({}));
    let starts = || std::fs::read_to_string(home.path("started")).unwrap_or_default().lines().count();
    let before = starts();
    let mut serving = Serving::of(&home, &[]);
    for _ in 0..3 {
        let called = home.run(&["--json", "call", "files", "echo", "text=x", "--yes"]).ends(0);
        assert_eq!(called.json()["content"][0]["text"], "x");
    }
    assert_eq!(starts(), before + 1);
    // Nobody is there to be asked: as without an endpoint.
    home.run(&["--json", "call", "files", "echo", "text=x"]).ends(11);
    assert_eq!(home.run(&["--json", "call", "files", "nothing"]).ends(12).error_code(), "unknown-tool");
    let _ = serving.child.kill();
    let _ = serving.child.wait();
    // What it left behind leads nowhere.
    home.run(&["--json", "call", "files", "echo", "text=x", "--yes"]).ends(0);
    assert_eq!(starts(), before + 2);
}

/// A client that started `serve --stdio`.
struct Started {
    child: Child,
    input: Option<ChildStdin>,
    lines: Lines<BufReader<ChildStdout>>,
}

impl Started {
    fn of(home: &Home, more: &[&str]) -> Self {
        let mut child = home
            .command(&[&["serve", "--stdio"], more].concat())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let input = child.stdin.take();
        let lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let mut client = Self { child, input, lines };
        let hello =
            json!({"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "c", "version": "1"}});
        let hello = client.ask(1, "initialize", &hello);
        assert_eq!(hello["result"]["serverInfo"]["name"], "portcullis");
        client.say(&json!({"jsonrpc": "2.0", "method": "notifications/initialized"}));
        client
    }

    fn say(&mut self, message: &Value) {
        self.input.as_mut().unwrap().write_all(format!("{message}\n").as_bytes()).unwrap();
    }

    fn hear(&mut self, id: u64) -> Value {
        loop {
            let answer: Value = serde_json::from_str(&self.lines.next().unwrap().unwrap()).unwrap();
            if answer["id"] == id {
                return answer;
            }
        }
    }

    fn ask(&mut self, id: u64, method: &str, params: &Value) -> Value {
        self.say(&json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}));
        self.hear(id)
    }

    /// Closes its input; how the program ends, and what it said to a person.
    fn ends(mut self) -> (ExitStatus, String) {
        drop(self.input.take());
        let mut said = String::new();
        self.child.stderr.take().unwrap().read_to_string(&mut said).unwrap();
        (self.child.wait().unwrap(), said)
    }
}

#[test]
fn a_client_that_only_starts_commands_is_served_over_its_pipe() {
    let home = Home::new();
    home.ready(&[], &json!({}));
    home.run(&["mode", "files", "allow"]).ends(0);
    let mut client = Started::of(&home, &[]);
    let called = client.ask(2, "tools/call", &json!({"name": "files__echo", "arguments": {"text": "x"}}));
    assert_eq!(called["result"]["content"][0]["text"], "x");
    assert!(client.ends().0.success());
    let unknown = home.run(&["--json", "serve", "--stdio", "--group", "nowhere"]).ends(12);
    assert_eq!(unknown.error_code(), "unknown-group");
}

#[test]
fn b4_clients_that_start_commands_share_one_gate() {
    let home = Home::new();
    home.ready(&["--started", &home.text("started")], &json!({}));
    let starts = || std::fs::read_to_string(home.path("started")).unwrap_or_default().lines().count();
    let before = starts();
    let echo = json!({"name": "files__echo", "arguments": {"text": "x"}});
    // The first one is the endpoint, the others are handed on to it.
    let mut clients = [Started::of(&home, &[]), Started::of(&home, &[]), Started::of(&home, &[])];
    for client in &mut clients {
        client.say(&json!({"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": echo}));
    }
    for question in questions(&home, 3) {
        home.run(&["approve", question["id"].as_str().unwrap()]).ends(0);
    }
    for client in &mut clients {
        assert_eq!(client.hear(2)["result"]["content"][0]["text"], "x");
    }
    assert_eq!(starts(), before + 1);
    let refused = home.run(&["--json", "serve", "--port", "0"]).ends(11);
    assert!(refused.err.contains("process"), "{}", refused.err);
    let [first, second, third] = clients;
    let (ended, said) = second.ends();
    assert!(ended.success() && said.contains("handed on to the endpoint at port"), "{said}");
    // Whoever was handed on is told when there is nobody any more.
    assert!(first.ends().0.success());
    let (ended, said) = third.ends();
    assert!(ended.code() == Some(4) && said.contains("has ended"), "{ended} {said}");
}
