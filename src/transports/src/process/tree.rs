//! A process tree, from its start to the proof that nothing of it is left.

use std::{sync::Arc, time::Duration};

use async_trait::async_trait;
use portcullis::link::{Exit, Keeper};
use tokio::{process::ChildStderr, sync::watch, time::timeout};

use super::{
    cookie::Cookie,
    ring::Ring,
    system::{Group, Leader, Order},
    table, watcher,
};

/// How long the rest of standard error is waited for once the leader has ended. Somebody who left
/// the group may keep it open.
const LAST_WORDS: Duration = Duration::from_millis(200);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stage {
    Running,
    /// The leader has ended, and its group was killed.
    Ended(Exit),
    /// Nothing is left.
    Gone(Exit),
}

/// Keeps one server's processes.
///
/// The end of the leader is the end of the server, whoever else still holds its streams; then, as
/// after every other end, the rest of the tree goes. Dropping it kills the group at once and lets
/// the rest follow.
#[derive(Debug)]
pub(crate) struct Tree {
    id: u32,
    group: Arc<Group>,
    stage: watch::Receiver<Stage>,
    stderr: Ring,
}

impl Tree {
    /// Watches over `leader` from now on.
    pub(super) fn watch(leader: Leader, stderr: ChildStderr, cookie: Cookie) -> Self {
        let (set, stage) = watch::channel(Stage::Running);
        let ring = Ring::default();
        let tree = Self { id: leader.id(), group: leader.group(), stage, stderr: ring.clone() };
        watcher::started(leader.id(), cookie);
        tokio::spawn(supervise(leader, ring, stderr, cookie, set));
        tree
    }

    /// The id of the leader and of its group.
    #[cfg(test)]
    pub(crate) fn id(&self) -> u32 {
        self.id
    }

    #[cfg(test)]
    pub(crate) fn group_now(&self) {
        self.group.order(Order::Now);
    }

    #[cfg(test)]
    pub(crate) fn stderr_len(&self) -> usize {
        self.stderr.len()
    }

    /// The exit, once `reached` holds. A runtime that was shut down has ended the tree with it.
    async fn wait(&self, reached: fn(&Stage) -> bool) -> Exit {
        match self.stage.clone().wait_for(reached).await.map(|stage| *stage) {
            Ok(Stage::Ended(exit) | Stage::Gone(exit)) => exit,
            Ok(Stage::Running) | Err(_) => Exit::Unknown,
        }
    }
}

async fn supervise(mut leader: Leader, ring: Ring, stderr: ChildStderr, cookie: Cookie, stage: watch::Sender<Stage>) {
    let drain = ring.drain(stderr);
    tokio::pin!(drain);
    let mut drained = false;
    let exit = loop {
        tokio::select! {
            exit = leader.ended() => break exit,
            () = &mut drain, if !drained => drained = true,
        }
    };
    // The leader is a zombie: until it is reaped, its id and its group's are nobody else's.
    leader.group().order(Order::Now);
    if !drained {
        let _ = timeout(LAST_WORDS, drain).await;
    }
    stage.send_replace(Stage::Ended(exit));
    let id = leader.id();
    let _ = tokio::task::spawn_blocking(move || table::end_tree(id, cookie)).await;
    leader.reap().await;
    watcher::ended(id);
    stage.send_replace(Stage::Gone(exit));
}

#[async_trait]
impl Keeper for Tree {
    async fn ended(&self) -> Exit {
        self.wait(|stage| *stage != Stage::Running).await
    }

    fn stderr_tail(&self) -> String {
        self.stderr.tail()
    }

    async fn close(&self, grace: Duration) -> Exit {
        if timeout(grace, self.ended()).await.is_err() {
            self.group.order(Order::Please);
            if timeout(grace, self.ended()).await.is_err() {
                tracing::debug!(id = self.id, "the server did not end when asked to and is killed");
                self.group.order(Order::Now);
            }
        }
        self.wait(|stage| matches!(stage, Stage::Gone(_))).await
    }
}

impl Drop for Tree {
    fn drop(&mut self) {
        self.group.order(Order::Now);
    }
}
