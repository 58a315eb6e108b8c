//! Real processes: of servers, and of other programs on the same store.

use std::{
    io::{BufRead as _, BufReader},
    path::Path,
    process::{Child, Command, Stdio},
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    time::Duration,
};

use portcullis::{
    Definition, Gate, GateParts, Limits, Registry,
    approval::Grants,
    audit::AuditMemory,
    document::Document,
    gate::{Choice, Requested},
    secret::Secrets,
    serde_json::{Value, json},
    session::{Lifecycle, Refusing},
    store::{FileStore, How, Mode},
    testing::ScriptedApprover,
    tokio,
    transport::OpenContext,
};
use portcullis_harness::{Harness, call};

use crate::common::{Fixture, eventually, limits, within};

/// A gate on a store on disk, as any host has one.
fn gate(folder: &Path) -> Gate {
    let store = Arc::new(FileStore::open(folder));
    let stdio = &portcullis_transports::stdio::KIND;
    Gate::new(GateParts {
        registry: Registry::default()
            .with(stdio, (stdio.build)())
            .with_policy("server-mode", 10, Arc::new(portcullis::approval::ServerMode))
            .with_policy("grant", 20, Arc::new(Grants)),
        store: store.clone(),
        cache: store,
        approver: Arc::new(ScriptedApprover::default()),
        audit: Arc::new(AuditMemory::default()),
        secrets: Secrets::default(),
        context: OpenContext { surroundings: portcullis::reference::Surroundings::default(), limits: limits() },
        host: "test".to_owned(),
        name_style: portcullis::names::NameStyle::default(),
        handler: Arc::new(Refusing),
        lifecycle: Lifecycle::default(),
    })
}

async fn import(gate: &Gate, definition: Definition) {
    let document = Document { servers: vec![definition], inputs: Vec::new() };
    gate.import(document, How::Merge, None).await.unwrap();
}

async fn make_ready(gate: &Gate, server: &str) -> Result<(), portcullis::GateError> {
    let question = gate.trust_question(server).await?;
    gate.trust(question).await?;
    gate.refresh(server).await?;
    gate.select(server, Some(Choice::All), None).await?;
    gate.enable(server).await?;
    gate.set_mode(server, Mode::Allow).await
}

/// Another program that rewrites the server `target`.
fn rewriter(folder: &Path, times: usize, definitions: &[&Definition]) -> Child {
    let texts = definitions.iter().map(|definition| Value::Object(definition.fields().clone()).to_string());
    let mut child = Command::new(env!("CARGO_BIN_EXE_rewrite-store"))
        .arg(folder)
        .arg(times.to_string())
        .args(texts)
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut line = String::new();
    BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
    assert_eq!(line.trim(), "begins");
    child
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn s1_s5_a_thousand_rewrites_by_another_process_start_nothing_that_was_not_shown() {
    const REWRITES: usize = 1_000;
    let (one, two) = (Fixture::new(&[]), Fixture::new(&[]));
    let definitions = [one.definition("target"), two.definition("target")];
    let folder = tempfile::tempdir().unwrap();
    let gate = gate(folder.path());
    import(&gate, definitions[0].clone()).await;
    let mut other = rewriter(folder.path(), REWRITES, &[&definitions[1], &definitions[0]]);
    let starts = || [one.lines("started").len(), two.lines("started").len()];
    let (mut attempts, mut refused) = (0, 0);
    loop {
        let over = other.try_wait().unwrap().is_some();
        let before = starts();
        let question = gate.trust_question("target").await.unwrap();
        let shown = usize::from(
            question.view().arguments.iter().any(|argument| argument.starts_with(&two.path("").display().to_string())),
        );
        let started = match gate.trust(question).await {
            Ok(()) => within(gate.refresh("target")).await.is_ok(),
            Err(_) => false,
        };
        attempts += 1;
        refused += usize::from(!started);
        let after = starts();
        assert_eq!(after[1 - shown], before[1 - shown], "attempt {attempts}: what was not shown was started");
        if over {
            // Undisturbed, the very same steps start it.
            assert!(started && after[shown] == before[shown] + 1);
            break;
        }
    }
    assert!(other.wait().unwrap().success());
    assert!(refused > 0, "{attempts} attempts and no rewrite came in between");
    within(gate.close()).await;
    assert_eq!((one.alive(), two.alive()), (0, 0));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a10_another_process_that_changes_a_server_ends_its_process_here() {
    let fixture = Fixture::new(&["--grandchild"]);
    let definition = fixture.definition("target");
    let changed = Fixture::new(&[]).definition("target");
    let folder = tempfile::tempdir().unwrap();
    let gate = gate(folder.path());
    import(&gate, definition).await;
    make_ready(&gate, "target").await.unwrap();
    within(gate.call(call("target", "echo", "{}").unwrap())).await.unwrap();
    assert_eq!(fixture.alive(), 2);
    assert!(rewriter(folder.path(), 1, &[&changed]).wait().unwrap().success());
    eventually("its process ends with everything it started", || fixture.alive() == 0).await;
    let error = within(gate.call(call("target", "echo", "{}").unwrap())).await.unwrap_err();
    assert_eq!(error.code(), "not-trusted");
    within(gate.close()).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn r28_a_thousand_operations_on_eight_tasks_run_one_process_at_most() {
    let fixture = Arc::new(Fixture::new(&[]));
    let folder = tempfile::tempdir().unwrap();
    let gate = gate(folder.path());
    let definition = fixture.definition("target");
    import(&gate, definition.clone()).await;
    make_ready(&gate, "target").await.unwrap();
    let open = || std::fs::read_dir("/proc/self/fd").unwrap().count();
    within(gate.disconnect("target")).await;
    let before = open();
    // Looks all the time how many processes there are.
    let (over, peak) = (Arc::new(AtomicBool::default()), Arc::new(AtomicUsize::default()));
    let looking = std::thread::spawn({
        let (fixture, over, peak) = (fixture.clone(), over.clone(), peak.clone());
        move || {
            while !over.load(Ordering::SeqCst) {
                peak.fetch_max(fixture.alive(), Ordering::SeqCst);
            }
        }
    });
    let tasks: Vec<_> = (0..8_u64)
        .map(|task| {
            let (gate, definition) = (gate.clone(), definition.clone());
            tokio::spawn(async move {
                let mut random = 0x9e37_79b9_7f4a_7c15_u64.wrapping_mul(task + 1);
                for _ in 0..125 {
                    random ^= random << 13;
                    random ^= random >> 7;
                    random ^= random << 17;
                    // Any of them may be refused by what another task did.
                    let _ = match random % 10 {
                        0 => gate.disable("target").await,
                        1 => gate.connect("target").await,
                        2 => gate.refresh("target").await,
                        3 => {
                            let mut fields = definition.fields().clone();
                            fields.insert("env".to_owned(), json!({"ROUND": ((random >> 8) % 2).to_string()}));
                            import(&gate, Definition::new("target", "stdio", fields)).await;
                            Ok(())
                        }
                        4 => {
                            gate.disconnect("target").await;
                            Ok(())
                        }
                        5 | 6 => make_ready(&gate, "target").await,
                        _ => {
                            let called = gate.call(call("target", "echo", "{}").unwrap());
                            let called = tokio::time::timeout(Duration::from_millis(random % 40), called).await;
                            called.map_or(Ok(()), |result| result.map(drop))
                        }
                    };
                }
            })
        })
        .collect();
    for task in tasks {
        tokio::time::timeout(Duration::from_secs(90), task).await.unwrap().unwrap();
    }
    within(gate.disconnect("target")).await;
    eventually("what was open is closed", || open() <= before).await;
    within(gate.close()).await;
    eventually("no process is left", || fixture.alive() == 0).await;
    over.store(true, Ordering::SeqCst);
    looking.join().unwrap();
    assert_eq!(peak.load(Ordering::SeqCst), 1);
    assert!(fixture.lines("started").len() > 20, "{}", fixture.lines("started").len());
}

/// Sends `signal` to the process of the fixture that lives.
fn signal(fixture: &Fixture, signal: &str) {
    let ids = fixture.lines("pids").into_iter().map(|line| line.rsplit(' ').next().unwrap().to_owned());
    let heard = ids.filter(|id| Command::new("kill").args([signal, id]).status().unwrap().success());
    assert_eq!(heard.count(), 1);
}

#[tokio::test]
async fn r21_a_call_of_a_stopped_server_ends_in_time_and_the_server_can_be_ended() {
    let fixture = Fixture::new(&[]);
    let host = fixture.ready(Limits { idle: Duration::from_millis(500), ..limits() }).await;
    within(host.call("fixture", "echo", "{}")).await.unwrap();
    let once = fixture.lines("pids").len();
    signal(&fixture, "-STOP");
    let error = within(host.call("fixture", "echo", "{}")).await.unwrap_err();
    assert_eq!(error.code(), "timeout", "{error}");
    signal(&fixture, "-CONT");
    within(host.call("fixture", "echo", "{}")).await.unwrap();
    signal(&fixture, "-STOP");
    within(host.gate().disconnect("fixture")).await;
    assert_eq!(fixture.alive(), 0);
    assert_eq!(fixture.lines("pids").len(), once, "it was ended once and started no more");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn r22_a_result_of_a_hundred_megabytes_is_refused_and_other_servers_go_on() {
    let (large, small) = (Fixture::new(&["--big-result", "100000000"]), Fixture::new(&[]));
    let host = Harness::new()
        .transport(&portcullis_transports::stdio::KIND)
        .define(large.definition("large"))
        .define(small.definition("small"))
        .limits(limits())
        .start()
        .await
        .unwrap();
    for server in ["large", "small"] {
        host.make_ready(server).await.unwrap();
        host.gate().set_mode(server, Mode::Allow).await.unwrap();
        within(host.call(server, "echo", "{}")).await.unwrap();
    }
    let over = AtomicBool::default();
    let too_large = async {
        let error = within(host.call("large", "big", "{}")).await.unwrap_err();
        over.store(true, Ordering::SeqCst);
        error
    };
    let others = async {
        let mut calls = 0;
        while !over.load(Ordering::SeqCst) {
            within(host.call("small", "echo", "{}")).await.unwrap();
            calls += 1;
        }
        calls
    };
    let (error, calls) = tokio::join!(too_large, others);
    assert_eq!(error.code(), "too-large", "{error}");
    assert!(calls > 0);
    assert_eq!(small.lines("started").len(), 2, "one start for the list, one for the calls");
    within(host.call("small", "echo", "{}")).await.unwrap();
}

#[tokio::test]
async fn s22_two_hundred_questions_are_answered_one_by_one_or_denied_together() {
    const QUESTIONS: usize = 200;
    let fixture = Fixture::new(&[]);
    let host = fixture.host(limits()).await;
    host.make_ready("fixture").await.unwrap();
    let gate = host.gate();
    let mut waiting = Vec::new();
    for number in 0..QUESTIONS {
        // The last two are identical.
        let arguments = format!(r#"{{"text":"{}"}}"#, number.min(QUESTIONS - 2));
        let Requested::Asked(asked) = within(gate.request(call("fixture", "echo", &arguments).unwrap())).await.unwrap()
        else {
            panic!("nobody allowed it")
        };
        waiting.push(asked);
    }
    let open = gate.questions().open();
    assert_eq!(open.len(), QUESTIONS);
    gate.questions().answer(&open[QUESTIONS - 1].id, portcullis::approval::Answer::Once).unwrap();
    assert_eq!(gate.questions().open().len(), QUESTIONS - 1, "its twin still waits");
    assert_eq!(gate.questions().deny_all(), QUESTIONS - 1);
    let mut tickets = Vec::new();
    for asked in waiting {
        tickets.extend(within(gate.answered(asked)).await);
    }
    assert_eq!(tickets.len(), 1);
    for ticket in tickets {
        within(gate.execute(ticket)).await.unwrap();
    }
    assert_eq!(fixture.lines("calls").len(), 1);
}
