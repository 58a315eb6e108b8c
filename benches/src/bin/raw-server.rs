//! A cheap MCP server, so that a benchmark measures the client: stdio, or HTTP with `--http`.
//!
//! It parses as little as it can and answers from constants.

use std::{
    io::{BufRead, BufReader, Read, Write},
    net::{TcpListener, TcpStream},
    sync::OnceLock,
};

const INITIALIZE: &str = r#""capabilities":{"tools":{}},"serverInfo":{"name":"raw","version":"0"}}"#;
/// Revisions that some clients insist on.
const OLDER: [&str; 3] = ["2024-11-05", "2025-03-26", "2025-06-18"];
const ECHO: &str = r#"{"content":[{"type":"text","text":"hello world, this is a short echo payload"}]}"#;
const TOOLS: &str = r#"{"tools":[{"name":"echo","description":"Says it again","inputSchema":{"type":"object","properties":{"text":{"type":"string"}}}},{"name":"big","inputSchema":{"type":"object"}}]}"#;
const BIG_BYTES: usize = 15 << 20;

/// What is answered without being made anew each time.
struct Answers {
    tools: String,
    big_bytes: usize,
    /// Made when it is asked for: most runs never do.
    big: OnceLock<String>,
}

impl Answers {
    fn new(many: Option<usize>, big: usize) -> Self {
        let tools = many.map_or_else(
            || TOOLS.to_owned(),
            |count| {
                let tools: Vec<_> = (0..count)
                    .map(|at| format!(r#"{{"name":"tool_{at}","description":"The tool number {at} of a server that has very many of them","inputSchema":{{"type":"object","properties":{{"path":{{"type":"string","description":"A path"}},"count":{{"type":"integer","minimum":0}}}},"required":["path"]}}}}"#))
                    .collect();
                format!(r#"{{"tools":[{}]}}"#, tools.join(","))
            },
        );
        Self { tools, big_bytes: big, big: OnceLock::new() }
    }

    fn big(&self) -> &str {
        let text = || format!(r#"{{"content":[{{"type":"text","text":"{}"}}]}}"#, "x".repeat(self.big_bytes));
        self.big.get_or_init(text)
    }

    /// The answer to one request; none to a notification.
    fn answer(&self, line: &str) -> Option<String> {
        let id = after(line, "\"id\":")?;
        let result = match after(line, "\"method\":")? {
            "\"initialize\"" => {
                let revision = OLDER.into_iter().find(|older| line.contains(older)).unwrap_or("2025-11-25");
                &format!(r#"{{"protocolVersion":"{revision}",{INITIALIZE}"#)
            }
            "\"tools/list\"" => &self.tools,
            "\"tools/call\"" if line.contains("\"name\":\"big\"") => self.big(),
            "\"tools/call\"" => ECHO,
            _ => return Some(format!(r#"{{"jsonrpc":"2.0","id":{id},"error":{{"code":-32601,"message":"no"}}}}"#)),
        };
        Some(format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{result}}}"#))
    }
}

fn after<'a>(line: &'a str, key: &str) -> Option<&'a str> {
    let rest = &line[line.find(key)? + key.len()..];
    rest.find([',', '}']).map(|end| rest[..end].trim())
}

fn main() -> std::io::Result<()> {
    let flags: Vec<String> = std::env::args().skip(1).collect();
    let number = |name: &str| flags.iter().position(|flag| flag == name).and_then(|at| flags.get(at + 1)?.parse().ok());
    let answers = Answers::new(number("--tools"), number("--big-bytes").unwrap_or(BIG_BYTES));
    if flags.iter().any(|flag| flag == "--http") {
        return http(&answers);
    }
    let (mut out, mut line) = (std::io::stdout().lock(), String::new());
    let mut input = BufReader::with_capacity(64 << 10, std::io::stdin().lock());
    let mut pending = Vec::new();
    while input.read_line(&mut line)? > 0 {
        if let Some(answer) = answers.answer(&line) {
            pending.extend_from_slice(answer.as_bytes());
            pending.push(b'\n');
        }
        line.clear();
        // What is already here is answered in one write.
        if !input.buffer().contains(&b'\n') {
            out.write_all(&pending)?;
            out.flush()?;
            pending.clear();
        }
    }
    Ok(())
}

fn http(answers: &Answers) -> std::io::Result<()> {
    let listener = TcpListener::bind("127.0.0.1:0")?;
    let mut out = std::io::stdout();
    writeln!(out, "{}", listener.local_addr()?)?;
    out.flush()?;
    std::thread::scope(|scope| {
        for stream in listener.incoming().flatten() {
            // A client that goes away ends its connection, nothing else.
            scope.spawn(move || drop(serve(&stream, answers)));
        }
    });
    Ok(())
}

fn serve(mut stream: &TcpStream, answers: &Answers) -> std::io::Result<()> {
    stream.set_nodelay(true)?;
    let mut reader = BufReader::new(stream);
    let (mut line, mut body) = (String::new(), Vec::new());
    loop {
        let (mut length, mut post, mut seen) = (0, false, false);
        loop {
            line.clear();
            if reader.read_line(&mut line)? == 0 {
                return Ok(());
            }
            if line.trim().is_empty() {
                break;
            }
            post |= !seen && line.starts_with("POST");
            seen = true;
            if let Some(value) = line.get(..15).filter(|name| name.eq_ignore_ascii_case("content-length:")) {
                length = line[value.len()..].trim().parse().unwrap_or(0);
            }
        }
        body.resize(length, 0);
        reader.read_exact(&mut body)?;
        if !post {
            stream.write_all(b"HTTP/1.1 405 No\r\nContent-Length: 0\r\n\r\n")?;
            continue;
        }
        match answers.answer(&String::from_utf8_lossy(&body)) {
            Some(text) => stream.write_all(
                format!(
                    "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\r\n{text}",
                    text.len()
                )
                .as_bytes(),
            )?,
            None => stream.write_all(b"HTTP/1.1 202 Accepted\r\nContent-Length: 0\r\n\r\n")?,
        }
    }
}
