//! Whether what an endpoint offers changed: looked at while somebody listens, told once, only if it did.

use std::{
    sync::{Arc, Mutex, PoisonError, Weak},
    time::Duration,
};

use tokio::sync::watch;

use crate::endpoint::Endpoint;

/// How often the store is looked at for what anybody decided.
const LOOK: Duration = Duration::from_millis(500);

/// Counts changes of the list of tools.
#[derive(Debug, Default)]
pub(crate) struct Changes {
    tools: watch::Sender<u64>,
    seen: Mutex<Seen>,
}

#[derive(Debug, Default)]
struct Seen {
    /// The definitions, as they were last.
    tools: Option<Vec<String>>,
    looking: bool,
}

impl Changes {
    fn seen(&self) -> std::sync::MutexGuard<'_, Seen> {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Changes with the list of tools: whatever is decided once this is there.
    pub(crate) async fn tools(self: &Arc<Self>, endpoint: &Arc<Endpoint>) -> watch::Receiver<u64> {
        self.look(endpoint).await;
        let receiver = self.tools.subscribe();
        if !std::mem::replace(&mut self.seen().looking, true) {
            tokio::spawn(keep_looking(Arc::downgrade(endpoint), self.clone()));
        }
        receiver
    }

    async fn look(&self, endpoint: &Endpoint) {
        // What cannot be read is no change.
        let Ok(tools) = endpoint.definitions().await else { return };
        let mut seen = self.seen();
        let before = seen.tools.replace(tools.clone());
        drop(seen);
        if before.is_some_and(|before| before != tools) {
            self.tools.send_modify(|changes| *changes += 1);
        }
    }

    /// Whether nobody listens any more; then the next one begins anew.
    fn is_over(&self) -> bool {
        let mut seen = self.seen();
        let over = self.tools.receiver_count() == 0;
        if over {
            *seen = Seen::default();
        }
        over
    }
}

async fn keep_looking(endpoint: Weak<Endpoint>, changes: Arc<Changes>) {
    while !changes.is_over() {
        tokio::time::sleep(LOOK).await;
        let Some(endpoint) = endpoint.upgrade() else { return };
        changes.look(&endpoint).await;
    }
}
