//! What servers say to do harm: in errors, lists, schemas; and that what was approved arrives as it was.

use std::time::{Duration, Instant};

use portcullis::{
    Limits,
    gate::ErrorClass,
    serde_json,
    testing::{FakeServer, Reply},
};
use portcullis_harness::Harness;
use proptest::prelude::*;

use super::ready;
use crate::common::{PATIENCE, limits, within};

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
