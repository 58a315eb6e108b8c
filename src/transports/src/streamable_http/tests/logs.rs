//! What the log says at its most talkative.

use super::*;

/// Where a subscriber writes to.
#[derive(Clone, Default)]
struct Log(Arc<std::sync::Mutex<Vec<u8>>>);

impl std::io::Write for Log {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().unwrap().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

#[tokio::test]
async fn a15_no_secret_is_logged_at_any_level() {
    let log = Log::default();
    let subscriber = {
        let log = log.clone();
        tracing_subscriber::fmt().with_max_level(tracing::Level::TRACE).with_writer(move || log.clone()).finish()
    };
    // With one subscriber alive, a call site that another test's thread meets first is judged by that thread's
    // own, which is none, and stays silent (`Rebuilder::JustOne` of tracing-core). With two, all are asked.
    let _second = tracing::Dispatch::new(tracing::subscriber::NoSubscriber::new());
    let _guard = tracing::subscriber::set_default(subscriber);
    let challenge = r#"Bearer error="canary-echoed""#;
    for flags in [
        &["--http-session", "--http-get"][..],
        &["--http-status", "401", "--http-challenge", challenge],
        &["--http-status", "500", "--http-body", "canary-body"],
        &["--http-content-type", "canary/type"],
        &["--http-drop"],
    ] {
        let fixture = Fixture::start(flags);
        let mut fields = fixture.fields();
        fields["auth"] = json!({"type": "bearer", "token": "${TOKEN}"});
        if let Ok(mut server) = Server::connect(&fields).await {
            server.say("spoken").await.unwrap();
            server.client.wire().close().await;
            server.keeper.close(SOON).await;
        }
    }
    let log = String::from_utf8(log.0.lock().unwrap().clone()).unwrap();
    assert!(log.contains("asked the server to end the session"), "the subscriber sees everything");
    assert!(!log.contains("canary"), "{}", log.lines().find(|line| line.contains("canary")).unwrap());
}
