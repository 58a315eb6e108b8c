//! What runs, when, and for how long.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use portcullis::{
    document::ParseOptions,
    serde_json::json,
    store::{How, Mode},
    testing::{FakeServer, Reply},
};
use portcullis_harness::{Harness, Host};

use crate::common::{define, limits, within};

async fn ready(server: &FakeServer) -> Host {
    let host = Harness::new().server("fake", server).limits(limits()).start().await.unwrap();
    host.make_ready("fake").await.unwrap();
    host.gate().set_mode("fake", Mode::Allow).await.unwrap();
    host
}

#[tokio::test]
async fn s3_a_document_does_not_vote_on_its_own_trust() {
    let server = FakeServer::new();
    let host = Harness::new().server("fake", &server).start().await.unwrap();
    let fingerprint = host.gate().server("fake").await.unwrap().fingerprint;
    for vote in [
        json!({"trusted": true}),
        json!({"enabled": true}),
        json!({"autoStart": true}),
        json!({"approval": "always"}),
        json!({"fingerprint": fingerprint}),
    ] {
        let mut fields = json!({"type": "in-process", "server": "fake"});
        fields.as_object_mut().unwrap().extend(vote.as_object().cloned().unwrap());
        let text = json!({"mcpServers": {"fake": fields}}).to_string();
        let parsed = host.gate().check(text.as_bytes(), &ParseOptions::default());
        if let Some(document) = parsed.document {
            host.gate().import(document, How::Merge, None).await.unwrap();
        }
        let view = host.gate().server("fake").await.unwrap();
        assert!(!view.trusted && !view.enabled && view.mode == Mode::Ask, "{vote}");
        assert_eq!(host.call("fake", "echo", "{}").await.unwrap_err().code(), "not-trusted");
    }
    assert_eq!(server.started(), 0);
}

#[tokio::test]
async fn s4_s13_nothing_starts_before_it_is_trusted_and_enabled() {
    let server = FakeServer::new();
    let host = Harness::new().server("fake", &server).start().await.unwrap();
    let gate = host.gate();
    assert_eq!(host.call("fake", "echo", "{}").await.unwrap_err().code(), "not-trusted");
    assert_eq!(gate.refresh("fake").await.unwrap_err().code(), "not-trusted");
    assert_eq!(gate.enable("fake").await.unwrap_err().code(), "not-trusted");
    host.trust("fake").await.unwrap();
    assert_eq!(gate.enable("fake").await.unwrap_err().code(), "not-discovered");
    assert_eq!(host.call("fake", "echo", "{}").await.unwrap_err().code(), "not-enabled");
    assert_eq!(server.started(), 0);
    gate.refresh("fake").await.unwrap();
    assert_eq!((server.started(), server.running()), (1, 0), "a server that is not enabled is ended again");
    gate.enable("fake").await.unwrap();
    assert_eq!(host.call("fake", "echo", "{}").await.unwrap_err().code(), "tool-not-enabled");
}

#[tokio::test(flavor = "multi_thread")]
async fn s1_s5_what_starts_is_what_was_shown_or_nothing() {
    let (one, two) = (FakeServer::new(), FakeServer::new());
    let host = Harness::new().server("one", &one).server("two", &two).limits(limits()).start().await.unwrap();
    let host = Arc::new(host);
    let definition = |target: &str| define("target", "in-process", &json!({"server": target}));
    host.import(vec![definition("one")]).await.unwrap();
    for round in 0..150 {
        let question = host.gate().trust_question("target").await.unwrap();
        let shown = question.view().target.clone();
        let (hidden, new) = if shown == "one" { (&two, "two") } else { (&one, "one") };
        let before = hidden.started();
        let other = host.another();
        let rewrite = tokio::spawn({
            let definition = definition(new);
            async move {
                for _ in 0..round % 7 {
                    tokio::task::yield_now().await;
                }
                other.import(vec![definition]).await.unwrap();
            }
        });
        if host.gate().trust(question).await.is_ok() {
            let _ = within(host.gate().refresh("target")).await;
        }
        rewrite.await.unwrap();
        assert_eq!(hidden.started(), before, "nobody was shown `{new}`");
        assert!(!host.gate().server("target").await.unwrap().trusted);
    }
    // Undisturbed, the very same steps start it.
    let question = host.gate().trust_question("target").await.unwrap();
    let shown = if question.view().target == "one" { &one } else { &two };
    let before = shown.started();
    host.gate().trust(question).await.unwrap();
    within(host.gate().refresh("target")).await.unwrap();
    assert_eq!(shown.started(), before + 1);
}

#[tokio::test]
async fn a10_what_another_host_decides_ends_the_server_here() {
    for change in ["edit", "remove", "untrust", "disable"] {
        let server = FakeServer::new();
        let host = ready(&server).await;
        host.call("fake", "echo", "{}").await.unwrap();
        assert_eq!(server.running(), 1);
        let other = host.another();
        match change {
            "edit" => {
                let edited = define("fake", "in-process", &json!({"server": "fake", "args": ["x"]}));
                other.import(vec![edited]).await.unwrap();
            }
            "remove" => other.gate().remove("fake").await.unwrap(),
            "untrust" => other.gate().untrust("fake").await.unwrap(),
            _ => other.gate().disable("fake").await.unwrap(),
        }
        within(server.until(|server| server.running() == 0)).await;
    }
}

#[tokio::test]
async fn a10_what_this_host_decides_ends_the_server_at_once() {
    for change in ["edit", "remove", "untrust", "disable"] {
        let server = FakeServer::new();
        let host = ready(&server).await;
        host.call("fake", "echo", "{}").await.unwrap();
        match change {
            "edit" => {
                let edited = define("fake", "in-process", &json!({"server": "fake", "args": ["x"]}));
                host.import(vec![edited]).await.unwrap();
            }
            "remove" => host.gate().remove("fake").await.unwrap(),
            "untrust" => host.gate().untrust("fake").await.unwrap(),
            _ => host.gate().disable("fake").await.unwrap(),
        }
        assert_eq!(server.running(), 0, "{change}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a11_many_who_need_a_server_start_it_once() {
    let server = FakeServer::new();
    let host = Arc::new(ready(&server).await);
    let before = server.started();
    let calls: Vec<_> = (0..20)
        .map(|_| {
            let host = host.clone();
            tokio::spawn(async move { host.call("fake", "echo", "{}").await })
        })
        .collect();
    for call in calls {
        within(call).await.unwrap().unwrap();
    }
    assert_eq!((server.started() - before, server.peak(), server.calls().len()), (1, 1, 20));
}

#[tokio::test(flavor = "multi_thread")]
async fn r28_any_order_of_operations_runs_one_server_at_most() {
    let server = FakeServer::new();
    let host = Arc::new(ready(&server).await);
    let tasks: Vec<_> = (0..8_usize)
        .map(|task| {
            let host = host.clone();
            tokio::spawn(async move {
                let mut random = 0x9e37_79b9_7f4a_7c15_u64.wrapping_mul(task as u64 + 1);
                for _ in 0..40 {
                    random ^= random << 13;
                    random ^= random >> 7;
                    random ^= random << 17;
                    // Any of them may be refused by what another task did.
                    let _ = match random % 8 {
                        0 => host.gate().disable("fake").await,
                        1 => host.gate().enable("fake").await,
                        2 => host.gate().refresh("fake").await,
                        3 => {
                            let fields = json!({"server": "fake", "args": [((random >> 8) % 2).to_string()]});
                            host.import(vec![define("fake", "in-process", &fields)]).await
                        }
                        4 | 5 => host.make_ready("fake").await,
                        _ => tokio::time::timeout(Duration::from_millis(random % 20), host.call("fake", "echo", "{}"))
                            .await
                            .map_or(Ok(()), |result| result.map(drop)),
                    };
                }
            })
        })
        .collect();
    for task in tasks {
        tokio::time::timeout(Duration::from_secs(60), task).await.unwrap().unwrap();
    }
    within(host.gate().close()).await;
    assert_eq!(server.peak(), 1);
    within(server.until(|server| server.running() == 0)).await;
}

#[tokio::test]
async fn r50_closing_ends_whatever_goes_on() {
    for state in ["starting", "listing", "calling", "stuck"] {
        let server = FakeServer::new();
        let host = ready(&server).await;
        match state {
            "starting" => server.on("initialize", |_| Reply::Nothing),
            "listing" => server.on("tools/list", |_| Reply::Nothing),
            "calling" => server.on("tools/call", |_| Reply::Nothing),
            _ => server.on("tools/call", |_| Reply::StopReading),
        }
        let before = server.received().len();
        let begun = Instant::now();
        let (result, ()) = within(async {
            tokio::join!(host.call("fake", "echo", "{}"), async {
                server
                    .until(|server| server.received().len() >= before + 1 + usize::from(state != "starting") * 2)
                    .await;
                host.gate().close().await;
            })
        })
        .await;
        result.unwrap_err();
        assert!(begun.elapsed() < Duration::from_secs(5), "{state}: {:?}", begun.elapsed());
        within(server.until(|server| server.running() == 0)).await;
        assert_eq!(host.gate().refresh("fake").await.unwrap_err().code(), "closed");
    }
}

#[tokio::test]
async fn a_start_under_way_gives_up_when_the_server_is_removed() {
    let server = FakeServer::new();
    let host = ready(&server).await;
    server.on("initialize", |_| Reply::Nothing);
    let before = server.started();
    let (result, removed) = within(async {
        tokio::join!(host.call("fake", "echo", "{}"), async {
            server.until(|server| server.started() > before).await;
            host.gate().remove("fake").await
        })
    })
    .await;
    removed.unwrap();
    assert_eq!(result.unwrap_err().code(), "stopped");
    within(server.until(|server| server.running() == 0)).await;
}

#[tokio::test]
async fn listing_the_servers_does_not_wait_for_a_start() {
    let server = FakeServer::new();
    let host = ready(&server).await;
    server.on("initialize", |_| Reply::Nothing);
    let before = server.started();
    tokio::select! {
        _ = host.call("fake", "echo", "{}") => panic!("it never starts"),
        () = async {
            server.until(|server| server.started() > before).await;
            assert!(!within(host.gate().server("fake")).await.unwrap().running);
        } => {}
    }
    within(server.until(|server| server.running() == 0)).await;
}

#[tokio::test]
async fn a_list_that_fails_leaves_the_tools_to_be_listed_again() {
    let server = FakeServer::new();
    let host = ready(&server).await;
    host.call("fake", "echo", "{}").await.unwrap();
    server.on("tools/list", |_| Reply::Error(-1, "not now".to_owned()));
    server.list_changed();
    while host.call("fake", "echo", "{}").await.is_ok() {}
    let error = host.call("fake", "echo", "{}").await.unwrap_err();
    assert_eq!(error.code(), "rpc", "tools that may have changed are not called: {error}");
    server.reset("tools/list");
    host.call("fake", "echo", "{}").await.unwrap();
}

#[tokio::test]
async fn a_tool_that_cannot_be_offered_is_named_with_the_reason() {
    let server = FakeServer::new();
    server.set_tools([r#"{"name":"good","inputSchema":{}}"#, r#"{"name":"bad","inputSchema":5}"#]);
    let host = Harness::new().server("fake", &server).start().await.unwrap();
    host.trust("fake").await.unwrap();
    host.gate().refresh("fake").await.unwrap();
    let (tools, refused) = host.gate().tools("fake").await.unwrap();
    assert_eq!((tools.len(), refused.len()), (1, 1));
    assert_eq!(refused[0].name.as_deref(), Some("bad"));
}

#[tokio::test]
async fn a_call_that_nobody_waits_for_is_cancelled() {
    let server = FakeServer::new();
    let host = ready(&server).await;
    server.on("tools/call", |_| Reply::Nothing);
    tokio::select! {
        _ = host.call("fake", "echo", "{}") => panic!("it never answers"),
        () = server.until(|server| !server.calls().is_empty()) => {}
    }
    within(server.until(|server| server.received().iter().any(|line| line.contains("notifications/cancelled")))).await;
}
