//! Futures of sessions and gates that are dropped anywhere: nothing is stuck, nothing is sent twice.

use std::{
    collections::HashMap,
    pin::Pin,
    task::{Context, Poll},
    time::Duration,
};

use portcullis::{
    Definition, Fields,
    approval::Answer,
    definition::StoreKey,
    document::ParseOptions,
    futures::FutureExt as _,
    gate::{Choice, ConnectionState, Requested},
    serde_json::json,
    session::{Completed, ListKind, Session, SessionOptions, Waiter},
    store::{How, Mode},
    testing::{FakeServer, IN_PROCESS, Reply, ticket},
    tokio::{runtime::Builder, time::timeout},
};
use portcullis_harness::{Harness, Host, call};
use proptest::prelude::*;

use crate::common::{define, limits};

/// Of the runtime's clock, which stands still while anything is to be done.
const LONG: Duration = Duration::from_secs(120);

/// Does a thing until it was polled `polls` times, and drops it then, or once nothing goes on any more.
async fn dropped_after(polls: usize, thing: impl Future<Output = ()>) {
    struct Counted<F>(F, usize);
    impl<F: Future<Output = ()> + Unpin> Future for Counted<F> {
        type Output = ();

        fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
            if self.1 == 0 {
                return Poll::Ready(());
            }
            self.1 -= 1;
            let done = self.0.poll_unpin(context);
            if self.1 == 0 { Poll::Ready(()) } else { done }
        }
    }
    let mut thing = Box::pin(thing);
    let _ = timeout(Duration::from_millis(50), Counted(thing.as_mut(), polls)).await;
}

const BEGINNING: &str = r#"{"protocolVersion":"2025-11-25","capabilities":{"tools":{"listChanged":true},"resources":{"subscribe":true},"prompts":{},"completions":{},"logging":{}},"serverInfo":{"name":"fake","version":"1.0.0"}}"#;

/// A server that offers everything.
fn server() -> FakeServer {
    let server = FakeServer::new();
    server.on("initialize", |_| Reply::Result(BEGINNING.to_owned()));
    for (method, result) in [
        ("resources/list", r#"{"resources":[]}"#),
        ("resources/read", r#"{"contents":[]}"#),
        ("resources/subscribe", "{}"),
        ("resources/unsubscribe", "{}"),
        ("prompts/list", r#"{"prompts":[]}"#),
        ("prompts/get", r#"{"messages":[]}"#),
        ("completion/complete", r#"{"completion":{"values":[]}}"#),
        ("logging/setLevel", "{}"),
    ] {
        server.on(method, move |_| Reply::Result(result.to_owned()));
    }
    server
}

/// What is done to a gate.
const OF_A_GATE: usize = 27;

async fn do_to_gate(host: &Host, operation: usize, arguments: &str) {
    let gate = host.gate();
    // Whether it succeeds depends on what was done before; here it matters what is left of it.
    let echo = || call("fake", "echo", arguments).unwrap();
    match operation {
        0 | 1 => drop(gate.call(echo()).await),
        2 => drop(gate.request(echo()).await),
        3 => {
            gate.set_mode("fake", Mode::Ask).await.ok();
            if let Ok(Requested::Asked(waiting)) = gate.request(echo()).await {
                let id = waiting.question().id.clone();
                let answered = async {
                    portcullis::tokio::task::yield_now().await;
                    gate.questions().answer(&id, Answer::Always)
                };
                if let (Ok(ticket), _) = portcullis::tokio::join!(gate.answered(waiting), answered) {
                    drop(gate.execute(ticket).await);
                }
            }
        }
        4 => {
            if let Ok(Requested::Allowed(ticket)) = gate.request(echo()).await {
                drop(gate.execute(ticket).await);
            }
        }
        5 => drop(gate.refresh("fake").await),
        6 => drop(gate.connect("fake").await),
        7 => gate.disconnect("fake").await,
        8 => drop(gate.enable("fake").await),
        9 => drop(gate.disable("fake").await),
        10 => drop(host.trust("fake").await),
        11 => drop(gate.untrust("fake").await),
        12 => drop(gate.select("fake", Some(Choice::All), None).await),
        13 => drop(gate.list("fake", ListKind::Resources).await),
        14 => drop(gate.list("fake", ListKind::Prompts).await),
        15 => drop(gate.read("fake", "file:///a").await),
        16 => drop(gate.prompt("fake", "p", None).await),
        17 => drop(gate.complete("fake", Completed::Prompt("p"), "a", "").await),
        18 => drop(gate.ping("fake").await),
        19 => drop(gate.listen("fake", Some("info"), &["file:///a".to_owned()]).await),
        20 => drop(host.import(vec![define("fake", "in-process", &json!({"server": "fake", "args": ["b"]}))]).await),
        21 => drop(gate.probe("fake").await),
        22 => drop(gate.tools("fake").await),
        23 => drop(gate.remove("fake").await),
        24 => {
            for (_, grant) in gate.grants().await.unwrap_or_default() {
                gate.revoke(&grant.id).await.ok();
            }
        }
        25 => drop(host.make_ready("fake").await),
        _ => drop(gate.draft().await),
    }
}

/// Whatever was dropped, the host works, with one server at most, and sent nothing twice.
async fn works(host: &Host, server: &FakeServer, what: &str) {
    let gate = host.gate();
    let text = json!({"mcpServers": {"fake": {"type": "in-process", "server": "fake"}}}).to_string();
    let document = gate.check(text.as_bytes(), &ParseOptions::default()).document.unwrap();
    gate.import(document, How::Merge, None).await.unwrap();
    host.make_ready("fake").await.unwrap();
    gate.set_mode("fake", Mode::Allow).await.unwrap();
    host.call("fake", "echo", r#"{"text":"afterwards"}"#).await.unwrap_or_else(|error| panic!("{what}: {error}"));
    assert_eq!(gate.connection("fake").state, ConnectionState::Connected, "{what}");
    assert!(gate.questions().open().is_empty(), "{what}: a question is left");
    sent_once(server, what);
}

fn sent_once(server: &FakeServer, what: &str) {
    let mut sent = HashMap::new();
    for arguments in server.calls() {
        *sent.entry(arguments).or_insert(0) += 1;
    }
    assert!(sent.values().all(|times| *times == 1), "{what}: {sent:?}");
    assert!(server.peak() <= 1, "{what}: {} ran at one time", server.peak());
}

/// On a clock that moves only when nothing else can.
fn run(test: impl Future<Output = ()>, what: &str) {
    let runtime = Builder::new_current_thread().enable_time().start_paused(true).build().unwrap();
    runtime.block_on(async { timeout(LONG, test).await.unwrap_or_else(|_| panic!("{what}: it is stuck")) });
}

fn silence() -> impl Strategy<Value = &'static str> {
    prop_oneof![4 => Just(""), 1 => Just("initialize"), 1 => Just("tools/list"), 1 => Just("tools/call"), 1 => Just("ping")]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn r45_whatever_of_a_gate_is_dropped_the_next_call_works_and_none_is_doubled(
        plan in prop::collection::vec((0..OF_A_GATE, 0_usize..24, silence()), 1..6),
        closes in prop::option::of(0_usize..6),
    ) {
        let what = format!("{plan:?}, {closes:?}");
        run(async {
            let server = server();
            let host = Harness::new().server("fake", &server).limits(limits()).waits().start().await.unwrap();
            host.make_ready("fake").await.unwrap();
            host.gate().set_mode("fake", Mode::Allow).await.unwrap();
            for (at, (operation, polls, silent)) in plan.into_iter().enumerate() {
                if !silent.is_empty() {
                    server.on(silent, |_| Reply::Nothing);
                }
                dropped_after(polls, do_to_gate(&host, operation, &json!({"text": at.to_string()}).to_string())).await;
                match silent {
                    "initialize" => server.on(silent, |_| Reply::Result(BEGINNING.to_owned())),
                    _ => server.reset(silent),
                }
            }
            works(&host, &server, &what).await;
            if let Some(polls) = closes {
                dropped_after(polls, host.gate().close()).await;
            }
            host.gate().close().await;
            server.until(|server| server.running() == 0).await;
        }, &what);
    }

    #[test]
    fn r45_whatever_of_a_session_is_dropped_the_next_call_works_and_none_is_doubled(
        opening in prop::option::of(0_usize..12),
        plan in prop::collection::vec((0_usize..11, 0_usize..8, any::<bool>()), 1..12),
    ) {
        let what = format!("{opening:?}, {plan:?}");
        run(async {
            let definition = Definition::new("fake", IN_PROCESS.name, Fields::new());
            let fingerprint = definition.fingerprint(&StoreKey::new([7; 32]));
            let server = server();
            let limits = limits();
            let open = || Session::open("fake", fingerprint, server.connect(&limits), SessionOptions::new(&limits, &definition));
            if let Some(polls) = opening {
                dropped_after(polls, async { drop(open().await) }).await;
                server.until(|server| server.running() == 0).await;
            }
            let session = open().await.unwrap();
            for (at, (operation, polls, silent)) in plan.into_iter().enumerate() {
                if silent {
                    server.on("tools/call", |_| Reply::Nothing);
                }
                let waiter = Waiter::default();
                let doing = async {
                    match operation {
                        0..=2 => {
                            let ticket = ticket(&session, "echo", &json!({"text": at.to_string()}).to_string());
                            drop(session.call(ticket).await);
                        }
                        3 => drop(session.refresh().await),
                        4 => drop(session.list(ListKind::Resources).await),
                        5 => drop(session.list(ListKind::Prompts).await),
                        6 => drop(session.read_resource("file:///a", &waiter).await),
                        7 => drop(session.get_prompt("p", None, &waiter).await),
                        8 => drop(session.complete(Completed::Prompt("p"), "a", "").await),
                        9 => drop(session.subscribe("file:///a").await),
                        _ => drop(session.ping().await),
                    }
                };
                dropped_after(polls, doing).await;
                server.reset("tools/call");
            }
            let ticket = ticket(&session, "echo", r#"{"text":"afterwards"}"#);
            let result = session.call(ticket).await.unwrap().done().unwrap();
            assert!(result.get().contains("afterwards"), "{what}: {}", result.get());
            session.refresh().await.unwrap();
            sent_once(&server, &what);
            dropped_after(1, async { drop(session.close().await) }).await;
            session.close().await;
            server.until(|server| server.running() == 0).await;
        }, &what);
    }
}
