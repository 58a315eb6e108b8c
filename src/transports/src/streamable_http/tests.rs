//! Plans, and openings of a server on this machine.

use std::{
    error::Error,
    fs,
    io::{BufRead, BufReader},
    net::TcpListener,
    path::PathBuf,
    process::{Child, Command, Stdio},
    time::Duration,
};

use portcullis::{
    link::{Keeper, LinkError},
    reference::Surroundings,
    serde_json::{self, json},
    testing::{BareClient, consent_to},
};
use tempfile::TempDir;

use super::*;

const LIMIT: usize = 200_000;
const SOON: Duration = Duration::from_secs(10);

fn context(environment: &[(&str, &str)]) -> OpenContext {
    let environment = environment.iter().map(|(name, value)| (name.into(), value.into())).collect();
    let surroundings = Surroundings { environment, ..Surroundings::default() };
    OpenContext { surroundings, limits: Limits { message_bytes: LIMIT, ..Limits::default() } }
}

fn plan(fields: &Value, context: &OpenContext) -> Result<HttpPlan, TransportError> {
    let definition = Definition::new("search", "streamable-http", fields.as_object().cloned().unwrap());
    HttpPlan::new(&definition, context)
}

async fn start(fields: &Value) -> Result<(HttpWire, HttpKeeper), TransportError> {
    let context = context(&[("TOKEN", "canary-token"), ("BAD", "canary\r\nX-Evil: 1")]);
    let plan = plan(fields, &context)?;
    let consent = consent_to(&plan.view);
    plan.start(consent, &context.surroundings).await
}

/// All that an error says, sources and `Debug` included.
fn everything(error: &(dyn Error + 'static)) -> String {
    let mut text = format!("{error:?}");
    let mut next = Some(error);
    while let Some(error) = next {
        text.push_str(&error.to_string());
        next = error.source();
    }
    text
}

/// `fixture-server --http`.
struct Fixture {
    child: Child,
    address: String,
    folder: TempDir,
}

impl Fixture {
    fn start(flags: &[&str]) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let mut child = Command::new(portcullis_fixtures::server_path())
            .args(["--http", "--http-log"])
            .arg(folder.path().join("log"))
            .args(flags)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let address = line.trim_end().strip_prefix("listening on ").unwrap().to_owned();
        Self { child, address, folder }
    }

    fn fields(&self) -> Value {
        json!({
            "url": format!("http://{}/mcp?key=canary-query", self.address),
            "headers": {"X-Api-Key": "${TOKEN}", "X-Plain": "canary-literal"},
        })
    }

    /// The requests it saw with this RPC method (or `GET`, `DELETE`).
    fn seen(&self, what: &str) -> usize {
        let log: PathBuf = self.folder.path().join("log");
        let log = fs::read_to_string(log).unwrap_or_default();
        log.lines().filter(|line| line.split(' ').step_by(2).any(|word| word == what)).count()
    }
}

impl Drop for Fixture {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// An open server, spoken to message by message.
struct Server {
    client: BareClient,
    keeper: HttpKeeper,
}

impl Server {
    async fn open(fields: &Value) -> Self {
        let (wire, keeper) = start(fields).await.unwrap();
        Self { client: BareClient::over(wire), keeper }
    }

    async fn connect(fields: &Value) -> Result<Self, LinkError> {
        let mut server = Self::open(fields).await;
        server.client.initialize().await?;
        Ok(server)
    }

    async fn ask(&mut self, method: &str, params: Value) -> Result<Value, LinkError> {
        self.client.ask(method, params).await
    }

    async fn call(&mut self, tool: &str, arguments: Value) -> Result<Value, LinkError> {
        self.ask("tools/call", json!({"name": tool, "arguments": arguments})).await
    }

    async fn say(&mut self, text: &str) -> Result<String, LinkError> {
        let result = self.call("echo", json!({"text": text})).await?;
        Ok(result["content"][0]["text"].as_str().unwrap().to_owned())
    }
}

/// The error of one call on a server with `flags`, sent once, after which other requests work.
async fn error_of_a_call(flags: &[&str]) -> LinkError {
    let fixture = Fixture::start(&[&["--http-on", "tools/call"], flags].concat());
    let mut server = Server::connect(&fixture.fields()).await.unwrap();
    let error = server.call("echo", json!({"text": "x"})).await.unwrap_err();
    assert_eq!(fixture.seen("tools/call"), 1, "r34: exactly one POST; {flags:?}");
    let ping = server.ask("ping", json!({})).await.unwrap();
    assert_eq!(ping, json!({}), "one failed call is nobody else's business; {flags:?}");
    assert!(!everything(&error).contains("canary"), "{error:?}");
    error
}

#[test]
fn a13_the_view_says_all_of_it_and_no_value() {
    let context = context(&[("HOST", "example.com"), ("KEY", "canary-1")]);
    let fields = json!({
        "url": "http://${HOST}/mcp?key=${KEY}&b=canary-2",
        "headers": {"X-Api-Key": "${secret:k}", "X-Plain": "canary-3"},
        "auth": {"type": "bearer", "token": "${TOKEN}"},
    });
    let plan = plan(&fields, &context).unwrap();
    let name = |name: &str, literal| ViewName { name: name.into(), literal, warning: None };
    let warning = "headers are sent over `http`, where anybody on the way can read them";
    assert_eq!(
        plan.view,
        TrustView {
            server: "search".into(),
            kind: "streamable-http".into(),
            target: "http://example.com/mcp?key=…&b=…".into(),
            target_label: "url",
            written: Some("http://${HOST}/mcp".into()),
            arguments: Vec::new(),
            directory: None,
            names: vec![name("X-Api-Key", false), name("X-Plain", true)],
            names_label: "headers",
            reads: ["${HOST}", "${KEY}", "${secret:k}", "${TOKEN}"].map(str::to_owned).into(),
            warnings: vec![warning.into()],
        }
    );
    assert!(!format!("{plan:?}").contains("canary"));
}

#[test]
fn a13_only_plain_http_to_elsewhere_deserves_a_second_look() {
    let warnings = |url: &str, headers: Value| {
        plan(&json!({"url": url, "headers": headers}), &context(&[])).unwrap().view.warnings.len()
    };
    assert_eq!(warnings("http://example.com/", json!({"A": "b"})), 1);
    assert_eq!(warnings("http://example.com/", json!({})), 0);
    for fine in ["https://example.com/", "http://127.0.0.1:1/", "http://[::1]/", "http://localhost/"] {
        assert_eq!(warnings(fine, json!({"A": "b"})), 0, "{fine}");
    }
}

#[test]
fn a15_a_url_is_refused_when_its_variables_make_it_another() {
    let context = context(&[("BASE", "file:///etc"), ("USER", "canary:canary@x"), ("EMPTY", "")]);
    for url in ["${BASE}/passwd", "https://${USER}/", "https://${EMPTY}/", "https://x/${NOPE}"] {
        let error = plan(&json!({"url": url}), &context).unwrap_err();
        let expected = match &error {
            TransportError::Value { field, .. } => !url.contains("NOPE") && field == "url",
            TransportError::Reference { field, .. } => url.contains("NOPE") && field == "url",
            _ => false,
        };
        assert!(expected && !everything(&error).contains("canary"), "{error:?}");
    }
}

#[test]
fn s7_headers_of_the_connection_are_refused_by_document_and_plan() {
    let fields = json!({"url": "https://x/", "headers": {"OK": "1", "Host": "canary", "Mcp-Session-Id": "canary"}});
    let mut report = Report::default();
    (KIND.check)(fields.as_object().unwrap(), &mut report);
    let found: Vec<_> = report.problems.iter().map(|problem| problem.pointer.as_str()).collect();
    assert_eq!(found, ["/headers/Host", "/headers/Mcp-Session-Id"]);
    let refused = |headers: Value, auth: Value| match plan(
        &json!({"url": "https://x/", "headers": headers, "auth": auth}),
        &context(&[]),
    ) {
        Err(TransportError::Value { field, .. }) => field,
        other => panic!("{other:?}"),
    };
    let none = json!({"type": "none"});
    assert_eq!(refused(json!({"Host": "canary"}), none.clone()), "headers.Host");
    assert_eq!(refused(json!({"a": "1", "A": "2"}), none), "headers.A");
    assert_eq!(
        refused(json!({"authorization": "x"}), json!({"type": "bearer", "token": "t"})),
        "headers.authorization"
    );
    assert_eq!(refused(json!({}), json!({"type": "bearer"})), "auth.token");
}

#[tokio::test]
async fn s4_planning_and_opening_contact_nobody_and_a_consent_fits_one_plan() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    listener.set_nonblocking(true).unwrap();
    let context = context(&[]);
    let fields = json!({"url": format!("http://{}/", listener.local_addr().unwrap())});
    let (one, two) = (plan(&fields, &context).unwrap(), plan(&fields, &context).unwrap());
    assert_eq!(one.view.hash(), two.view.hash());
    let other = plan(&json!({"url": "http://127.0.0.1:1/"}), &context).unwrap();
    let consent = consent_to(&other.view);
    assert!(matches!(one.start(consent, &context.surroundings).await, Err(TransportError::Consent)));
    let consent = consent_to(&two.view);
    let opened = two.start(consent, &context.surroundings).await.unwrap();
    assert!(listener.accept().is_err());
    drop(opened);
}

#[tokio::test]
async fn a15_what_cannot_be_sent_names_its_field_and_not_its_value() {
    for (headers, auth, field) in [
        (json!({"X-A": "${BAD}"}), json!({"type": "none"}), "headers.X-A"),
        (json!({"X-A": "${NOPE}"}), json!({"type": "none"}), "headers.X-A"),
        (json!({}), json!({"type": "bearer", "token": "${BAD}"}), "auth.token"),
        (json!({}), json!({"type": "bearer", "token": "${secret:t}"}), "auth.token"),
    ] {
        let fields = json!({"url": "http://127.0.0.1:1/", "headers": headers, "auth": auth});
        let error = start(&fields).await.unwrap_err();
        assert!(error.to_string().contains(field), "{error}");
        assert!(!everything(&error).contains("canary"), "{error:?}");
    }
    let error = start(&json!({"url": "http://127.0.0.1:1/", "auth": {"type": "oauth"}})).await.unwrap_err();
    assert!(error.to_string().contains("oauth"), "{error}");
}

#[tokio::test]
async fn a12_headers_reach_the_server_with_every_request() {
    let fixture = Fixture::start(&["--http-session", "--http-get"]);
    let mut fields = fixture.fields();
    fields["auth"] = json!({"type": "bearer", "token": "${TOKEN}"});
    let mut server = Server::connect(&fields).await.unwrap();
    let result = server.call("headers", json!({})).await.unwrap();
    let headers: Value = serde_json::from_str(result["content"][0]["text"].as_str().unwrap()).unwrap();
    for (name, value) in [
        ("x-api-key", "canary-token"),
        ("x-plain", "canary-literal"),
        ("authorization", "Bearer canary-token"),
        ("mcp-session-id", "session-1"),
        ("mcp-protocol-version", "2025-11-25"),
        ("accept-encoding", "identity"),
        ("user-agent", concat!("portcullis/", env!("CARGO_PKG_VERSION"))),
    ] {
        assert_eq!(headers[name], value, "{name}");
    }
    server.client.wire().close().await;
    let log = fs::read_to_string(fixture.folder.path().join("log")).unwrap();
    assert!(log.lines().all(|line| line.contains("x-api-key") && line.contains("authorization")), "{log}");
}

#[tokio::test]
async fn results_stay_as_they_are_over_json_and_events() {
    let mut texts = Vec::new();
    for flags in [&[][..], &["--http-sse"], &["--http-sse", "--http-event-ids"]] {
        let fixture = Fixture::start(flags);
        let mut server = Server::connect(&fixture.fields()).await.unwrap();
        assert_eq!(server.say("hi").await.unwrap(), "hi");
        texts.push(server.call("raw", json!({})).await.unwrap().as_str().unwrap().to_owned());
        let list = server.ask("tools/list", json!({})).await.unwrap();
        assert_eq!(list["tools"][0]["name"], "echo");
    }
    assert!(texts[0].ends_with(r#""a":1e400},"futureField":{"a":1}}"#), "{}", texts[0]);
    assert!(texts[0].contains(r#""é\u00e9""#) && texts.iter().all(|text| *text == texts[0]));
}

#[tokio::test]
async fn s34_a_redirect_is_an_error_and_its_target_sees_nothing() {
    let target = TcpListener::bind("127.0.0.1:0").unwrap();
    target.set_nonblocking(true).unwrap();
    let elsewhere = format!("http://{}/mcp", target.local_addr().unwrap());
    for status in [301, 302, 303, 307, 308] {
        for location in ["/other", &elsewhere, "http://localhost:1/mcp", "file:///etc/passwd"] {
            let flags = ["--http-status", &status.to_string(), "--http-redirect", location];
            let error = error_of_a_call(&flags).await;
            let LinkError::Redirect { status: found, host } = &error else { panic!("{error:?}") };
            assert!(*found == status && host.starts_with("127.0.0.1:"), "{error}");
            if location == elsewhere {
                let fixture = Fixture::start(&flags);
                let error = Server::connect(&fixture.fields()).await.map(|_| ()).unwrap_err();
                assert!(matches!(error, LinkError::Redirect { .. }), "{error:?}");
                assert_eq!(fixture.seen("initialize"), 1);
            }
        }
    }
    assert!(target.accept().is_err());
}

#[tokio::test]
async fn r34_a_failed_status_is_the_error_of_one_call_that_was_sent_once() {
    for code in [400, 404, 429, 500, 502, 503, 504] {
        let error = error_of_a_call(&["--http-status", &code.to_string(), "--http-body", "canary"]).await;
        assert!(matches!(error, LinkError::Status { status, .. } if status == code), "{error:?}");
    }
}

#[tokio::test]
async fn r33_a_busy_server_is_asked_again_a_bounded_number_of_times_and_never_for_a_call() {
    for (code, after) in [(429, "0"), (503, "0"), (503, "Wed, 21 Oct 2015 07:28:00 GMT")] {
        let status = code.to_string();
        let flags = ["--http-status", &status, "--http-retry-after", after];
        let fixture = Fixture::start(&[&["--http-on", "tools/list"], &flags[..]].concat());
        let mut server = Server::connect(&fixture.fields()).await.unwrap();
        let error = server.ask("tools/list", json!({})).await.unwrap_err();
        assert!(matches!(error, LinkError::Status { status, .. } if status == code), "{error:?}");
        assert_eq!(fixture.seen("tools/list"), 3, "{after}");
        error_of_a_call(&flags).await;
    }
}

#[tokio::test]
async fn r34_a_connection_that_ends_is_not_asked_again() {
    let error = error_of_a_call(&["--http-drop"]).await;
    assert!(matches!(error, LinkError::Broken(_)), "{error:?}");
}

#[tokio::test]
async fn r38_whatever_is_no_answer_is_an_error_at_once() {
    for (flags, expected) in [
        (&["--http-status", "202"][..], "HTTP status 202"),
        (&["--http-status", "204"], "HTTP status 204"),
        (&["--http-status", "200"], "empty"),
        (&["--http-body", "", "--http-content-type", "text/plain"], "empty"),
        (&["--http-body", "<html>canary</html>", "--http-content-type", "text/html; charset=utf-8"], "`text/html`"),
        (&["--http-body", "{}", "--http-content-type", "canary/canary"], "another content type"),
        (&["--http-body", "<html>canary</html>"], "does not answer"),
        (&["--http-body", "{\"jsonrpc\":\"2.0\",\"id\":2,\"result\":{\"canary\""], "does not answer"),
        (&["--http-body", "{\"jsonrpc\":\"2.0\",\"id\":77,\"result\":{}}"], "does not answer"),
        (&["--http-body", "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/tools/list_changed\"}"], "does not answer"),
        (&["--http-body", "[]"], "does not answer"),
        (&["--http-encoding", "gzip"], "compressed"),
    ] {
        let error = error_of_a_call(flags).await;
        let LinkError::NotMcp { what, .. } = &error else { panic!("{flags:?}: {error:?}") };
        assert!(what.contains(expected), "{flags:?}: {what}");
    }
}

#[tokio::test]
async fn r38_a_handshake_that_fails_says_why() {
    for (on, flags) in [
        ("initialize", &["--http-body", "<html>", "--http-content-type", "text/html"][..]),
        ("initialize", &["--http-status", "202"]),
        ("initialize", &["--http-sse", "--http-truncate"]),
        ("notifications/initialized", &["--http-status", "500"]),
    ] {
        let fixture = Fixture::start(&[&["--http-on", on], flags].concat());
        let error = Server::connect(&fixture.fields()).await.map(|_| ()).unwrap_err();
        let expected = match &error {
            LinkError::NotMcp { .. } => on == "initialize",
            LinkError::Broken(_) => flags.contains(&"--http-truncate"),
            LinkError::Status { status: 500, .. } => on == "notifications/initialized",
            _ => false,
        };
        assert!(expected, "{on} {flags:?}: {error:?}");
        assert_eq!(fixture.seen(on), 1);
    }
}

#[tokio::test]
async fn r37_a_stream_that_ends_before_the_answer_is_the_error_of_its_call() {
    let error = error_of_a_call(&["--http-sse", "--http-truncate"]).await;
    assert!(matches!(error, LinkError::Broken(_)), "{error:?}");
    assert!(everything(&error).contains("ended before the answer"));
}

#[tokio::test]
async fn r37_a_stream_with_ids_is_resumed_or_fails_and_no_call_is_repeated() {
    let cut = ["--http-on", "tools/call", "--http-sse", "--http-event-ids", "--http-truncate"];
    let fixture = Fixture::start(&[&cut[..], &["--http-resume"]].concat());
    let mut server = Server::connect(&fixture.fields()).await.unwrap();
    assert_eq!(server.say("x").await.unwrap(), "x");
    assert_eq!((fixture.seen("tools/call"), fixture.seen("GET")), (1, 2), "one stream of its own, one resumed");

    let fixture = Fixture::start(&cut);
    let mut server = Server::connect(&fixture.fields()).await.unwrap();
    let error = server.call("echo", json!({"text": "x"})).await.unwrap_err();
    assert!(matches!(error, LinkError::Broken(_)), "{error:?}");
    assert_eq!(fixture.seen("tools/call"), 1);
}

#[tokio::test]
async fn s59_what_is_too_large_is_the_error_of_its_call() {
    let at = LIMIT.to_string();
    for flags in [
        &["--http-sse", "--big-result", &at][..],
        &["--big-result", &at],
        &["--http-sse", "--http-big-event", &at],
        &["--http-sse", "--http-event-ids", "--http-big-event", &at],
    ] {
        let fixture = Fixture::start(&[&["--http-on", "tools/call"], flags].concat());
        let mut server = Server::connect(&fixture.fields()).await.unwrap();
        let error = server.call("big", json!({})).await.unwrap_err();
        assert!(matches!(error, LinkError::TooLarge { limit: LIMIT }), "{flags:?}: {error:?}");
        assert_eq!(fixture.seen("tools/call"), 1);
        assert_eq!(server.ask("ping", json!({})).await.unwrap(), json!({}));
    }
    let fixture = Fixture::start(&["--big-result", &(LIMIT - 200).to_string()]);
    let mut server = Server::connect(&fixture.fields()).await.unwrap();
    assert!(server.call("big", json!({})).await.is_ok());
}

#[tokio::test]
async fn r29_a_challenge_is_handed_on_once_and_an_error_in_words_of_mcp_is_an_answer() {
    let challenge = r#"Bearer resource_metadata="https://x/", scope="read write""#;
    for (code, challenged) in [(401, true), (403, true), (401, false)] {
        let mut flags = vec!["--http-status".to_owned(), code.to_string()];
        if challenged {
            flags.extend(["--http-challenge".to_owned(), challenge.to_owned()]);
        }
        let flags: Vec<_> = flags.iter().map(String::as_str).collect();
        let error = error_of_a_call(&flags).await;
        let LinkError::AuthorizationRequired { status, challenge: found, scope } = error else { panic!("{error:?}") };
        assert_eq!((status, found.as_str()), (code, if challenged { challenge } else { "" }));
        assert_eq!(scope.as_deref(), challenged.then_some("read write"));
    }
    let body = r#"{"jsonrpc":"2.0","id":2,"error":{"code":-32602,"message":"no such tool"}}"#;
    let fixture = Fixture::start(&["--http-on", "tools/call", "--http-status", "400", "--http-body", body]);
    let mut server = Server::connect(&fixture.fields()).await.unwrap();
    assert_eq!(server.call("echo", json!({})).await.unwrap()["code"], -32602);
}

#[tokio::test]
async fn r31_a_forgotten_session_is_an_error_and_the_call_is_not_repeated() {
    let fixture = Fixture::start(&["--http-session", "--http-forget"]);
    let mut server = Server::connect(&fixture.fields()).await.unwrap();
    let error = server.say("x").await.unwrap_err();
    assert!(matches!(error, LinkError::SessionExpired), "{error:?}");
    assert_eq!((fixture.seen("tools/call"), fixture.seen("initialize")), (1, 1));
}

#[tokio::test]
async fn r32_a_server_without_a_stream_of_its_own_works() {
    let fixture = Fixture::start(&["--http-session"]);
    let mut server = Server::connect(&fixture.fields()).await.unwrap();
    assert_eq!(server.say("x").await.unwrap(), "x");
}

#[tokio::test]
async fn a_session_is_ended_once_by_whoever_closes_first() {
    let fixture = Fixture::start(&["--http-session", "--http-get"]);
    let server = Server::connect(&fixture.fields()).await.unwrap();
    server.client.wire().close().await;
    server.keeper.close(SOON).await;
    server.keeper.close(SOON).await;
    assert_eq!(fixture.seen("DELETE"), 1);

    // The handshake failed: the wire is dropped, and the keeper is all that is left.
    let fixture = Fixture::start(&["--http-session", "--http-on", "notifications/initialized", "--http-status", "500"]);
    let Server { mut client, keeper } = Server::open(&fixture.fields()).await;
    client.initialize().await.unwrap_err();
    drop(client);
    keeper.close(SOON).await;
    assert_eq!(fixture.seen("DELETE"), 1);
}

#[tokio::test]
async fn a_wire_that_is_closed_while_a_server_is_silent_ends_its_requests() {
    for on in ["initialize", "tools/call"] {
        let fixture = Fixture::start(&["--http-on", on, "--http-silent"]);
        let mut server = Server::open(&fixture.fields()).await;
        let wire = server.client.wire();
        let waiting = tokio::spawn(async move {
            let sent = match on {
                "initialize" => server.client.initialize().await,
                _ => {
                    server.client.initialize().await.unwrap();
                    server.call("echo", json!({})).await.map(drop)
                }
            };
            (sent, server)
        });
        while fixture.seen(on) == 0 {
            tokio::task::yield_now().await;
        }
        tokio::time::timeout(SOON, wire.close()).await.unwrap();
        let (sent, mut server) = tokio::time::timeout(SOON, waiting).await.expect("it ends").unwrap();
        assert!(matches!(sent, Err(LinkError::Closed)), "{sent:?}");
        let again = server.ask("ping", json!({})).await;
        assert!(matches!(again, Err(LinkError::Closed)), "{again:?}");
    }
}

#[tokio::test]
async fn r42_nobody_there_is_an_error_that_names_the_host() {
    let free = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let url = format!("http://{free}/mcp?key=canary-query");
    let error = Server::connect(&json!({"url": url})).await.map(|_| ()).unwrap_err();
    assert_eq!(error.to_string(), format!("`{free}` could not be reached"));
    assert!(!everything(&error).contains("canary"), "{error:?}");
}

#[tokio::test]
async fn r41_what_is_no_tls_is_no_server() {
    let fixture = Fixture::start(&[]);
    let url = format!("https://{}/mcp?key=canary-query", fixture.address);
    let error = Server::connect(&json!({"url": url, "headers": {"A": "${TOKEN}"}})).await.map(|_| ()).unwrap_err();
    assert!(matches!(error, LinkError::Unreachable { .. }), "{error:?}");
    assert!(!everything(&error).contains("canary"), "{error:?}");
    assert_eq!(fixture.seen("initialize"), 0);
}

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
