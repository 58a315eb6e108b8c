//! A client of the endpoint that says exactly what a test wants said.

use portcullis::{serde_json::Value, tokio};
use tokio::{
    io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader},
    net::TcpStream,
};

/// An answer, read to its end.
#[derive(Debug)]
pub(super) struct Answer {
    pub(super) status: u16,
    pub(super) head: String,
    pub(super) body: String,
}

impl Answer {
    pub(super) fn json(&self) -> Value {
        portcullis::serde_json::from_str(&self.body).unwrap_or_else(|_| panic!("{self:?}"))
    }

    pub(super) fn header(&self, name: &str) -> Option<String> {
        self.head.lines().find_map(|line| {
            let (key, value) = line.split_once(':')?;
            key.eq_ignore_ascii_case(name).then(|| value.trim().to_owned())
        })
    }
}

/// An answer that is still coming, line by line.
#[derive(Debug)]
pub(super) struct Coming(BufReader<TcpStream>);

impl Coming {
    /// The data of the next event.
    pub(super) async fn event(&mut self) -> Value {
        loop {
            let mut line = String::new();
            assert!(self.0.read_line(&mut line).await.unwrap() > 0, "the stream ended");
            if let Some(data) = line.strip_prefix("data: ").filter(|data| !data.trim().is_empty()) {
                return portcullis::serde_json::from_str(data).unwrap();
            }
        }
    }

    /// The id of the next event.
    pub(super) async fn id(&mut self) -> String {
        loop {
            let mut line = String::new();
            assert!(self.0.read_line(&mut line).await.unwrap() > 0, "the stream ended");
            if let Some(id) = line.strip_prefix("id: ") {
                return id.trim().to_owned();
            }
        }
    }

    /// The JSON of an answer, after its head.
    pub(super) async fn json(&mut self) -> Value {
        let mut answer = String::new();
        self.0.read_to_string(&mut answer).await.unwrap();
        let body = match answer.rsplit_once("data: ") {
            Some((_, event)) => event.split_once('\n').unwrap().0,
            None => answer.split_once("\r\n\r\n").unwrap().1,
        };
        portcullis::serde_json::from_str(body).unwrap_or_else(|_| panic!("{answer}"))
    }

    /// Reads to the end.
    pub(super) async fn ends(&mut self) {
        let _ = self.0.read_to_end(&mut Vec::new()).await;
    }

    /// Skips the head.
    pub(super) async fn head(mut self) -> Self {
        let mut line = String::new();
        while self.0.read_line(&mut line).await.unwrap() > 2 {
            line.clear();
        }
        self
    }
}

/// Sends a request as it is.
pub(super) async fn open(port: u16, request: &[u8]) -> Coming {
    let mut stream = TcpStream::connect(("127.0.0.1", port)).await.unwrap();
    // One that is refused early may not be read to its end.
    let _ = stream.write_all(request).await;
    Coming(BufReader::new(stream))
}

/// Sends a request, and reads the answer to the end of the connection.
pub(super) async fn raw(port: u16, request: &[u8]) -> Answer {
    let mut coming = open(port, request).await;
    let mut answer = Vec::new();
    let _ = coming.0.read_to_end(&mut answer).await;
    let text = String::from_utf8_lossy(&answer).into_owned();
    let (head, body) = text.split_once("\r\n\r\n").unwrap_or((&text, ""));
    let status = head.split(' ').nth(1).and_then(|status| status.parse().ok()).unwrap_or_default();
    let body =
        if head.to_lowercase().contains("transfer-encoding: chunked") { unchunked(body) } else { body.to_owned() };
    Answer { status, head: head.to_owned(), body }
}

/// Sends a request on a connection that stays, and reads its JSON answer.
pub(super) async fn keep_alive(connection: &mut BufReader<TcpStream>, request: &[u8]) -> Value {
    let text = String::from_utf8_lossy(request).replacen("Connection: close\r\n", "", 1);
    connection.get_mut().write_all(text.as_bytes()).await.unwrap();
    let (mut length, mut line) = (None, String::new());
    loop {
        line.clear();
        assert!(connection.read_line(&mut line).await.unwrap() > 0, "the connection ended");
        if let Some(value) = line.to_lowercase().strip_prefix("content-length:") {
            length = value.trim().parse().ok();
        }
        if line == "\r\n" {
            break;
        }
    }
    let mut body = vec![0; length.unwrap()];
    connection.read_exact(&mut body).await.unwrap();
    portcullis::serde_json::from_slice(&body).unwrap()
}

fn unchunked(mut body: &str) -> String {
    let mut out = String::new();
    while let Some((size, rest)) = body.split_once("\r\n") {
        let size = usize::from_str_radix(size.trim(), 16).unwrap_or_default();
        if size == 0 || rest.len() < size {
            break;
        }
        out.push_str(&rest[..size]);
        body = rest[size..].trim_start_matches("\r\n");
    }
    out
}

/// A request with these headers beside the usual ones.
pub(super) fn request(method: &str, path: &str, port: u16, headers: &[(&str, &str)], body: &str) -> Vec<u8> {
    let mut text = format!("{method} {path} HTTP/1.1\r\nConnection: close\r\n");
    let has = |name: &str| headers.iter().any(|(key, _)| key.eq_ignore_ascii_case(name));
    if !has("host") {
        text.push_str(&format!("Host: 127.0.0.1:{port}\r\n"));
    }
    if !has("content-type") {
        text.push_str("Content-Type: application/json\r\n");
    }
    for (name, value) in headers {
        text.push_str(&format!("{name}: {value}\r\n"));
    }
    text.push_str(&format!("Content-Length: {}\r\n\r\n{body}", body.len()));
    text.into_bytes()
}
