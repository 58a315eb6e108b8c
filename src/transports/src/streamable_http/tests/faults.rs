//! Servers that fail, lie or are silent.

use super::*;

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
