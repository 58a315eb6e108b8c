//! Twenty servers with faults, for a while: nothing of the host grows.

#![allow(clippy::print_stdout, reason = "whoever runs it by hand reads the numbers")]

use std::{
    fs,
    io::{BufRead as _, BufReader},
    path::Path,
    process::{Child, Command, Stdio},
    sync::Arc,
    time::{Duration, Instant},
};

use portcullis::{
    Definition, Gate, GateParts, Limits, Registry,
    approval::{Grants, ServerMode},
    audit::{AUDIT_BYTES, AUDIT_FILES, AuditFile},
    document::Document,
    gate::Choice,
    names::NameStyle,
    reference::Surroundings,
    secret::Secrets,
    serde_json::json,
    session::{Lifecycle, Refusing},
    store::{How, MemoryStore, Mode},
    testing::ScriptedApprover,
    tokio::{self, runtime::Handle, time::timeout},
    transport::OpenContext,
};
use portcullis_harness::call;

use crate::common::define;

/// Another length than the one of `.ci/run`.
const SECONDS: &str = "PORTCULLIS_SOAK_SECONDS";
const USUAL: u64 = 60;

/// What each server does wrong, over its standard streams.
const LOCAL: [&[&str]; 12] = [
    &[],
    &["--crash-on-call", "3"],
    &["--hang-on-call"],
    &["--stderr-flood", "4000000"],
    &["--wrong-ids", "--duplicate-answers"],
    &["--big-result", "3000000"],
    &["--notify-flood", "10000"],
    &["--banner", "--bad-utf8", "--crlf"],
    &["--grandchild", "--ignore-term"],
    &["--requests", "--progress-forever"],
    &["--exit", "3"],
    &["--silent"],
];
/// And over HTTP.
const REMOTE: [&[&str]; 8] = [
    &[],
    &["--http-sse", "--http-event-ids"],
    &["--http-on", "tools/call", "--http-drop"],
    &["--http-on", "tools/call", "--http-silent"],
    &["--http-sse", "--http-on", "tools/call", "--http-truncate"],
    &["--http-session", "--http-forget"],
    &["--http-on", "tools/call", "--http-status", "503"],
    &["--big-result", "3000000", "--wrong-ids"],
];

/// A server that is reached over HTTP.
struct Remote(Child, Definition);

impl Remote {
    fn start(name: &str, flags: &[&str]) -> Self {
        let mut command = Command::new(portcullis_fixtures::server_path());
        let mut child = command.arg("--http").args(flags).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let url = format!("http://{}/mcp", line.trim_end().strip_prefix("listening on ").unwrap());
        Self(child, define(name, "streamable-http", &json!({ "url": url })))
    }
}

impl Drop for Remote {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// A gate whose trail is a file, as any host's.
fn gate(trail: &Path) -> Gate {
    let store = Arc::new(MemoryStore::new().unwrap());
    let (stdio, http) = (&portcullis_transports::stdio::KIND, &portcullis_transports::streamable_http::KIND);
    let second = Duration::from_secs(1);
    let limits = Limits {
        start: second * 3,
        idle: second / 2,
        absolute: second,
        stop_grace: second / 10,
        message_bytes: 1 << 20,
        ..Limits::default()
    };
    Gate::new(GateParts {
        registry: Registry::default()
            .with(stdio, (stdio.build)())
            .with(http, (http.build)())
            .with_policy("server-mode", 10, Arc::new(ServerMode))
            .with_policy("grant", 20, Arc::new(Grants)),
        store: store.clone(),
        cache: store,
        approver: Arc::new(ScriptedApprover::default()),
        audit: Arc::new(AuditFile::new(trail)),
        secrets: Secrets::default(),
        context: OpenContext { surroundings: Surroundings::default(), limits },
        host: "soak".to_owned(),
        name_style: NameStyle::default(),
        handler: Arc::new(Refusing),
        lifecycle: Lifecycle::default(),
    })
}

async fn make_ready(gate: &Gate, server: &str) -> Result<(), portcullis::GateError> {
    gate.trust(gate.trust_question(server).await?).await?;
    gate.refresh(server).await?;
    gate.select(server, Some(Choice::All), None).await?;
    gate.enable(server).await?;
    gate.set_mode(server, Mode::Allow).await
}

/// Calls, and everything else that a person may do, over and over; how many calls were answered and failed.
async fn use_it(gate: Gate, server: String, until: Instant) -> (String, usize, usize) {
    // Those that cannot start are tried again all the time, like the others.
    let ready = make_ready(&gate, &server).await;
    if let Err(error) = &ready {
        println!("{server} is never ready: {error}");
    }
    let ready = ready.is_ok();
    let (mut answered, mut failed) = (0, 0);
    for turn in 0_usize.. {
        if Instant::now() > until {
            break;
        }
        let tool = if turn.is_multiple_of(5) { "big" } else { "echo" };
        let calling = gate.call(call(&server, tool, r#"{"text":"soak"}"#).unwrap());
        match turn % 50 {
            // Given up somewhere.
            7 | 23 => drop(timeout(Duration::from_millis(turn as u64 % 13), calling).await),
            11 => gate.disconnect(&server).await,
            31 => drop(gate.refresh(&server).await),
            37 => drop(gate.ping(&server).await),
            _ if !ready => drop(gate.refresh(&server).await),
            _ => match calling.await {
                Ok(_) => answered += 1,
                Err(_) => failed += 1,
            },
        }
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    (server, answered, failed)
}

/// What a host uses.
#[derive(Debug, Clone, Copy)]
struct Use {
    memory_kib: usize,
    descriptors: usize,
    tasks: usize,
    threads: usize,
    processes: usize,
}

impl Use {
    fn now() -> Self {
        let status = fs::read_to_string("/proc/self/status").unwrap();
        let of = |name: &str| {
            let line = status.lines().find_map(|line| line.strip_prefix(name)).unwrap();
            line.trim_start_matches(':').trim().trim_end_matches(" kB").parse().unwrap()
        };
        Self {
            memory_kib: of("VmRSS"),
            descriptors: fs::read_dir("/proc/self/fd").unwrap().count(),
            tasks: Handle::current().metrics().num_alive_tasks(),
            threads: of("Threads"),
            processes: children(),
        }
    }

    /// The median of each.
    fn usual(uses: &[Self]) -> Self {
        let median = |of: fn(&Self) -> usize| {
            let mut all: Vec<_> = uses.iter().map(of).collect();
            all.sort_unstable();
            all[all.len() / 2]
        };
        Self {
            memory_kib: median(|used| used.memory_kib),
            descriptors: median(|used| used.descriptors),
            tasks: median(|used| used.tasks),
            threads: median(|used| used.threads),
            processes: median(|used| used.processes),
        }
    }
}

fn children() -> usize {
    let lists = fs::read_dir("/proc/self/task").unwrap().flatten();
    lists
        .filter_map(|task| fs::read_to_string(task.path().join("children")).ok())
        .map(|list| list.split_whitespace().count())
        .sum()
}

fn size_of(folder: &Path) -> u64 {
    fs::read_dir(folder).unwrap().flatten().filter_map(|file| Some(file.metadata().ok()?.len())).sum()
}

#[test]
#[ignore = "takes a minute; `.ci/run` runs it, and PORTCULLIS_SOAK_SECONDS makes it longer"]
fn r46_soak_nothing_grows_while_twenty_servers_fail() {
    let seconds = std::env::var(SECONDS).ok().map_or(USUAL, |seconds| seconds.parse().expect("a number of seconds"));
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    runtime.block_on(soak(Duration::from_secs(seconds)));
}

async fn soak(time: Duration) {
    let trail = tempfile::tempdir().unwrap();
    let gate = gate(trail.path());
    let program = portcullis_fixtures::server_path();
    let mut servers: Vec<_> = LOCAL
        .iter()
        .enumerate()
        .map(|(at, flags)| {
            define(&format!("local-{at}"), "stdio", &json!({"command": program, "args": flags, "cwd": trail.path()}))
        })
        .collect();
    let remote: Vec<_> =
        REMOTE.iter().enumerate().map(|(at, flags)| Remote::start(&format!("remote-{at}"), flags)).collect();
    servers.extend(remote.iter().map(|Remote(_, definition)| definition.clone()));
    let names: Vec<_> = servers.iter().map(|server| server.name().to_owned()).collect();
    gate.import(Document { servers, inputs: Vec::new() }, How::Merge, None).await.unwrap();

    let until = Instant::now() + time;
    let using: Vec<_> = names.into_iter().map(|name| tokio::spawn(use_it(gate.clone(), name, until))).collect();
    let mut uses = Vec::new();
    while Instant::now() < until {
        tokio::time::sleep(Duration::from_millis(250)).await;
        uses.push(Use::now());
    }
    let mut calls = 0;
    for using in using {
        let (name, answered, failed) =
            timeout(Duration::from_secs(30), using).await.expect("somebody is stuck").unwrap();
        println!("{name}: {answered} answered, {failed} failed");
        calls += answered + failed;
        if matches!(name.as_str(), "local-0" | "local-4" | "local-6" | "local-7" | "remote-0" | "remote-1") {
            assert!(answered > 0, "`{name}` answered nothing");
        }
    }

    // The first third warms up; what comes is compared with what is left at the end.
    let warm = &uses[uses.len() / 3..];
    let (first, last) = (Use::usual(&warm[..warm.len() / 3]), Use::usual(&warm[warm.len() - warm.len() / 3..]));
    let written = size_of(trail.path());
    println!("{calls} calls in {time:?}\nfirst {first:?}\nlast  {last:?}\ntrail {written} bytes");
    assert!(last.memory_kib < first.memory_kib + first.memory_kib / 10 + 4096, "memory: {first:?} {last:?}");
    assert!(last.descriptors <= first.descriptors + 10, "descriptors: {first:?} {last:?}");
    assert!(last.tasks <= first.tasks + 20, "tasks: {first:?} {last:?}");
    assert!(last.threads <= first.threads + 4, "threads: {first:?} {last:?}");
    assert!(last.processes <= first.processes + 4, "processes: {first:?} {last:?}");
    assert!(written <= AUDIT_BYTES * (AUDIT_FILES as u64 + 1), "the trail has {written} bytes");

    timeout(Duration::from_secs(5), gate.close()).await.expect("closing takes too long");
    let left = children() - remote.len();
    assert!(left <= 1, "{left} processes are left, the watcher among them");
}
