//! Trees of real processes.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    time::{Duration, Instant},
};

use portcullis::{
    limits::STDERR_BYTES,
    link::{Exit, Keeper},
};
use rustix::process::{Pid, Signal, kill_process};
use tempfile::TempDir;
use tokio::{
    io::{AsyncBufReadExt, AsyncWriteExt, BufReader},
    process::{ChildStdin, ChildStdout},
    time::{sleep, timeout},
};

use super::{cookie::Host, *};

const GRACE: Duration = Duration::from_millis(300);
/// What "at once" may take on a busy machine.
const SOON: Duration = Duration::from_secs(1);

/// Waits for a condition, and fails if it never comes.
async fn eventually(what: &str, mut reached: impl FnMut() -> bool) {
    let deadline = Instant::now() + Duration::from_secs(10);
    while !reached() {
        assert!(Instant::now() < deadline, "never happened: {what}");
        sleep(Duration::from_millis(2)).await;
    }
}

/// Whether a process exists and is no zombie.
fn lives(id: u32) -> bool {
    let stat = fs::read_to_string(format!("/proc/{id}/stat")).unwrap_or_default();
    stat.rsplit_once(") ").is_some_and(|(_, rest)| !rest.starts_with(['Z', 'X']))
}

fn descriptors() -> usize {
    fs::read_dir("/proc/self/fd").unwrap().count()
}

fn launch(program: PathBuf, arguments: Vec<String>) -> Launch {
    let environment = vec![("PATH".into(), "/usr/bin".into()), ("DECLARED".into(), "1".into())];
    Launch { program, arguments, directory: "/".into(), environment }
}

/// The fixture server, spoken to in plain JSON.
struct Server {
    stdin: Option<ChildStdin>,
    stdout: tokio::io::Lines<BufReader<ChildStdout>>,
    tree: Tree,
    folder: TempDir,
}

impl Server {
    fn start(flags: &[&str]) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let pids = folder.path().join("pids").display().to_string();
        let arguments = ["--pids", &pids].iter().chain(flags).map(ToString::to_string).collect();
        let Started { stdin, stdout, tree } = start(launch(portcullis_fixtures::server_path(), arguments)).unwrap();
        Self { stdin: Some(stdin), stdout: BufReader::new(stdout).lines(), tree, folder }
    }

    /// Started, with the handshake done and `roles` running.
    async fn up(flags: &[&str], roles: &[&str]) -> Self {
        let mut server = Self::start(flags);
        let answer = server.ask(r#"{"jsonrpc":"2.0","id":0,"method":"initialize","params":{}}"#).await;
        assert!(answer.contains("2025-11-25"), "{answer}");
        server.say(r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#).await;
        eventually("its children run", || roles.iter().all(|role| server.ids().contains_key(*role))).await;
        server
    }

    async fn say(&mut self, line: &str) {
        self.stdin.as_mut().unwrap().write_all(format!("{line}\n").as_bytes()).await.unwrap();
    }

    async fn ask(&mut self, line: &str) -> String {
        self.say(line).await;
        timeout(Duration::from_secs(10), self.stdout.next_line()).await.unwrap().unwrap().unwrap()
    }

    async fn call(&mut self, tool: &str) -> String {
        let params = format!(r#"{{"name":"{tool}","arguments":{{}}}}"#);
        self.ask(&format!(r#"{{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{params}}}"#)).await
    }

    /// A text that holds a JSON list of texts.
    async fn names(&mut self, tool: &str) -> Vec<String> {
        let answer: serde_json::Value = serde_json::from_str(&self.call(tool).await).unwrap();
        serde_json::from_str(answer["result"]["content"][0]["text"].as_str().unwrap()).unwrap()
    }

    fn ids(&self) -> BTreeMap<String, u32> {
        let text = fs::read_to_string(self.folder.path().join("pids")).unwrap_or_default();
        let ids = text.lines().filter_map(|line| line.split_once(' '));
        ids.map(|(role, id)| (role.to_owned(), id.parse().unwrap())).collect()
    }

    fn nothing_is_left(&self) {
        let left: Vec<_> = self.ids().into_iter().filter(|(_, id)| lives(*id)).collect();
        assert!(left.is_empty(), "{left:?}");
        let own = table::start_time(self.tree.id());
        assert_eq!(own, None, "the leader was not reaped");
    }

    async fn close(&mut self) -> Exit {
        self.stdin.take();
        self.tree.close(GRACE).await
    }
}

const FAMILY: &[&str] = &["--grandchild", "--daemon", "--grandchild-keeps-stdout"];
const ROLES: &[&str] = &["server", "grandchild", "daemon", "keeper"];

#[tokio::test]
async fn r19_nothing_is_left_after_a_clean_stop() {
    let mut server = Server::up(FAMILY, ROLES).await;
    assert_eq!(server.close().await, Exit::Code(0));
    server.nothing_is_left();
    assert_eq!(server.close().await, Exit::Code(0), "closing again says the same");
}

#[tokio::test]
async fn r19_nothing_is_left_after_the_leader_was_killed() {
    let server = Server::up(FAMILY, ROLES).await;
    kill_process(Pid::from_raw(server.tree.id().cast_signed()).unwrap(), Signal::KILL).unwrap();
    assert_eq!(server.tree.ended().await, Exit::Signal(9));
    assert_eq!(server.tree.close(GRACE).await, Exit::Signal(9));
    server.nothing_is_left();
}

#[tokio::test]
async fn r19_nothing_is_left_when_it_is_dropped() {
    // Its streams stay open meanwhile.
    let Server { tree, folder, stdin: _stdin, stdout: _stdout } = Server::up(FAMILY, ROLES).await;
    let text = fs::read_to_string(folder.path().join("pids")).unwrap();
    let ids: Vec<u32> = text.lines().map(|line| line.split_once(' ').unwrap().1.parse().unwrap()).collect();
    let leader = tree.id();
    drop(tree);
    eventually("nothing is left", || !ids.iter().copied().any(lives)).await;
    eventually("the leader is reaped", || table::start_time(leader).is_none()).await;
}

#[test]
fn r19_the_group_goes_with_the_runtime() {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let server = runtime.block_on(Server::up(&["--grandchild", "--ignore-term"], &["server", "grandchild"]));
    runtime.shutdown_background();
    let deadline = Instant::now() + Duration::from_secs(10);
    while server.ids().into_values().any(lives) {
        assert!(Instant::now() < deadline, "{:?}", server.ids());
        std::thread::sleep(Duration::from_millis(2));
    }
}

#[tokio::test]
async fn r18_a_stubborn_server_is_killed_within_its_budget() {
    let mut server = Server::up(&["--ignore-term", "--grandchild"], &["grandchild"]).await;
    let start = Instant::now();
    assert_eq!(server.close().await, Exit::Signal(9));
    assert!(start.elapsed() >= 2 * GRACE && start.elapsed() < 2 * GRACE + SOON, "{:?}", start.elapsed());
    server.nothing_is_left();
}

#[tokio::test]
async fn r18_a_server_that_keeps_its_input_is_asked_politely() {
    let server = Server::up(&[], &[]).await;
    assert_eq!(server.tree.close(GRACE).await, Exit::Signal(15));
    server.nothing_is_left();
}

#[tokio::test]
async fn r18_everybody_who_closes_learns_the_exit() {
    let server = Server::up(&["--ignore-term"], &[]).await;
    let close = || server.tree.close(GRACE);
    let all = tokio::join!(close(), close(), close(), server.tree.ended());
    let killed = Exit::Signal(9);
    assert_eq!(all, (killed, killed, killed, killed));
}

#[tokio::test]
async fn r21_a_stopped_server_can_be_killed() {
    let mut server = Server::up(&["--grandchild"], &["grandchild"]).await;
    for id in server.ids().into_values() {
        kill_process(Pid::from_raw(id.cast_signed()).unwrap(), Signal::STOP).unwrap();
    }
    assert_eq!(server.close().await, Exit::Signal(9));
    server.nothing_is_left();
}

#[tokio::test]
async fn r20_the_end_of_the_server_is_seen_though_its_streams_stay_open() {
    let mut server = Server::up(&["--grandchild-keeps-stdout", "--crash-on-call", "7"], &["keeper"]).await;
    server.say(r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"echo"}}"#).await;
    assert_eq!(timeout(SOON, server.tree.ended()).await, Ok(Exit::Code(7)));
    assert_eq!(server.tree.stderr_tail(), "crashing on purpose\n");
    assert_eq!(server.tree.close(GRACE).await, Exit::Code(7));
    server.nothing_is_left();
}

#[tokio::test]
async fn r12_a_server_that_closes_its_output_lives_until_it_is_closed() {
    let mut server = Server::up(&["--close-stdout", "--ignore-term"], &["server"]).await;
    assert_eq!(timeout(SOON, server.stdout.next_line()).await.unwrap().unwrap(), None);
    assert!(lives(server.tree.id()));
    assert_eq!(server.close().await, Exit::Signal(9));
    server.nothing_is_left();
}

#[tokio::test]
async fn r15_endless_standard_error_is_drained_and_bounded() {
    let mut server = Server::up(&["--stderr-flood", "100000000"], &[]).await;
    assert_eq!(server.tree.stderr_len(), STDERR_BYTES);
    assert_eq!(server.close().await, Exit::Code(0));
    assert_eq!(server.tree.stderr_tail(), "e".repeat(STDERR_BYTES));
}

#[tokio::test]
async fn s8_a_server_has_three_descriptors_and_a_declared_environment() {
    let file = fs::File::open("/etc/passwd").unwrap();
    // Not closed on exec, as if this host had inherited it.
    rustix::io::fcntl_setfd(&file, rustix::io::FdFlags::empty()).unwrap();
    let mut server = Server::up(&[], &[]).await;
    let open: Vec<_> =
        server.names("fds").await.into_iter().map(|line| line.split_once(' ').unwrap().0.to_owned()).collect();
    assert_eq!(open, ["0", "1", "2"]);
    let names: BTreeSet<_> = server.names("env").await.into_iter().collect();
    assert_eq!(names, ["PATH", "DECLARED", cookie::VARIABLE].map(str::to_owned).into());
    server.close().await;
}

#[tokio::test]
async fn r27_a_thousand_failing_starts_leak_nothing() {
    let fail = || start(launch("/nonexistent/program".into(), Vec::new())).unwrap_err().kind();
    assert_eq!(fail(), std::io::ErrorKind::NotFound);
    let before = descriptors();
    for _ in 0..1000 {
        fail();
    }
    assert_eq!(descriptors(), before);
}

#[tokio::test]
async fn r27_hundreds_of_starts_and_stops_leak_nothing() {
    let mut server = Server::up(&[], &[]).await;
    server.close().await;
    drop(server);
    let before = descriptors();
    for round in 0..200 {
        let mut server = Server::start(&["--silent"]);
        match round % 3 {
            0 => assert_eq!(server.close().await, Exit::Code(0)),
            1 => drop(server),
            _ => {
                server.tree.group_now();
                assert_eq!(server.tree.close(GRACE).await, Exit::Signal(9));
            }
        }
    }
    eventually("everything is closed", || descriptors() == before).await;
}

/// A process with a cookie of somebody's, which a test may see ended.
fn stray(host: Host) -> std::process::Child {
    std::process::Command::new(portcullis_fixtures::server_path())
        .args(["--helper", "stray"])
        .env(cookie::VARIABLE, format!("{host}-1"))
        .stdout(Stdio::null())
        .spawn()
        .unwrap()
}

#[tokio::test]
async fn r19_a_sweep_touches_dead_hosts_alone() {
    let mut gone = std::process::Command::new(portcullis_fixtures::server_path())
        .arg("--help")
        .stdout(Stdio::null())
        .spawn()
        .unwrap();
    let dead = Host { id: gone.id(), start: table::start_time(gone.id()).unwrap() };
    gone.wait().unwrap();
    let me = Host::this();
    let recycled = Host { start: me.start.wrapping_sub(1), ..me };
    let (mut orphan, mut foreign, mut own) = (stray(dead), stray(recycled), stray(me));
    for child in [&orphan, &foreign, &own] {
        let path = format!("/proc/{}/environ", child.id());
        let carries = || fs::read(&path).unwrap_or_default().windows(17).any(|part| part == b"PORTCULLIS_COOKIE");
        eventually("it carries its cookie", carries).await;
    }
    sweep();
    assert!(!lives(orphan.id()), "its host is dead");
    assert!(!lives(foreign.id()), "the id of its host belongs to another process now");
    assert!(lives(own.id()), "its host lives");
    own.kill().unwrap();
    for child in [&mut orphan, &mut foreign, &mut own] {
        child.wait().unwrap();
    }
}
