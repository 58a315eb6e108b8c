//! Where connections stand, and when servers run.

use std::time::Duration;

use portcullis::{
    Limits,
    approval::Answer,
    gate::{ConnectionEvent, ConnectionState, Requested},
    store::Mode,
    testing::{FakeServer, Reply},
    tokio::sync::broadcast::Receiver,
};
use portcullis_harness::{Harness, Host};

use crate::common::{limits, within};

async fn host(server: &FakeServer, limits: Limits) -> Host {
    let host = Harness::new().server("fake", server).limits(limits).start().await.unwrap();
    host.make_ready("fake").await.unwrap();
    host.gate().set_mode("fake", Mode::Allow).await.unwrap();
    host
}

async fn next(events: &mut Receiver<ConnectionEvent>) -> (ConnectionState, u64) {
    let event = within(events.recv()).await.unwrap();
    assert_eq!(event.server, "fake");
    (event.connection.state, event.connection.attempt)
}

#[tokio::test]
async fn d2_every_change_of_a_connection_is_told_in_order() {
    use ConnectionState::{Connected, Connecting, Disconnected, Error};
    let server = FakeServer::new();
    let host = host(&server, limits()).await;
    let gate = host.gate();
    let attempt = gate.connection("fake").attempt;
    let mut events = gate.connection_events();
    within(gate.connect("fake")).await.unwrap();
    assert_eq!(next(&mut events).await, (Connecting, attempt + 1));
    assert_eq!(next(&mut events).await, (Connected, attempt + 1));
    within(gate.disconnect("fake")).await;
    assert_eq!(next(&mut events).await, (Disconnected, attempt + 1));
    assert_eq!(gate.connection("fake").last_error, None);

    // One that ends by itself is an error with what it left behind, until it works again.
    within(gate.connect("fake")).await.unwrap();
    server.on("tools/call", |_| Reply::Crash(3));
    within(host.call("fake", "echo", "{}")).await.unwrap_err();
    for expected in [(Connecting, attempt + 2), (Connected, attempt + 2), (Error, attempt + 2)] {
        assert_eq!(next(&mut events).await, expected);
    }
    let error = gate.connection("fake").last_error.unwrap();
    assert_eq!(error.code, "offline");
    assert!(error.message.contains("exit status 3") && error.help.is_some(), "{error:?}");
    server.reset("tools/call");
    within(host.call("fake", "echo", "{}")).await.unwrap();
    assert_eq!(gate.connection("fake").state, Connected);
    assert_eq!(gate.connection("fake").last_error, None);
}

#[tokio::test]
async fn d2_a_start_that_fails_says_at_which_step_and_what_to_do() {
    for (method, step) in [("initialize", "initialize"), ("tools/list", "list tools")] {
        let server = FakeServer::new();
        let host = host(&server, limits()).await;
        server.on(method, |_| Reply::Crash(1));
        within(host.gate().connect("fake")).await.unwrap_err();
        let connection = host.gate().connection("fake");
        let error = connection.last_error.unwrap();
        assert_eq!((connection.state, error.step.as_deref()), (ConnectionState::Error, Some(step)));
        assert!(error.message.contains("`fake`"), "{error:?}");
    }
}

#[tokio::test]
async fn d2_what_comes_of_an_older_attempt_is_dropped() {
    let server = FakeServer::new();
    let host = host(&server, Limits { start: Duration::from_secs(20), ..limits() }).await;
    let gate = host.gate().clone();
    // The first attempt hangs, is given up by a person, and must not speak over the second.
    server.on("initialize", |_| Reply::Nothing);
    let first = tokio::spawn({
        let gate = gate.clone();
        async move { gate.connect("fake").await }
    });
    within(server.until(|server| !server.requests("initialize").is_empty() && server.running() == 1)).await;
    server.reset("initialize");
    within(gate.disconnect("fake")).await;
    within(gate.connect("fake")).await.unwrap();
    within(first).await.unwrap().unwrap_err();
    let connection = gate.connection("fake");
    assert_eq!((connection.state, connection.last_error), (ConnectionState::Connected, None));
}

#[tokio::test]
async fn a11_a_host_may_start_nothing_by_itself() {
    let server = FakeServer::new();
    let host = host(&server, Limits { start_on_use: false, ..limits() }).await;
    within(host.gate().disconnect("fake")).await;
    let before = server.started();
    let error = within(host.call("fake", "echo", "{}")).await.unwrap_err();
    assert_eq!((error.code(), server.started()), ("not-running", before));
    within(host.gate().connect("fake")).await.unwrap();
    within(host.call("fake", "echo", "{}")).await.unwrap();
    assert_eq!(server.started(), before + 1);
}

#[tokio::test]
async fn a_server_of_which_nobody_wants_anything_is_ended_and_started_again_on_use() {
    let server = FakeServer::new();
    let host = host(&server, Limits { idle_stop: Some(Duration::from_millis(1)), ..limits() }).await;
    within(host.call("fake", "echo", "{}")).await.unwrap();
    within(server.until(|server| server.running() == 0)).await;
    assert_eq!(host.gate().connection("fake").state, ConnectionState::Disconnected);
    within(host.call("fake", "echo", "{}")).await.unwrap();
}

#[tokio::test]
async fn a_server_whose_call_waits_for_a_person_is_kept() {
    let server = FakeServer::new();
    let limits = Limits { idle_stop: Some(Duration::from_millis(1)), ..limits() };
    let host = Harness::new().server("fake", &server).limits(limits).start().await.unwrap();
    host.make_ready("fake").await.unwrap();
    // By hand: the script's person answers at once.
    let call = portcullis_harness::call("fake", "echo", r#"{"text":"x"}"#).unwrap();
    let Requested::Asked(waiting) = within(host.gate().request(call)).await.unwrap() else { panic!("asked") };
    let id = waiting.question().id.clone();
    // Longer than it takes to look for servers that nobody wants.
    let looked = tokio::time::timeout(Duration::from_millis(2_500), server.until(|server| server.running() == 0));
    assert!(looked.await.is_err(), "it was ended under the question");
    host.gate().questions().answer(&id, Answer::Once).unwrap();
    let ticket = within(host.gate().answered(waiting)).await.unwrap();
    within(host.gate().execute(ticket)).await.unwrap();
}

#[tokio::test]
async fn starts_are_bounded_and_one_that_hangs_keeps_nobody_for_ever() {
    const SERVERS: usize = 12;
    let servers: Vec<_> = (0..SERVERS).map(|_| FakeServer::new()).collect();
    let limits = Limits { parallel_starts: 3, start: Duration::from_millis(300), ..limits() };
    let mut harness = Harness::new().limits(limits);
    for (at, server) in servers.iter().enumerate() {
        harness = harness.server(&format!("fake-{at}"), server);
        if at % 4 == 0 {
            server.on("initialize", |_| Reply::Nothing);
        }
    }
    let host = harness.start().await.unwrap();
    for at in 0..SERVERS {
        host.trust(&format!("fake-{at}")).await.unwrap();
    }
    let connecting = |host: &Host| {
        (0..SERVERS)
            .filter(|at| {
                servers[*at].running() == 1
                    && host.gate().connection(&format!("fake-{at}")).state == ConnectionState::Connecting
            })
            .count()
    };
    let starts = futures(&host, SERVERS);
    let mut most = 0;
    let watching = async {
        loop {
            most = most.max(connecting(&host));
            tokio::task::yield_now().await;
        }
    };
    let results = tokio::select! {
        results = within(starts) => results,
        () = watching => unreachable!(),
    };
    assert!(most <= 3, "{most}");
    let failed: Vec<_> = results.iter().enumerate().filter(|(_, ok)| !**ok).map(|(at, _)| at).collect();
    assert_eq!(failed, [0, 4, 8], "healthy ones start beside those that hang");
}

async fn futures(host: &Host, count: usize) -> Vec<bool> {
    let starts = (0..count).map(|at| {
        let gate = host.gate().clone();
        tokio::spawn(async move { gate.refresh(&format!("fake-{at}")).await.is_ok() })
    });
    let mut results = Vec::new();
    for start in starts.collect::<Vec<_>>() {
        results.push(start.await.unwrap());
    }
    results
}

#[tokio::test]
async fn r24_changed_tools_are_listed_by_themselves_and_told_once() {
    let server = FakeServer::new();
    let host = host(&server, limits()).await;
    let gate = host.gate();
    within(gate.connect("fake")).await.unwrap();
    let mut events = gate.connection_events();
    let lists = || server.requests("tools/list").len();
    let tools = |description: &str| {
        [
            format!(r#"{{"name":"echo","description":"{description}","inputSchema":{{}}}}"#),
            r#"{"name":"raw","inputSchema":{}}"#.to_owned(),
        ]
    };
    for (round, description) in (1..).zip(["one", "two"]) {
        let before = lists();
        server.set_tools(tools(description).iter().map(String::as_str));
        for _ in 0..1_000 {
            server.list_changed();
        }
        let event = within(events.recv()).await.unwrap();
        assert_eq!((event.connection.state, event.connection.tool_changes), (ConnectionState::Connected, round));
        assert!((1..=3).contains(&(lists() - before)), "{} lists", lists() - before);
        let error = within(host.call("fake", "echo", "{}")).await.unwrap_err();
        assert_eq!(error.code(), "tool-changed");
        // The same list again is listed, and nothing to tell.
        let before = lists();
        server.list_changed();
        within(server.until(|server| server.requests("tools/list").len() > before)).await;
    }
    assert!(events.try_recv().is_err());
}
