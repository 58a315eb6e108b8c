//! Whether what an endpoint offers changed: looked at while somebody listens, told once, only if it did.

use std::{
    sync::{Arc, Mutex, PoisonError, Weak},
    time::Duration,
};

use tokio::sync::watch;

use crate::endpoint::Endpoint;

/// How often the store is looked at for what other hosts decided.
const LOOK: Duration = Duration::from_millis(500);

/// Counts changes of the list of tools.
#[derive(Debug, Default)]
pub(crate) struct Changes {
    tools: watch::Sender<u64>,
    looking: Mutex<bool>,
}

impl Changes {
    /// Changes with the list of tools, from now on.
    pub(crate) fn tools(self: &Arc<Self>, endpoint: &Arc<Endpoint>) -> watch::Receiver<u64> {
        let receiver = self.tools.subscribe();
        let mut looking = self.looking.lock().unwrap_or_else(PoisonError::into_inner);
        if !std::mem::replace(&mut *looking, true) {
            tokio::spawn(look(Arc::downgrade(endpoint), self.clone()));
        }
        receiver
    }
}

/// Looks until nobody listens.
async fn look(endpoint: Weak<Endpoint>, changes: Arc<Changes>) {
    let mut told: Option<Vec<String>> = None;
    loop {
        let Some(endpoint) = endpoint.upgrade() else { return };
        if let Ok(tools) = endpoint.offer.tools().await {
            let changed = told.as_ref().is_some_and(|told| *told != tools.definitions);
            if changed || told.is_none() {
                told = Some(tools.definitions.clone());
            }
            if changed {
                changes.tools.send_modify(|changes| *changes += 1);
            }
        }
        drop(endpoint);
        tokio::time::sleep(LOOK).await;
        let mut looking = changes.looking.lock().unwrap_or_else(PoisonError::into_inner);
        if changes.tools.receiver_count() == 0 {
            *looking = false;
            return;
        }
    }
}
