//! What a server may say to us unasked: progress, changed lists; everything else is refused.

use std::{
    collections::HashMap,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
};

use rmcp::{
    ClientHandler, ErrorData, RoleClient,
    model::{
        ClientConfig, ElicitRequestParams, ElicitResult, ElicitationCreateRequestMethod, Implementation,
        ListRootsRequestMethod, ProgressNotificationParam, ProgressToken, ProtocolVersion,
    },
    service::{NotificationContext, RequestContext},
};
use tokio::sync::Notify;

/// What the session and its handler share.
#[derive(Debug, Default)]
pub(super) struct Shared {
    /// Counts what the server said about changed lists.
    changes: AtomicU64,
    /// That count at the newest list.
    listed: AtomicU64,
    progress: Mutex<HashMap<ProgressToken, Arc<Notify>>>,
}

impl Shared {
    pub(super) fn is_stale(&self) -> bool {
        self.changes() != self.listed.load(Ordering::Acquire)
    }

    /// To be read before a list is asked for: whatever is said from then on concerns the next one.
    pub(super) fn changes(&self) -> u64 {
        self.changes.load(Ordering::Acquire)
    }

    /// A list was read that was asked for at this count.
    pub(super) fn listed(&self, changes: u64) {
        self.listed.store(changes, Ordering::Release);
    }

    /// Woken by each progress of the request with this token, until dropped.
    pub(super) fn watch(self: &Arc<Self>, token: ProgressToken) -> Watch {
        let notify = Arc::<Notify>::default();
        self.progress.lock().unwrap_or_else(PoisonError::into_inner).insert(token.clone(), notify.clone());
        Watch { shared: self.clone(), token, notify }
    }
}

/// Progress of one request.
pub(super) struct Watch {
    shared: Arc<Shared>,
    token: ProgressToken,
    notify: Arc<Notify>,
}

impl Watch {
    pub(super) async fn progress(&self) {
        self.notify.notified().await;
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        self.shared.progress.lock().unwrap_or_else(PoisonError::into_inner).remove(&self.token);
    }
}

/// rmcp's handler of what the server sends.
#[derive(Debug, Default)]
pub(super) struct Handler(Arc<Shared>);

impl Handler {
    pub(super) fn shared(&self) -> Arc<Shared> {
        self.0.clone()
    }
}

#[allow(deprecated, reason = "older revisions still ask for roots, and get a refusal")]
impl ClientHandler for Handler {
    fn get_info(&self) -> ClientConfig {
        let mut config = ClientConfig::default();
        config.protocol_version = ProtocolVersion::LATEST_WITH_INITIALIZE;
        config.client_info = Implementation::new("portcullis", env!("CARGO_PKG_VERSION"));
        config
    }

    async fn on_progress(&self, progress: ProgressNotificationParam, _: NotificationContext<RoleClient>) {
        if let Some(notify) =
            self.0.progress.lock().unwrap_or_else(PoisonError::into_inner).get(&progress.progress_token)
        {
            notify.notify_one();
        }
    }

    async fn on_tool_list_changed(&self, _: NotificationContext<RoleClient>) {
        self.0.changes.fetch_add(1, Ordering::AcqRel);
    }

    // rmcp answers these two in the person's name; what was not offered is not found instead.

    async fn list_roots(&self, _: RequestContext<RoleClient>) -> Result<rmcp::model::ListRootsResult, ErrorData> {
        Err(ErrorData::method_not_found::<ListRootsRequestMethod>())
    }

    async fn create_elicitation(
        &self,
        _: ElicitRequestParams,
        _: RequestContext<RoleClient>,
    ) -> Result<ElicitResult, ErrorData> {
        Err(ErrorData::method_not_found::<ElicitationCreateRequestMethod>())
    }
}
