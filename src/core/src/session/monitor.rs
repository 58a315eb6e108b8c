//! One task a session that notices its end, whatever ends it, and cleans up.

use std::{sync::Arc, time::Duration};

use rmcp::{RoleClient, service::RunningService};
use tokio::{sync::watch, time::timeout};

use super::{error::Ended, handler::Handler};
use crate::link::{Exit, Failure, Keeper, LinkError};

/// How long what a process wrote before its end is still read.
pub(super) const DRAIN: Duration = Duration::from_millis(200);

/// How long a session that is ended may take to say so to a server, which may not read it.
const LAST_WORDS: Duration = Duration::from_millis(500);

/// Watches one session.
#[derive(Debug)]
pub(super) struct Monitor {
    keeper: Arc<dyn Keeper>,
    failure: Failure,
    stop: watch::Sender<bool>,
    exit: watch::Receiver<Option<Exit>>,
}

impl Monitor {
    /// Takes the running service; from here on this task alone ends it.
    pub(super) fn start(
        service: RunningService<RoleClient, Handler>,
        keeper: Arc<dyn Keeper>,
        failure: Failure,
        grace: Duration,
    ) -> Self {
        let (stop, mut stopped) = watch::channel(false);
        let (set, exit) = watch::channel(None);
        let kept = keeper.clone();
        tokio::spawn(async move {
            let cancel = service.cancellation_token();
            let mut waiting = Box::pin(service.waiting());
            let over = tokio::select! {
                _ = &mut waiting => true,
                _ = kept.ended() => timeout(DRAIN, &mut waiting).await.is_ok(),
                // An error means that the session was dropped: that stops it as well.
                () = async { drop(stopped.wait_for(|stop| *stop).await) } => false,
            };
            if !over {
                cancel.cancel();
                // Sending its last words may hang on a server that does not read.
                let _ = timeout(LAST_WORDS, &mut waiting).await;
            }
            drop(waiting);
            let exit = kept.close(grace).await;
            set.send_replace(Some(exit));
        });
        Self { keeper, failure, stop, exit }
    }

    pub(super) async fn stop(&self) {
        self.stop.send_replace(true);
        self.wait().await;
    }

    pub(super) async fn wait(&self) {
        let mut exit = self.exit.clone();
        // An error means that the task is gone, with the runtime: over as well.
        let _ = exit.wait_for(Option::is_some).await;
    }

    pub(super) fn is_over(&self) -> bool {
        self.exit.borrow().is_some()
    }

    pub(super) fn ended(&self) -> Ended {
        Ended { exit: self.exit.borrow().unwrap_or(Exit::Unknown), stderr: self.keeper.stderr_tail() }
    }

    pub(super) fn stderr_tail(&self) -> String {
        self.keeper.stderr_tail()
    }

    pub(super) fn failure(&self) -> Option<LinkError> {
        self.failure.get()
    }
}
