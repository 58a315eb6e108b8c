//! Servers on a network that fails in the middle.

use std::{
    io::{BufRead as _, BufReader},
    process::{Child, Command, Stdio},
    time::{Duration, Instant},
};

use portcullis::{
    Limits,
    serde_json::json,
    store::Mode,
    tokio::{
        self,
        io::copy_bidirectional,
        net::{TcpListener, TcpStream},
        sync::watch,
    },
};
use portcullis_harness::{Harness, Host};
use tempfile::TempDir;

use crate::common::{define, limits, within};

/// `fixture-server --http`, behind a proxy.
struct Remote {
    child: Child,
    folder: TempDir,
    proxy: String,
    /// Connections made before this changes carry nothing any more, and stay open.
    dead: watch::Sender<()>,
}

impl Remote {
    async fn start(flags: &[&str]) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let mut child = Command::new(portcullis_fixtures::server_path())
            .args(["--http", "--calls"])
            .arg(folder.path().join("calls"))
            .args(flags)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let target = line.trim_end().strip_prefix("listening on ").unwrap().to_owned();
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let proxy = listener.local_addr().unwrap().to_string();
        let dead = watch::Sender::new(());
        let dying = dead.clone();
        tokio::spawn(async move {
            while let Ok((mut near, _)) = listener.accept().await {
                let (target, mut dies) = (target.clone(), dying.subscribe());
                tokio::spawn(async move {
                    let mut far = TcpStream::connect(target).await.unwrap();
                    tokio::select! {
                        _ = copy_bidirectional(&mut near, &mut far) => {}
                        // Both ends stay as they are, as behind a router that forgot them.
                        _ = dies.changed() => std::future::pending().await,
                    }
                });
            }
        });
        Self { child, folder, proxy, dead }
    }

    async fn ready(&self, limits: Limits) -> Host {
        let url = format!("http://{}/mcp", self.proxy);
        let host = Harness::new()
            .transport(&portcullis_transports::streamable_http::KIND)
            .define(define("far", "streamable-http", &json!({ "url": url })))
            .limits(limits)
            .start()
            .await
            .unwrap();
        host.make_ready("far").await.unwrap();
        host.gate().set_mode("far", Mode::Allow).await.unwrap();
        host
    }

    fn calls(&self) -> usize {
        std::fs::read_to_string(self.folder.path().join("calls")).unwrap_or_default().lines().count()
    }
}

impl Drop for Remote {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn idle(millis: u64) -> Limits {
    Limits { idle: Duration::from_millis(millis), ..limits() }
}

#[tokio::test]
async fn r36_half_open_connections_are_noticed_and_the_next_call_takes_a_new_one() {
    let remote = Remote::start(&[]).await;
    let host = remote.ready(idle(700)).await;
    // Several connections are kept for later.
    let call = || host.call("far", "slow", r#"{"ms":50}"#);
    let (one, two, three) = within(async { tokio::join!(call(), call(), call()) }).await;
    one.and(two).and(three).unwrap();
    let before = remote.calls();

    remote.dead.send_replace(());
    let begun = Instant::now();
    let error = within(call()).await.unwrap_err();
    assert_eq!(error.code(), "timeout", "{error}");
    assert!(begun.elapsed() < Duration::from_secs(5), "{:?}", begun.elapsed());
    within(call()).await.unwrap();
    assert_eq!(remote.calls(), before + 1, "the call in flight was repeated");

    remote.dead.send_replace(());
    assert_eq!(within(host.gate().ping("far")).await.unwrap_err().code(), "timeout");
    within(host.gate().ping("far")).await.unwrap();
    within(host.gate().close()).await;
}

#[tokio::test]
async fn r35_a_call_over_http_ends_at_the_idle_or_the_absolute_limit_and_says_at_which() {
    for (flags, limits, words) in [
        (vec!["--http-on", "tools/call", "--http-silent"], idle(500), "0.5 s without an answer"),
        (
            vec!["--http-sse", "--progress-forever"],
            Limits { absolute: Duration::from_millis(900), ..idle(500) },
            "0.9 s altogether",
        ),
    ] {
        let remote = Remote::start(&flags).await;
        let host = remote.ready(limits).await;
        let error = within(host.call("far", "echo", "{}")).await.unwrap_err();
        assert_eq!(error.code(), "timeout", "{error}");
        assert!(error.to_string().contains(words) && error.to_string().contains("`far`"), "{error}");
        within(host.gate().ping("far")).await.unwrap();
        within(host.gate().close()).await;
    }
}
