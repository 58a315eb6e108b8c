//! Listing tools again when a server says that they changed: by itself, seldom, and told once.
//!
//! Nothing waits for it: a call looks for itself whether the list is the newest, and uses no tool whose
//! definition nobody has seen.

use std::{sync::Arc, time::Duration};

use tokio::{
    sync::watch,
    time::{Instant, timeout, timeout_at},
};

use super::Gate;
use crate::{session::Session, tools::ToolList};

/// How long a server has to say nothing more of changes.
const QUIET: Duration = Duration::from_millis(200);
/// The longest that is waited for that, and so the least between two lists while it never is quiet.
const STORM: Duration = Duration::from_secs(2);

impl Gate {
    /// Follows what a server says of its tools, as long as it runs.
    pub(super) fn watch_tools(&self, name: &str, session: &Arc<Session>, attempt: u64) {
        let gate = Arc::downgrade(&self.0);
        let (name, session) = (name.to_owned(), session.clone());
        let mut changes = session.tool_changes();
        let mut told = session.tools();
        tokio::spawn(async move {
            let following = async {
                while changes.changed().await.is_ok() {
                    settled(&mut changes).await;
                    let Some(inner) = gate.upgrade() else { return };
                    Self(inner).list_again(&name, &session, attempt, &mut told).await;
                }
            };
            tokio::select! {
                () = following => {}
                _ = session.ended() => {}
            }
        });
    }

    async fn list_again(&self, name: &str, session: &Session, attempt: u64, told: &mut Arc<ToolList>) {
        let list = match session.refresh_if_stale().await {
            Ok(list) => list,
            Err(error) => {
                // The list stays marked as old: the next call asks for it, and says what is wrong.
                let error = self.failed(name, None, error);
                tracing::warn!(server = name, %error, "the tools changed and cannot be listed");
                return;
            }
        };
        if let Err(error) = self.remember(session, &list).await {
            tracing::warn!(server = name, %error, "the changed tools cannot be kept");
            return;
        }
        if !is_same(told, &list) {
            self.0.sessions.connections.tools_changed(name, attempt);
        }
        *told = list;
    }
}

/// Waits until there was no change for a while, but not for ever.
async fn settled(changes: &mut watch::Receiver<u64>) {
    let latest = Instant::now() + STORM;
    let quiet = async { while timeout(QUIET, changes.changed()).await.is_ok_and(|said| said.is_ok()) {} };
    let _ = timeout_at(latest, quiet).await;
}

/// Whether two lists offer the same, and refuse the same.
fn is_same(one: &ToolList, other: &ToolList) -> bool {
    one.refused() == other.refused()
        && one.len() == other.len()
        && one.iter().zip(other.iter()).all(|(one, other)| one.pin() == other.pin())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn r24_a_storm_is_waited_out_and_one_without_end_is_not() {
        let (says, mut changes) = watch::channel(0);
        let begun = Instant::now();
        says.send_modify(|count| *count += 1);
        settled(&mut changes).await;
        assert!(begun.elapsed() < 2 * QUIET + Duration::from_millis(10), "{:?}", begun.elapsed());
        let storm = tokio::spawn(async move {
            loop {
                says.send_modify(|count| *count += 1);
                tokio::time::sleep(QUIET / 2).await;
            }
        });
        let begun = Instant::now();
        settled(&mut changes).await;
        assert!((STORM..STORM + Duration::from_millis(10)).contains(&begun.elapsed()), "{:?}", begun.elapsed());
        storm.abort();
    }
}
