//! What is left of a server when its host ends, in every way a host can end.

#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used, reason = "a test")]

use std::{
    env, fs,
    io::{BufRead, BufReader, Write},
    os::unix::process::CommandExt,
    path::{Path, PathBuf},
    process::{Child, ChildStdout, Command, Stdio},
    thread,
    time::{Duration, Instant},
};

use rustix::process::{Pid, Signal, kill_process};
use tempfile::TempDir;

/// Waits for a condition, and fails if it never comes.
fn eventually(what: &str, mut reached: impl FnMut() -> bool) {
    let deadline = Instant::now() + Duration::from_secs(10);
    while !reached() {
        assert!(Instant::now() < deadline, "never happened: {what}");
        thread::sleep(Duration::from_millis(5));
    }
}

/// Whether a process exists and is no zombie.
fn lives(id: u32) -> bool {
    let stat = fs::read_to_string(format!("/proc/{id}/stat")).unwrap_or_default();
    stat.rsplit_once(") ").is_some_and(|(_, rest)| !rest.starts_with(['Z', 'X']))
}

fn signal(id: u32, signal: Signal) {
    kill_process(Pid::from_raw(id.cast_signed()).unwrap(), signal).unwrap();
}

fn tiny_host() -> PathBuf {
    let test = env::current_exe().unwrap();
    let host = test.parent().and_then(Path::parent).unwrap().join("examples/tiny-host");
    assert!(host.is_file(), "`cargo build -p portcullis-transports --examples` makes `{}`", host.display());
    host
}

/// A host with one server, which has started a child in its group and one that left it.
struct Host {
    process: Child,
    output: BufReader<ChildStdout>,
    folder: TempDir,
}

impl Host {
    fn start(flags: &[&str]) -> Self {
        Self::run(Command::new(tiny_host()), flags)
    }

    fn run(mut command: Command, flags: &[&str]) -> Self {
        let folder = tempfile::tempdir().unwrap();
        command
            .arg(portcullis_fixtures::server_path())
            .args(["--grandchild", "--daemon", "--pids"])
            .arg(folder.path().join("pids"))
            .args(flags)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null());
        let mut process = command.spawn().unwrap();
        let output = BufReader::new(process.stdout.take().unwrap());
        let mut host = Self { process, output, folder };
        host.is_up();
        eventually("the server and its children run", || host.servers().len() == 3);
        assert!(host.servers().into_iter().all(lives));
        host
    }

    fn is_up(&mut self) {
        let mut line = String::new();
        self.output.read_line(&mut line).unwrap();
        assert_eq!(line, "up\n");
    }

    fn id(&self) -> u32 {
        self.process.id()
    }

    fn servers(&self) -> Vec<u32> {
        let text = fs::read_to_string(self.folder.path().join("pids")).unwrap_or_default();
        text.lines().filter_map(|line| line.split_once(' ')?.1.parse().ok()).collect()
    }

    /// The host's child with the watcher's marker.
    fn watcher(&self) -> u32 {
        let children = fs::read_to_string(format!("/proc/{0}/task/{0}/children", self.id())).unwrap();
        let is_watcher = |id: &u32| {
            let line = fs::read(format!("/proc/{id}/cmdline")).unwrap_or_default();
            line.split(|byte| *byte == 0).nth(1) == Some(b"portcullis-process-watcher")
        };
        children.split_whitespace().filter_map(|id| id.parse().ok()).find(is_watcher).unwrap()
    }

    fn order(&mut self, order: &str) {
        writeln!(self.process.stdin.as_mut().unwrap(), "{order}").unwrap();
    }

    /// Waits for the host's end, and for nothing to be left.
    fn nothing_is_left(mut self, watcher: u32) {
        self.process.wait().unwrap();
        let all: Vec<_> = self.servers().into_iter().chain([watcher]).collect();
        eventually("nothing is left", || !all.iter().copied().any(lives));
    }
}

impl Drop for Host {
    /// Also where a test failed.
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

#[test]
fn r19_nothing_is_left_of_a_killed_host() {
    let host = Host::start(&[]);
    let watcher = host.watcher();
    signal(host.id(), Signal::KILL);
    host.nothing_is_left(watcher);
}

#[test]
fn r19_nothing_is_left_of_a_terminated_host_with_a_stubborn_server() {
    let host = Host::start(&["--ignore-term", "--stop-reading"]);
    let watcher = host.watcher();
    signal(host.id(), Signal::TERM);
    host.nothing_is_left(watcher);
}

#[test]
fn r19_nothing_is_left_of_a_host_that_panicked() {
    let mut host = Host::start(&[]);
    let watcher = host.watcher();
    host.order("panic");
    host.nothing_is_left(watcher);
}

#[test]
fn r19_nothing_is_left_of_a_host_that_just_left() {
    let mut host = Host::start(&["--ignore-term"]);
    let watcher = host.watcher();
    host.order("leave");
    host.nothing_is_left(watcher);
}

#[test]
fn r19_nothing_is_left_of_a_host_that_ended_in_order() {
    let mut host = Host::start(&[]);
    let watcher = host.watcher();
    host.order("quit");
    host.nothing_is_left(watcher);
}

#[test]
fn r19_the_watcher_outlives_polite_signals() {
    let host = Host::start(&[]);
    let watcher = host.watcher();
    let caught = || {
        let status = fs::read_to_string(format!("/proc/{watcher}/status")).unwrap();
        let mask = status.lines().find_map(|line| line.strip_prefix("SigCgt:")).unwrap().trim();
        u64::from_str_radix(mask, 16).unwrap() & (1 << (15 - 1)) != 0
    };
    eventually("the watcher is ready", caught);
    for polite in [Signal::TERM, Signal::INT, Signal::HUP] {
        signal(watcher, polite);
    }
    signal(host.id(), Signal::KILL);
    host.nothing_is_left(watcher);
}

#[test]
fn r19_a_watcher_that_was_killed_is_replaced_at_the_next_start() {
    let mut host = Host::start(&[]);
    let first = host.watcher();
    signal(first, Signal::KILL);
    eventually("the watcher is dead", || !lives(first));
    host.order("again");
    host.is_up();
    eventually("two servers and their children run", || host.servers().len() == 6);
    let second = host.watcher();
    assert_ne!(first, second);
    signal(host.id(), Signal::KILL);
    host.nothing_is_left(second);
}

#[test]
fn r19_a_host_that_is_a_server_of_another_leaves_nothing_either() {
    let mut outer = Command::new(tiny_host());
    outer.arg(tiny_host());
    let host = Host::run(outer, &["--ignore-term"]);
    let watcher = host.watcher();
    signal(host.id(), Signal::KILL);
    host.nothing_is_left(watcher);
}

#[test]
fn r27_too_many_files_is_said() {
    let said = (8..24).filter(|limit| {
        let mut shell = Command::new("sh");
        let script = format!("ulimit -n {limit}; exec \"$@\"");
        shell.args(["-c", &script, "sh"]).arg(tiny_host()).arg(portcullis_fixtures::server_path());
        let output = shell.stdin(Stdio::null()).output().unwrap();
        let errors = String::from_utf8_lossy(&output.stderr);
        errors.contains("Start {") && errors.contains("code: 24")
    });
    assert!(said.count() > 0);
}

#[test]
fn r19_the_watcher_is_out_of_reach_of_the_hosts_terminal() {
    let host = Host::start(&[]);
    let watcher = host.watcher();
    let stat = fs::read_to_string(format!("/proc/{watcher}/stat")).unwrap();
    let group: u32 = stat.rsplit_once(") ").unwrap().1.split(' ').nth(2).unwrap().parse().unwrap();
    assert_eq!(group, watcher);
    assert_eq!(fs::read_link(format!("/proc/{watcher}/cwd")).unwrap(), Path::new("/"));
    let descriptors = fs::read_dir(format!("/proc/{watcher}/fd")).unwrap().flatten();
    // Its own for signals aside, it holds its pipe and nothing else of the host's.
    let foreign = descriptors.filter(|entry| {
        let target = fs::read_link(entry.path()).unwrap_or_default().display().to_string();
        target.starts_with("pipe:") && entry.file_name() != "0"
    });
    assert_eq!(foreign.count(), 0);
}

#[test]
fn r19_what_host_and_watcher_left_is_swept_and_a_living_host_is_not() {
    let (mut dead, alive) = (Host::start(&[]), Host::start(&[]));
    let watcher = dead.watcher();
    signal(watcher, Signal::KILL);
    eventually("the watcher is dead", || !lives(watcher));
    // Not reaped yet: a host that is a zombie is dead.
    signal(dead.id(), Signal::KILL);
    eventually("the host is dead", || !lives(dead.id()));
    portcullis_transports::process::sweep();
    assert!(!dead.servers().into_iter().any(lives));
    assert!(alive.servers().into_iter().all(lives));
    dead.process.wait().unwrap();
    portcullis_transports::process::sweep();
    assert!(alive.servers().into_iter().all(lives));
}

#[test]
fn s8_a_descriptor_that_the_host_inherited_stops_there() {
    let folder = tempfile::tempdir().unwrap();
    let secret = folder.path().join("secret");
    fs::write(&secret, "x").unwrap();
    let mut shell = Command::new("sh");
    shell.args(["-c", "exec 9<\"$0\"; exec \"$@\""]).arg(&secret).arg(tiny_host()).process_group(0);
    let host = Host::run(shell, &[]);
    let holds = |id: u32| {
        let descriptors = fs::read_dir(format!("/proc/{id}/fd")).unwrap().flatten();
        descriptors.filter_map(|entry| fs::read_link(entry.path()).ok()).any(|target| target == secret)
    };
    assert!(holds(host.id()));
    assert!(!holds(host.watcher()));
    assert!(!host.servers().into_iter().any(holds));
}
