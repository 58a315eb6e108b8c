//! The contract of transports, held against each of ours with the fixture server behind it.

use std::{
    ffi::OsStr,
    io::{BufRead, BufReader},
    process::{Child, Command, Stdio},
};

use portcullis::{
    Definition, Registry,
    serde_json::json,
    testing::{contract::Subject, transport_contract},
    transport::OpenContext,
};

use tempfile::TempDir;

use crate::common::{Fixture, define, limits};

#[derive(Debug)]
struct Local(Fixture);

impl Subject for Local {
    fn definition(&self) -> Definition {
        self.0.definition("fixture")
    }

    fn other(&self) -> Definition {
        self.0.definition("other")
    }

    fn unset(&self) -> Option<Definition> {
        let mut fields = self.definition().fields().clone();
        fields.insert("env".to_owned(), json!({"TOKEN": "${PORTCULLIS_UNSET}"}));
        Some(define("fixture", "stdio", &fields.into()))
    }

    fn context(&self) -> OpenContext {
        OpenContext { limits: limits(), ..OpenContext::default() }
    }

    fn started(&self) -> usize {
        self.0.lines("started").len()
    }

    fn running(&self) -> usize {
        self.0.alive()
    }

    fn calls(&self) -> Vec<String> {
        self.0.lines("calls")
    }
}

/// A server on a port of its own, which lives as long as this does.
#[derive(Debug)]
struct Http {
    folder: TempDir,
    server: Child,
    url: String,
}

impl Http {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let witness = |name: &str| folder.path().join(name);
        let mut server = Command::new(portcullis_fixtures::server_path())
            .arg("--http")
            .args([OsStr::new("--http-log"), witness("requests").as_os_str()])
            .args([OsStr::new("--calls"), witness("calls").as_os_str()])
            // It ends with its input.
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut line = String::new();
        BufReader::new(server.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let address = line.trim().strip_prefix("listening on ").unwrap();
        Self { folder, server, url: format!("http://{address}/mcp") }
    }

    fn lines(&self, witness: &str) -> Vec<String> {
        let text = std::fs::read_to_string(self.folder.path().join(witness)).unwrap_or_default();
        text.lines().map(str::to_owned).collect()
    }
}

impl Drop for Http {
    fn drop(&mut self) {
        let _ = self.server.kill();
        let _ = self.server.wait();
    }
}

impl Subject for Http {
    fn definition(&self) -> Definition {
        define("fixture", "streamable-http", &json!({"url": self.url}))
    }

    fn other(&self) -> Definition {
        define("fixture", "streamable-http", &json!({"url": self.url, "headers": {"X-Other": "1"}}))
    }

    fn unset(&self) -> Option<Definition> {
        let headers = json!({"Authorization": "Bearer ${PORTCULLIS_UNSET}"});
        Some(define("fixture", "streamable-http", &json!({"url": self.url, "headers": headers})))
    }

    fn context(&self) -> OpenContext {
        OpenContext { limits: limits(), ..OpenContext::default() }
    }

    fn started(&self) -> usize {
        self.lines("requests").len()
    }

    fn running(&self) -> usize {
        0
    }

    fn calls(&self) -> Vec<String> {
        self.lines("calls")
    }
}

async fn held_by<S: Subject>(name: &str, subject: impl Fn() -> S) {
    let registry = Registry::linked(portcullis_transports::NAMES).unwrap();
    transport_contract(&**registry.transport(name).unwrap(), subject).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn stdio_keeps_the_contract() {
    held_by("stdio", || Local(Fixture::new(&[]))).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn streamable_http_keeps_the_contract() {
    held_by("streamable-http", Http::new).await;
}
