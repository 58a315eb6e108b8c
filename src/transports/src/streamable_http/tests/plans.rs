//! What is planned and sent, and what is refused before.

use super::*;

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
