//! Finds processes in `/proc` and ends them, without ever taking one for another.
//!
//! A process is held by a descriptor before it is looked at a second time and signalled, so an id
//! that is given to somebody else in between harms nobody.

use std::{collections::BTreeSet, ffi::OsStr, fs, io::Read, os::unix::fs::MetadataExt, time::Duration};

use rustix::process::{Pid, PidfdFlags, Signal, getuid, kill_process, pidfd_open, pidfd_send_signal};

use super::cookie::{Cookie, Host, VARIABLE};

/// How often a search is repeated until it finds nothing. A process that forks faster than it is
/// found could go on for ever.
const ROUNDS: usize = 200;
const PAUSE: Duration = Duration::from_millis(2);
/// Longest environment that is read; the system's own limit is a quarter of the stack.
const ENVIRONMENT_BYTES: u64 = 8 << 20;

/// When a process was started, in clock ticks since the machine was; `None` once it is gone. With
/// the id it names one process. A zombie still has one.
pub(crate) fn start_time(id: u32) -> Option<u64> {
    Stat::of(id.cast_signed()).map(|stat| stat.start)
}

/// Ends all that belongs to one child but `leader`, which is dead and not reaped: members of its
/// group, and processes elsewhere that carry its cookie.
pub(crate) fn end_tree(leader: u32, cookie: Cookie) {
    let leader = leader.cast_signed();
    // What descends from it is no older: nothing else has to be looked at closely.
    let start = Stat::of(leader).map_or(0, |stat| stat.start);
    end(|process| {
        process.id != leader
            && (process.stat.group == leader
                || process.stat.start >= start && process.cookie().is_some_and(|found| found == cookie))
    });
}

/// Ends every process that carries a cookie of `host`.
pub(crate) fn end_children_of(host: Host) {
    end(|process| process.stat.start >= host.start && process.cookie().is_some_and(|cookie| cookie.host == host));
}

/// Ends every process whose cookie names a host that is dead; says how many.
pub(crate) fn end_orphans() -> usize {
    end(orphans())
}

/// How many there are.
pub(crate) fn count_orphans() -> usize {
    processes().filter(orphans()).count()
}

fn orphans() -> impl Fn(&Process) -> bool {
    let spared = ancestors();
    let ours = namespace("self");
    move |process| {
        process.cookie().is_some_and(|cookie| !is_alive(cookie.host))
            && !spared.contains(&process.id)
            // In another container the ids of hosts mean other processes.
            && namespace(&process.id.to_string()) == ours
    }
}

fn is_alive(host: Host) -> bool {
    Stat::of(host.id.cast_signed()).is_some_and(|stat| stat.start == host.start && !stat.is_dead())
}

/// This process and those it descends from: a host may have been started from within a server.
fn ancestors() -> BTreeSet<i32> {
    let mut found = BTreeSet::new();
    let mut id = std::process::id().cast_signed();
    while id > 0 && found.insert(id) {
        id = Stat::of(id).map_or(0, |stat| stat.parent);
    }
    found
}

fn namespace(id: &str) -> Option<std::path::PathBuf> {
    fs::read_link(format!("/proc/{id}/ns/pid")).ok()
}

/// Kills what is `wanted` again and again until nothing is; says how many processes that were.
fn end(wanted: impl Fn(&Process) -> bool) -> usize {
    let mut ended = BTreeSet::new();
    for _ in 0..ROUNDS {
        let found: Vec<i32> = processes().filter(&wanted).filter(Process::kill).map(|process| process.id).collect();
        if found.is_empty() {
            break;
        }
        ended.extend(found);
        std::thread::sleep(PAUSE);
    }
    ended.len()
}

/// Every living process of this user but this one.
fn processes() -> impl Iterator<Item = Process> {
    let (me, user) = (std::process::id().cast_signed(), getuid().as_raw());
    fs::read_dir("/proc").into_iter().flatten().flatten().filter_map(move |entry| {
        let id = entry.file_name().to_str()?.parse().ok().filter(|id| *id != me)?;
        (entry.metadata().ok()?.uid() == user).then_some(())?;
        let stat = Stat::of(id).filter(|stat| !stat.is_dead())?;
        Some(Process { id, stat })
    })
}

struct Process {
    id: i32,
    stat: Stat,
}

impl Process {
    fn cookie(&self) -> Option<Cookie> {
        let mut environment = Vec::new();
        let file = fs::File::open(format!("/proc/{}/environ", self.id)).ok()?;
        file.take(ENVIRONMENT_BYTES).read_to_end(&mut environment).ok()?;
        let value = environment
            .split(|byte| *byte == 0)
            .find_map(|entry| entry.strip_prefix(VARIABLE.as_bytes())?.strip_prefix(b"="))?;
        Cookie::parse(std::str::from_utf8(value).ok()?)
    }

    /// Whether it was still there to be killed.
    fn kill(&self) -> bool {
        let Some(id) = Pid::from_raw(self.id) else { return false };
        let held = pidfd_open(id, PidfdFlags::empty());
        if Stat::of(self.id).is_none_or(|stat| stat.start != self.stat.start) {
            return false;
        }
        match held {
            Ok(process) => pidfd_send_signal(process, Signal::KILL).is_ok(),
            // A system without them, or a container that forbids them.
            Err(_) => kill_process(id, Signal::KILL).is_ok(),
        }
    }
}

struct Stat {
    state: u8,
    parent: i32,
    group: i32,
    start: u64,
}

impl Stat {
    fn of(id: i32) -> Option<Self> {
        // The system makes the whole line for one reading, and it is shorter than this.
        let mut line = [0; 1024];
        let length = fs::File::open(format!("/proc/{id}/stat")).ok()?.read(&mut line).ok()?;
        Self::parse(&line[..length])
    }

    /// The name stands in parentheses and may hold anything, parentheses and spaces included.
    fn parse(text: &[u8]) -> Option<Self> {
        let after = text.iter().rposition(|byte| *byte == b')')? + 1;
        let mut fields = std::str::from_utf8(&text[after..]).ok()?.split_ascii_whitespace();
        Some(Self {
            state: fields.next()?.bytes().next()?,
            parent: fields.next()?.parse().ok()?,
            group: fields.next()?.parse().ok()?,
            start: fields.nth(16)?.parse().ok()?,
        })
    }

    /// Dead and only waiting to be reaped.
    fn is_dead(&self) -> bool {
        matches!(self.state, b'Z' | b'X' | b'x')
    }
}

/// The program of this very process, also where its file was replaced or removed.
pub(crate) fn own_program() -> std::io::Result<&'static OsStr> {
    Ok(OsStr::new("/proc/self/exe"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn r19_a_name_with_parentheses_and_spaces_is_no_obstacle() {
        let text = b"42 (a) R 1 (b \xff) Z 7 8 9 0 -1 4 1 2 3 4 5 6 7 8 20 0 1 0 777 1 1 1\n";
        let stat = Stat::parse(text).unwrap();
        assert_eq!((stat.state, stat.parent, stat.group, stat.start), (b'Z', 7, 8, 777));
        assert!(stat.is_dead());
        for text in ["", "1 (x", "1 (x) S 1", "1 (x) S a b c"] {
            assert!(Stat::parse(text.as_bytes()).is_none());
        }
    }

    #[test]
    fn this_process_lives_and_its_id_alone_does_not_name_it() {
        let host = Host::this();
        assert!(is_alive(host));
        assert!(!is_alive(Host { start: host.start + 1, ..host }));
        assert!(!is_alive(Host { id: 0, ..host }));
        assert!(ancestors().len() > 1);
    }
}
