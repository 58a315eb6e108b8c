//! Groups, signals and the ends of children, as Unix has them.

use std::{
    fs, io,
    os::unix::fs::{MetadataExt as _, PermissionsExt},
    path::Path,
    sync::{Arc, Mutex, PoisonError},
};

use portcullis::link::Exit;
use rustix::{
    fs::{Access, access},
    process::{Pid, Signal, WaitId, WaitIdOptions, kill_process_group, waitid},
};
use tokio::{
    process::{Child, Command},
    signal::unix::{self, SignalKind},
};

/// Makes the child the leader of its own group, with no descriptors but 0, 1 and 2.
pub(super) fn prepare(command: &mut Command) {
    command.process_group(0);
    // What Rust opens is closed on exec; what this host inherited from its own parent may not be.
    close_fds::set_fds_cloexec_threadsafe(3, &[]);
}

/// Hears that some child has ended.
#[derive(Debug)]
pub(super) struct Ends(unix::Signal);

impl Ends {
    pub(super) fn listen() -> io::Result<Self> {
        unix::signal(SignalKind::child()).map(Self)
    }
}

/// How firmly a tree is told to end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Order {
    /// A request that it may ignore.
    Please,
    /// One that it cannot.
    Now,
}

/// A process group that is ours: its id cannot be anybody else's until its leader is reaped.
#[derive(Debug)]
pub(super) struct Group {
    id: Pid,
    reaped: Mutex<bool>,
}

impl Group {
    /// Signals every member; does nothing once the leader is reaped.
    pub(super) fn order(&self, order: Order) {
        let reaped = self.reaped.lock().unwrap_or_else(PoisonError::into_inner);
        if !*reaped {
            let signal = if order == Order::Now { Signal::KILL } else { Signal::TERM };
            // An error says that nobody is left.
            let _ = kill_process_group(self.id, signal);
        }
    }

    fn give_up(&self) {
        *self.reaped.lock().unwrap_or_else(PoisonError::into_inner) = true;
    }
}

/// The process that was started. Dropped early, it takes its group with it.
#[derive(Debug)]
pub(super) struct Leader {
    child: Child,
    group: Arc<Group>,
    ends: Ends,
}

impl Leader {
    pub(super) fn new(child: Child, ends: Ends) -> io::Result<Self> {
        let id = child.id().and_then(|id| Pid::from_raw(id.cast_signed())).ok_or(io::ErrorKind::NotFound)?;
        Ok(Self { child, group: Arc::new(Group { id, reaped: Mutex::new(false) }), ends })
    }

    pub(super) fn id(&self) -> u32 {
        self.group.id.as_raw_nonzero().get().cast_unsigned()
    }

    pub(super) fn group(&self) -> Arc<Group> {
        self.group.clone()
    }

    /// Waits for its end without reaping it, so that the group's id stays ours. Whatever other
    /// processes do with its streams does not matter.
    pub(super) async fn ended(&mut self) -> Exit {
        let options = WaitIdOptions::EXITED | WaitIdOptions::NOWAIT | WaitIdOptions::NOHANG;
        loop {
            match waitid(WaitId::Pid(self.group.id), options) {
                Ok(Some(status)) => {
                    let code = status.exit_status().map(Exit::Code);
                    return code.or(status.terminating_signal().map(Exit::Signal)).unwrap_or(Exit::Unknown);
                }
                Ok(None) | Err(rustix::io::Errno::INTR) => {}
                // Somebody else reaped it.
                Err(_) => return Exit::Unknown,
            }
            if self.ends.0.recv().await.is_none() {
                return Exit::Unknown;
            }
        }
    }

    /// Lets the system forget it.
    pub(super) async fn reap(mut self) {
        self.group.give_up();
        let _ = self.child.wait().await;
    }
}

impl Drop for Leader {
    fn drop(&mut self) {
        // The child is dropped after this, and only then reaped.
        self.group.order(Order::Now);
        self.group.give_up();
    }
}

/// Kills a group that is not a child of this process.
pub(super) fn kill_group(leader: u32) {
    if let Some(leader) = Pid::from_raw(leader.cast_signed()) {
        let _ = kill_process_group(leader, Signal::KILL);
    }
}

/// Sets the watcher apart from the host: a Ctrl-C in the host's terminal is not for it.
pub(super) fn set_apart(command: &mut std::process::Command) {
    use std::os::unix::process::CommandExt;
    command.process_group(0).current_dir("/");
    close_fds::set_fds_cloexec_threadsafe(3, &[]);
}

/// Makes this process deaf to polite signals, for good.
pub(super) fn ignore_polite_signals() -> io::Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_io().build()?;
    let _context = runtime.enter();
    for kind in [SignalKind::terminate(), SignalKind::interrupt(), SignalKind::hangup()] {
        // Once there is a handler it stays, whether or not anybody listens.
        drop(unix::signal(kind)?);
    }
    Ok(())
}

/// Writes to `pipe` never wait from here on.
pub(super) fn never_wait(pipe: &std::process::ChildStdin) -> io::Result<()> {
    let flags = rustix::fs::fcntl_getfl(pipe)?;
    Ok(rustix::fs::fcntl_setfl(pipe, flags | rustix::fs::OFlags::NONBLOCK)?)
}

/// File names to look for when a program is called `name`.
pub(super) fn spellings(name: &str, _extensions: Option<&std::ffi::OsStr>) -> Vec<String> {
    vec![name.to_owned()]
}

/// Whether `command` is a place in the file system rather than a name to look up.
pub(super) fn is_place(command: &str) -> bool {
    command.contains('/')
}

/// Whether this user may run the file.
pub(super) fn may_run(file: &Path) -> bool {
    access(file, Access::EXEC_OK).is_ok()
}

/// Whether every user of this machine could put something else in the place of `path`.
pub(super) fn anybody_can_replace(path: &Path) -> bool {
    const WRITE: u32 = 0o002;
    const STICKY: u32 = 0o1000;
    let mode = |path: &Path| fs::metadata(path).map_or(0, |metadata| metadata.permissions().mode());
    let ours = rustix::process::getuid().as_raw();
    let strangers = fs::metadata(path).is_ok_and(|metadata| metadata.uid() != ours && metadata.uid() != 0);
    let mut folders = path.ancestors();
    let itself = folders.next().is_some_and(|path| mode(path) & WRITE != 0);
    let parent = folders.clone().next().is_some_and(|parent| mode(parent) & WRITE != 0);
    // A sticky folder keeps others from renaming what is not theirs.
    itself || (parent && strangers) || folders.any(|folder| mode(folder) & (WRITE | STICKY) == WRITE)
}
