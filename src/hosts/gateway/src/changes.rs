//! Whether what an endpoint offers changed: looked at while somebody listens, told once, only if it did.

use std::{
    sync::{Arc, Mutex, PoisonError, Weak},
    time::Duration,
};

use portcullis::session::ListKind;
use tokio::sync::watch;

use crate::endpoint::Endpoint;

/// How often the store is looked at for what anybody decided.
const LOOK: Duration = Duration::from_millis(500);

/// How often each list of an endpoint changed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Counts {
    pub(crate) tools: u64,
    pub(crate) resources: u64,
    pub(crate) prompts: u64,
    /// Nobody has a right to the endpoint any more: its streams end.
    pub(crate) over: bool,
}

/// Counts changes of the lists.
#[derive(Debug, Default)]
pub(crate) struct Changes {
    counts: watch::Sender<Counts>,
    seen: Mutex<Seen>,
}

/// What a server said of one of its lists, by its id.
type Said = Vec<(String, u64)>;

#[derive(Debug, Default)]
struct Seen {
    /// The definitions of tools, as they were last.
    tools: Option<Vec<String>>,
    resources: Option<Said>,
    prompts: Option<Said>,
    looking: bool,
}

/// Whether something was seen before, and was another.
fn differs<T: PartialEq>(seen: &mut Option<T>, now: T) -> u64 {
    let changed = seen.as_ref().is_some_and(|before| *before != now);
    *seen = Some(now);
    u64::from(changed)
}

impl Changes {
    fn seen(&self) -> std::sync::MutexGuard<'_, Seen> {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Changes with the lists: whatever is decided or told once this is there.
    pub(crate) async fn listen(self: &Arc<Self>, endpoint: &Arc<Endpoint>) -> watch::Receiver<Counts> {
        self.look(endpoint).await;
        let receiver = self.counts.subscribe();
        if !std::mem::replace(&mut self.seen().looking, true) {
            tokio::spawn(keep_looking(Arc::downgrade(endpoint), self.clone()));
        }
        receiver
    }

    async fn look(&self, endpoint: &Endpoint) {
        if endpoint.is_over().await {
            endpoint.end();
            return;
        }
        // What cannot be read is no change.
        let Ok(tools) = endpoint.definitions().await else { return };
        let Ok(resources) = endpoint.offer.changes(ListKind::Resources).await else { return };
        let Ok(prompts) = endpoint.offer.changes(ListKind::Prompts).await else { return };
        let mut seen = self.seen();
        let more = Counts {
            tools: differs(&mut seen.tools, tools),
            resources: differs(&mut seen.resources, resources),
            prompts: differs(&mut seen.prompts, prompts),
            over: false,
        };
        drop(seen);
        if more != Counts::default() {
            self.counts.send_modify(|counts| {
                counts.tools += more.tools;
                counts.resources += more.resources;
                counts.prompts += more.prompts;
            });
        }
    }

    /// Nobody has a right to the endpoint any more.
    pub(crate) fn end(&self) {
        self.counts.send_if_modified(|counts| !std::mem::replace(&mut counts.over, true));
    }

    /// Completes once nobody has a right to the endpoint any more, and begins to look for that only after a
    /// while: most requests are answered by then.
    pub(crate) async fn over(self: &Arc<Self>, endpoint: &Arc<Endpoint>) {
        tokio::time::sleep(LOOK).await;
        let mut counts = self.listen(endpoint).await;
        // The sender is held by what is waited with.
        let _ = counts.wait_for(|counts| counts.over).await;
    }

    /// Whether nobody listens any more; then the next one begins anew.
    fn is_over(&self) -> bool {
        let mut seen = self.seen();
        let over = self.counts.receiver_count() == 0;
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
