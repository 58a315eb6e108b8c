//! What servers do that a session has to survive.

use std::time::{Duration, Instant};

use portcullis::{
    Limits,
    gate::ErrorClass,
    serde_json::{self, Value},
    store::Mode,
    testing::{FakeServer, RAW_RESULT, Reply},
};
use portcullis_harness::{Harness, Host};
use proptest::prelude::*;

use crate::common::{Fixture, PATIENCE, eventually, limits, within};

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
async fn s12_errors_carry_no_escape_sequences() {
    let bad = "\u{1b}]52;c;x\u{7}\u{9b}31m\r\u{202e}evil";
    let server = FakeServer::new();
    let host = ready(&server, limits()).await;
    let message = bad.to_owned();
    server.on("tools/call", move |_| Reply::Error(-1, message.clone()));
    let mut errors = vec![within(host.call("fake", "echo", "{}")).await.unwrap_err()];
    errors.push(host.call(bad, "echo", "{}").await.unwrap_err());
    errors.push(host.call("fake", bad, "{}").await.unwrap_err());
    host.gate().close().await;

    let message = bad.to_owned();
    server.on("initialize", move |_| Reply::Error(-1, message.clone()));
    let host = Harness::new().server("fake", &server).start().await.unwrap();
    host.trust("fake").await.unwrap();
    errors.push(host.gate().refresh("fake").await.unwrap_err());
    for error in errors {
        let text = format!("{error} {}", error.help().unwrap_or_default());
        assert!(!text.chars().any(|c| c != '\n' && c.is_control() || c == '\u{202e}'), "{text:?}");
    }
}

#[tokio::test]
async fn s28_lists_without_end_stop_with_an_error_that_names_the_server() {
    let page = |tools: &str, next: &str| Reply::Result(format!(r#"{{"tools":[{tools}],"nextCursor":{next}}}"#));
    let many: Vec<_> = (0..60).map(|n| format!(r#"{{"name":"t{n}","inputSchema":{{}}}}"#)).collect();
    let many = many.join(",");
    for (what, kind) in [
        ("a page that leads back", 0),
        ("a page that leads back", 1),
        ("more than 5 pages", 2),
        ("more than 50 tools", 3),
        ("a page that leads back", 4),
    ] {
        let server = FakeServer::new();
        let count = std::sync::atomic::AtomicUsize::new(0);
        let many = many.clone();
        server.on("tools/list", move |_| {
            let n = count.fetch_add(1, std::sync::atomic::Ordering::SeqCst);
            match kind {
                0 => page("", r#""same""#),
                1 => page("", if n.is_multiple_of(2) { r#""a""# } else { r#""b""# }),
                2 => page("", &format!(r#""cursor-{n}""#)),
                3 => Reply::Result(format!(r#"{{"tools":[{many}]}}"#)),
                _ => page("", r#""""#),
            }
        });
        let limits = Limits { pages: 5, items: 50, ..limits() };
        let host = Harness::new().server("lists", &server).limits(limits).start().await.unwrap();
        host.trust("lists").await.unwrap();
        let error = within(host.gate().refresh("lists")).await.unwrap_err().to_string();
        assert!(error.contains("`lists`") && error.contains(what), "{error}");
        if kind == 4 {
            let lists = server.requests("tools/list");
            assert_eq!(lists.len(), 2);
            assert!(lists[1].params.contains(r#""cursor":"""#), "an empty cursor is sent back once");
        }
        within(server.until(|server| server.running() == 0)).await;
    }
}

/// JSON texts that a reader in between would write otherwise.
fn json() -> impl Strategy<Value = String> {
    let number = prop_oneof![
        Just("-0".to_owned()),
        Just("1e400".to_owned()),
        Just("1.0".to_owned()),
        any::<f64>().prop_filter("finite", |n| n.is_finite()).prop_map(|n| format!("{n:e}")),
        any::<u128>().prop_map(|n| n.to_string()),
        any::<i64>().prop_map(|n| n.to_string()),
    ];
    let text = prop_oneof![
        any::<String>().prop_map(|text| serde_json::to_string(&text).unwrap()),
        Just(r#""\u00e9e\u0301\ud83d\ude00\/""#.to_owned()),
    ];
    let leaf = prop_oneof![number, text, Just("null".to_owned()), Just("true".to_owned())];
    leaf.prop_recursive(6, 40, 5, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..5).prop_map(|items| format!("[ {} ]", items.join(" ,"))),
            object(inner),
        ]
    })
}

fn object(value: impl Strategy<Value = String>) -> impl Strategy<Value = String> {
    prop::collection::btree_map("[a-zA-Z_ é\"]{0,6}", value, 0..5).prop_map(|members| {
        let member = |(name, value): (String, String)| format!("{} :{value}", serde_json::to_string(&name).unwrap());
        format!("{{{}}}", members.into_iter().rev().map(member).collect::<Vec<_>>().join(", "))
    })
}

#[test]
fn s15_the_bytes_that_arrive_are_the_bytes_that_were_approved() {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let server = FakeServer::new();
    let host = runtime.block_on(ready(&server, limits()));
    proptest!(ProptestConfig { cases: 200, failure_persistence: None, ..ProptestConfig::default() }, |(arguments in object(json()))| {
        let result = runtime.block_on(async { tokio::time::timeout(PATIENCE, host.call("fake", "echo", &arguments)).await });
        prop_assert!(result.is_ok_and(|result| result.is_ok()));
        prop_assert_eq!(server.calls().pop(), Some(arguments));
    });
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
async fn s27_a_tool_with_a_schema_that_leads_elsewhere_is_refused_and_the_others_work() {
    let elsewhere = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    elsewhere.set_nonblocking(true).unwrap();
    let address = elsewhere.local_addr().unwrap();
    let server = FakeServer::new();
    let tool = |name: &str, schema: &str| format!(r#"{{"name":"{name}","inputSchema":{{}},"outputSchema":{schema}}}"#);
    let properties: Vec<_> = (0..100_000).map(|n| format!(r#""p{n}":{{}}"#)).collect();
    let tools = [
        tool("good", r#"{"type":"object","properties":{"n":{"type":"integer"}},"required":["n"]}"#),
        tool("outside", &format!(r#"{{"properties":{{"a":{{"$ref":"http://{address}/a.json"}}}}}}"#)),
        tool("deep", &format!("{}{}", r#"{"not":"#.repeat(120) + "{}", "}".repeat(120))),
        tool("wide", &format!(r#"{{"properties":{{{}}}}}"#, properties.join(","))),
        tool("round", r##"{"$ref":"#/$defs/a","$defs":{"a":{"$ref":"#/$defs/a"}}}"##),
        tool("pattern", r#"{"properties":{"t":{"pattern":"^(?=(a+)+$)(a|aa)+$"}}}"#),
    ];
    server.set_tools(tools.iter().map(String::as_str));
    let host = ready(&server, limits()).await;
    for (result, expected) in [
        (r#"{"content":[],"structuredContent":{"n":1}}"#, Ok(())),
        (r#"{"content":[],"isError":true}"#, Ok(())),
        (r#"{"content":[]}"#, Err("it has no `structuredContent`")),
        (r#"{"structuredContent":{"n":"canary"}}"#, Err("`structuredContent` at `/n` does not fit `type`")),
    ] {
        server.on("tools/call", move |_| Reply::Result(result.to_owned()));
        match (within(host.call("fake", "good", "{}")).await, expected) {
            (Ok(seen), Ok(())) => assert_eq!(seen.get(), result),
            (Err(error), Err(words)) => assert_eq!(
                error.to_string(),
                format!(
                    "call of `good` on `fake` failed: the tool ran, and its result does not keep to its `outputSchema`: {words}"
                )
            ),
            (seen, _) => panic!("{result}: {seen:?}"),
        }
    }
    let letters = "a".repeat(5_000);
    server.on("tools/call", move |_| Reply::Result(format!(r#"{{"structuredContent":{{"t":"{letters}!"}}}}"#)));
    let calls = server.calls().len();
    for name in ["outside", "wide"] {
        let begun = Instant::now();
        let error = within(host.call("fake", name, "{}")).await.unwrap_err();
        assert!(begun.elapsed() < Duration::from_secs(1), "{name}");
        assert_eq!(error.class(), ErrorClass::Unknown, "{error}");
    }
    assert_eq!(server.calls().len(), calls, "nothing of them was sent");
    let begun = Instant::now();
    for name in ["deep", "round", "pattern"] {
        let _ = within(host.call("fake", name, "{}")).await;
    }
    assert!(begun.elapsed() < Duration::from_secs(2));
    let (_, refused) = host.gate().tools("fake").await.unwrap();
    let reasons: Vec<_> = refused.iter().map(|refused| refused.reason.as_str()).collect();
    assert_eq!(reasons.len(), 2, "{reasons:?}");
    assert!(reasons[0].contains("is not fetched") && reasons[1].contains("more than 262144"), "{reasons:?}");
    assert!(elsewhere.accept().is_err(), "somebody asked for the schema");
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
