//! What servers do that a session has to survive.

mod hostile;

use std::time::{Duration, Instant};

use portcullis::{
    Limits,
    gate::ErrorClass,
    serde_json::{self, Value},
    store::Mode,
    testing::{FakeServer, RAW_RESULT, Reply},
};
use portcullis_harness::{Harness, Host};

use crate::common::{Fixture, eventually, limits, within};

/// Loose, for a loaded machine; tight enough that no limit of a request can have passed.
const AT_ONCE: Duration = Duration::from_secs(3);

async fn ready(server: &FakeServer, limits: Limits) -> Host {
    let host = Harness::new().server("fake", server).limits(limits).start().await.unwrap();
    host.make_ready("fake").await.unwrap();
    host.gate().set_mode("fake", Mode::Allow).await.unwrap();
    host
}

fn idle(time: u64) -> Limits {
    Limits { idle: Duration::from_millis(time), ..limits() }
}

#[tokio::test]
async fn r9_silence_at_initialize_ends_in_time_and_names_the_server() {
    let fixture = Fixture::new(&["--silent", "--grandchild", "--daemon"]);
    let host = fixture.host(Limits { start: Duration::from_millis(700), ..limits() }).await;
    host.trust("fixture").await.unwrap();
    let error = within(host.gate().refresh("fixture")).await.unwrap_err();
    let text = error.to_string();
    assert!(text.contains("`fixture`") && text.contains("`initialize`") && text.contains("0.7 s"), "{text}");
    assert_eq!(error.class(), ErrorClass::Unreachable);
    assert_eq!((fixture.alive(), fixture.lines("pids").is_empty()), (0, false));
}

#[tokio::test]
async fn r10_an_answer_that_never_comes_is_cancelled_and_dropped_when_late() {
    let server = FakeServer::new();
    let host = ready(&server, idle(300)).await;
    server.on("tools/call", |_| Reply::Nothing);
    let error = within(host.call("fake", "echo", "{}")).await.unwrap_err();
    assert_eq!(error.code(), "timeout");
    within(server.until(|server| server.received().iter().any(|line| line.contains("notifications/cancelled")))).await;
    let received: Vec<Value> = server.received().iter().map(|line| serde_json::from_str(line).unwrap()).collect();
    let of = |method: &str| received.iter().find(|message| message["method"] == method).unwrap().clone();
    let id = of("tools/call")["id"].clone();
    assert_eq!(of("notifications/cancelled")["params"]["requestId"], id);
    server.say(&format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{{"content":[],"late":true}}}}"#));
    server.reset("tools/call");
    let result = within(host.call("fake", "raw", "{}")).await.unwrap();
    assert_eq!(result.get(), RAW_RESULT);
    assert_eq!(server.started(), 2, "one start for the list, one for the calls");
}

#[tokio::test]
async fn r11_progress_for_ever_ends_at_the_absolute_limit() {
    let fixture = Fixture::new(&["--progress-forever"]);
    let host = fixture.ready(Limits { absolute: Duration::from_millis(1500), ..idle(700) }).await;
    let error = within(host.call("fixture", "echo", "{}")).await.unwrap_err();
    assert!(error.to_string().contains("1.5 s altogether"), "{error}");
    eventually("the server is told", || {
        fixture.lines("received").iter().any(|line| line.contains("notifications/cancelled"))
    })
    .await;
}

#[tokio::test]
async fn r12_a_server_that_closes_its_output_and_lives_on_is_ended() {
    let server = FakeServer::new();
    let host = ready(&server, limits()).await;
    server.on("tools/call", |_| Reply::CloseOutput);
    let begun = Instant::now();
    let error = within(host.call("fake", "echo", "{}")).await.unwrap_err();
    assert!(begun.elapsed() < AT_ONCE, "{:?}", begun.elapsed());
    assert_eq!(error.code(), "offline");
    within(server.until(|server| server.running() == 0)).await;

    let fixture = Fixture::new(&["--close-stdout"]);
    let host = fixture.host(limits()).await;
    host.trust("fixture").await.unwrap();
    let begun = Instant::now();
    within(host.gate().refresh("fixture")).await.unwrap_err();
    assert!(begun.elapsed() < AT_ONCE, "{:?}", begun.elapsed());
    assert_eq!(fixture.alive(), 0);
}

#[tokio::test]
async fn r13_a_server_that_stops_reading_blocks_nobody() {
    let server = FakeServer::new();
    let host = ready(&server, idle(400)).await;
    server.on("tools/call", |_| Reply::StopReading);
    let large = format!(r#"{{"text":"{}"}}"#, "x".repeat(200_000));
    let [one, two, three] = ["{}", &large, &large].map(|arguments| host.call("fake", "echo", arguments));
    let (one, two, three) = within(async { tokio::join!(one, two, three) }).await;
    for result in [one, two, three] {
        assert_eq!(result.unwrap_err().code(), "timeout");
    }
    let begun = Instant::now();
    within(host.gate().close()).await;
    assert!(begun.elapsed() < Duration::from_secs(5), "{:?}", begun.elapsed());
    assert_eq!(server.running(), 0);

    let fixture = Fixture::new(&["--stop-reading", "--ignore-term"]);
    let host = fixture.host(Limits { start: Duration::from_millis(700), ..limits() }).await;
    host.trust("fixture").await.unwrap();
    within(host.gate().refresh("fixture")).await.unwrap_err();
    assert_eq!(fixture.alive(), 0);
}

#[tokio::test]
async fn r14_r23_good_messages_arrive_however_they_are_written() {
    for flags in [
        &["--banner"][..],
        &["--crlf"],
        &["--two-per-write"],
        &["--bytewise"],
        &["--bad-utf8"],
        &["--wrong-ids", "--duplicate-answers"],
        &["--banner", "--crlf", "--two-per-write", "--bytewise", "--bad-utf8", "--wrong-ids", "--duplicate-answers"],
    ] {
        let fixture = Fixture::new(flags);
        let host = fixture.ready(limits()).await;
        for _ in 0..2 {
            let result = within(host.call("fixture", "raw", "{}")).await.unwrap();
            assert_eq!(result.get(), RAW_RESULT, "{flags:?}");
        }
        let result = within(host.call("fixture", "echo", r#"{"text":"last"}"#)).await.unwrap();
        assert!(result.get().contains("last"), "{flags:?}: {}", result.get());
        host.gate().close().await;
        assert_eq!(fixture.alive(), 0);
    }
}

#[tokio::test]
async fn r16_an_end_in_the_middle_of_a_call_is_told_and_the_call_is_not_sent_again() {
    let fixture = Fixture::new(&["--crash-on-call", "7"]);
    let host = fixture.ready(limits()).await;
    let begun = Instant::now();
    let error = within(host.call("fixture", "echo", "{}")).await.unwrap_err();
    assert!(begun.elapsed() < AT_ONCE, "{:?}", begun.elapsed());
    let text = error.to_string();
    assert!(text.contains("exit status 7") && text.contains("crashing on purpose"), "{text}");
    assert_eq!((error.code(), fixture.lines("calls").len(), fixture.alive()), ("offline", 1, 0));
    within(host.call("fixture", "echo", "{}")).await.unwrap_err();
    assert_eq!(fixture.lines("calls").len(), 2, "a call of its own, with a start of its own");
}

#[tokio::test]
async fn r23_r38_an_answer_that_cannot_be_read_fails_its_own_call_at_once() {
    let server = FakeServer::new();
    let host = ready(&server, limits()).await;
    for line in [
        &b"{\"jsonrpc\":\"2.0\",\"id\":{id},\"result\":{\"content\":\"\xff\"}}"[..],
        b"{\"jsonrpc\":\"2.0\",\"id\":{id},\"id\":{id},\"result\":{\"content\":[]}}",
        b"{\"jsonrpc\":\"2.0\",\"result\":{\"content\":[}],\"id\":{id}}",
        b"{\"jsonrpc\":\"2.0\",\"id\":{id}}",
        b"{\"jsonrpc\":\"2.0\",\"id\":{id},\"result\":null}",
    ] {
        server.on("tools/call", move |_| Reply::Lines(vec![line.to_vec()]));
        let begun = Instant::now();
        let error = within(host.call("fake", "echo", "{}")).await.unwrap_err();
        assert_eq!(error.code(), "protocol", "{}: {error}", String::from_utf8_lossy(line));
        assert!(begun.elapsed() < AT_ONCE);
    }
    server.reset("tools/call");
    within(host.call("fake", "echo", "{}")).await.unwrap();
    assert_eq!(server.started(), 2);
}

#[tokio::test]
async fn s58_r22_a_message_of_the_cap_passes_and_one_byte_more_is_an_error() {
    const CAP: usize = 8 << 10;
    let server = FakeServer::new();
    let other = FakeServer::new();
    let limits = Limits { message_bytes: CAP, ..limits() };
    let host = Harness::new().server("fake", &server).server("other", &other).limits(limits).start().await.unwrap();
    for name in ["fake", "other"] {
        host.make_ready(name).await.unwrap();
        host.gate().set_mode(name, Mode::Allow).await.unwrap();
    }
    let line = |length: usize| {
        move |request: &portcullis::testing::Request| {
            // Both ids that the test uses have one digit.
            let rest = br#"{"jsonrpc":"2.0","id":1,"result":{"content":[],"x":""}}"#.len();
            assert!(!request.params.is_empty());
            let text = format!(
                r#"{{"jsonrpc":"2.0","id":{{id}},"result":{{"content":[],"x":"{}"}}}}"#,
                "x".repeat(length - rest)
            );
            Reply::Lines(vec![text.into_bytes()])
        }
    };
    server.on("tools/call", line(CAP));
    within(host.call("fake", "echo", "{}")).await.unwrap();
    // One that waits beside it is told the same.
    server.on("tools/call", |_| Reply::Nothing);
    let (beside, too_large) = within(async {
        tokio::join!(host.call("fake", "echo", "{}"), async {
            server.until(|server| server.calls().len() == 2).await;
            server.on("tools/call", line(CAP + 1));
            host.call("fake", "echo", "{}").await
        })
    })
    .await;
    for error in [beside.unwrap_err(), too_large.unwrap_err()] {
        assert_eq!((error.code(), error.class()), ("too-large", ErrorClass::Unreachable), "{error}");
    }
    within(host.call("other", "echo", "{}")).await.unwrap();
}

#[tokio::test]
async fn s30_what_was_not_offered_is_not_found() {
    let fixture = Fixture::new(&["--requests"]);
    let host = fixture.ready(limits()).await;
    within(host.call("fixture", "echo", r#"{"text":"x"}"#)).await.unwrap();
    let answers = || -> Vec<Value> {
        let lines = fixture.lines("calls").into_iter();
        lines.map(|line| serde_json::from_str(&line).unwrap()).filter(|line: &Value| line.get("id").is_some()).collect()
    };
    eventually("all three are answered, in both runs", || answers().len() >= 6).await;
    for answer in answers() {
        assert_eq!(answer["error"]["code"], -32601, "{answer}");
    }
    assert!(host.approver().asked().is_empty());
}

#[tokio::test]
async fn r17_a_server_that_crashes_is_started_once_for_each_call_and_never_by_itself() {
    let server = FakeServer::new();
    let host = ready(&server, limits()).await;
    server.forget();
    for (method, code) in [("initialize", "not-started"), ("tools/call", "offline")] {
        server.on(method, |_| Reply::Crash(1));
        for calls in 1..=5 {
            let error = within(host.call("fake", "echo", "{}")).await.unwrap_err();
            assert_eq!(error.code(), code, "{method}: {error}");
            assert_eq!((server.started(), server.peak()), (calls, 1), "{method}");
        }
        within(server.until(|server| server.running() == 0)).await;
        server.reset(method);
        server.forget();
    }
}

#[tokio::test]
async fn r24_a_storm_of_changes_is_listed_as_often_as_somebody_calls() {
    const CALLS: usize = 3;
    let server = FakeServer::new();
    let host = ready(&server, limits()).await;
    within(host.call("fake", "echo", "{}")).await.unwrap();
    let before = server.requests("tools/list").len();
    for _ in 0..10_000 {
        server.list_changed();
    }
    for _ in 0..CALLS {
        within(host.call("fake", "raw", "{}")).await.unwrap();
    }
    let lists = server.requests("tools/list").len() - before;
    // While it lasts: before a call is decided, and again before it is sent.
    assert!((1..=2 * CALLS).contains(&lists), "{lists} lists");
}

#[tokio::test]
async fn r25_requests_that_a_server_may_not_make_are_refused_and_bounded() {
    let server = FakeServer::new();
    let host = ready(&server, limits()).await;
    within(host.call("fake", "echo", "{}")).await.unwrap();
    for number in 0..10_000 {
        server.say(&format!(r#"{{"jsonrpc":"2.0","id":"s{number}","method":"tools/call","params":{{}}}}"#));
    }
    server.say(&format!(r#"{{"jsonrpc":"2.0","id":"{}","method":"ping"}}"#, "x".repeat(300)));
    server.say(r#"{"jsonrpc":"2.0","id":{"no":"id"},"method":"ping"}"#);
    within(host.call("fake", "echo", r#"{"text":"still there"}"#)).await.unwrap();
    let answers = || -> Vec<Value> {
        let lines = server.received().into_iter().map(|line| serde_json::from_str(&line).unwrap());
        lines.filter(|line: &Value| line["id"].is_string()).collect()
    };
    within(server.until(|_| !answers().is_empty())).await;
    for answer in answers() {
        assert_eq!(answer["error"]["code"], -32601, "{answer}");
    }
}

#[tokio::test]
async fn r18_r50_a_process_that_ignores_every_request_to_end_is_gone_in_time() {
    let fixture = Fixture::new(&["--ignore-term", "--grandchild", "--daemon", "--hang-on-call"]);
    let host = fixture.ready(Limits { stop_grace: Duration::from_secs(1), ..limits() }).await;
    let (call, took) = within(async {
        tokio::join!(host.call("fixture", "echo", "{}"), async {
            eventually("the call has arrived", || !fixture.lines("calls").is_empty()).await;
            let begun = Instant::now();
            host.gate().close().await;
            begun.elapsed()
        })
    })
    .await;
    call.unwrap_err();
    assert!(took < Duration::from_secs(5), "{took:?}");
    assert_eq!(fixture.alive(), 0);
}

#[tokio::test]
async fn r35_slow_headers_slow_bodies_and_silence_end_at_the_limit_of_the_start() {
    use portcullis::tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
    for (what, head) in [
        ("silence", ""),
        ("slow headers", "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nX-Long: "),
        ("a slow body", "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 100000\r\n\r\n{"),
        ("slow events", "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\ndata: "),
    ] {
        let listener = portcullis::tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}/mcp", listener.local_addr().unwrap());
        let server = tokio::spawn(async move {
            loop {
                let (mut stream, _) = listener.accept().await.unwrap();
                tokio::spawn(async move {
                    let _ = stream.read(&mut [0; 4096]).await;
                    let _ = stream.write_all(head.as_bytes()).await;
                    // A byte now and then, or nothing, for ever.
                    loop {
                        tokio::time::sleep(Duration::from_millis(50)).await;
                        if !head.is_empty() && stream.write_all(b" ").await.is_err() {
                            return;
                        }
                    }
                });
            }
        });
        let host = Harness::new()
            .transport(&portcullis_transports::streamable_http::KIND)
            .define(crate::common::define("slow", "streamable-http", &serde_json::json!({"url": url})))
            .limits(Limits { start: Duration::from_millis(700), ..limits() })
            .start()
            .await
            .unwrap();
        host.trust("slow").await.unwrap();
        let begun = Instant::now();
        let error = within(host.gate().refresh("slow")).await.unwrap_err();
        assert!(begun.elapsed() < AT_ONCE, "{what}: {:?}", begun.elapsed());
        assert!(error.to_string().contains("`slow`") && error.to_string().contains("0.7 s"), "{what}: {error}");
        assert_eq!(error.class(), ErrorClass::Unreachable, "{what}");
        server.abort();
    }
}
