//! What little is done on Windows: the process that was started is ended, its children are not.
//!
//! A known gap: ending whole trees there takes a Job Object, which std and tokio do not offer.

use std::{ffi::OsStr, io, path::Path, sync::Arc};

use portcullis::link::Exit;
use tokio::{
    process::{Child, Command},
    sync::Notify,
};

/// No console window flashes up.
pub(super) fn prepare(command: &mut Command) {
    const CREATE_NO_WINDOW: u32 = 0x0800_0000;
    command.creation_flags(CREATE_NO_WINDOW);
}

/// Nothing to listen to: a child is waited for directly.
#[derive(Debug)]
pub(super) struct Ends;

impl Ends {
    pub(super) fn listen() -> io::Result<Self> {
        Ok(Self)
    }
}

/// How firmly a tree is told to end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Order {
    /// There is no polite way.
    Please,
    /// Ends it.
    Now,
}

/// Passes orders on to the leader.
#[derive(Debug, Default)]
pub(super) struct Group(Notify);

impl Group {
    pub(super) fn order(&self, order: Order) {
        if order == Order::Now {
            self.0.notify_one();
        }
    }
}

/// The process that was started; killed when dropped.
#[derive(Debug)]
pub(super) struct Leader {
    child: Child,
    id: u32,
    group: Arc<Group>,
}

impl Leader {
    pub(super) fn new(child: Child, _ends: Ends) -> io::Result<Self> {
        let id = child.id().ok_or(io::ErrorKind::NotFound)?;
        Ok(Self { child, id, group: Arc::default() })
    }

    pub(super) fn id(&self) -> u32 {
        self.id
    }

    pub(super) fn group(&self) -> Arc<Group> {
        self.group.clone()
    }

    pub(super) async fn ended(&mut self) -> Exit {
        tokio::select! {
            _ = self.child.wait() => {}
            () = self.group.0.notified() => { let _ = self.child.start_kill(); }
        }
        self.child.wait().await.ok().and_then(|status| status.code()).map_or(Exit::Unknown, Exit::Code)
    }

    pub(super) async fn reap(self) {}
}

pub(super) fn kill_group(_leader: u32) {}

pub(super) fn set_apart(_command: &mut std::process::Command) {}

pub(super) fn ignore_polite_signals() -> io::Result<()> {
    Ok(())
}

pub(super) fn never_wait(_pipe: &std::process::ChildStdin) -> io::Result<()> {
    Ok(())
}

/// `npx` is `npx.cmd` here: a name without an extension is tried with each of `PATHEXT`.
pub(super) fn spellings(name: &str, extensions: Option<&OsStr>) -> Vec<String> {
    if Path::new(name).extension().is_some() {
        return vec![name.to_owned()];
    }
    let extensions = extensions.and_then(OsStr::to_str).unwrap_or(".COM;.EXE;.BAT;.CMD");
    extensions
        .split(';')
        .filter(|extension| !extension.is_empty())
        .map(|extension| format!("{name}{extension}"))
        .collect()
}

pub(super) fn is_place(command: &str) -> bool {
    command.contains(['/', '\\', ':'])
}

pub(super) fn may_run(_file: &Path) -> bool {
    true
}

pub(super) fn anybody_can_replace(_path: &Path) -> bool {
    false
}
