//! One request: sent once, waited for under an idle and an absolute limit, cancelled by name.

use std::time::Duration;

use rmcp::{
    RoleClient,
    model::{ClientRequest, ServerResult},
    service::{PeerRequestOptions, RequestHandle, ServiceError},
};
use tokio::time::{Instant, sleep_until, timeout};

use super::{Session, SessionError, error};

/// How long a cancellation may take to be written; a server that does not read never gets it.
const CANCEL_TIME: Duration = Duration::from_secs(1);
/// How long the reason for a broken link may take to be known.
const REASON_TIME: Duration = Duration::from_secs(1);

impl Session {
    /// Sends `request` and waits for its answer. Progress restarts the idle limit, not the absolute.
    pub(super) async fn request(&self, request: ClientRequest) -> Result<ServerResult, SessionError> {
        if self.is_over() {
            return Err(SessionError::NotRunning(self.monitor.ended()));
        }
        let absolute = Instant::now() + self.limits.limits.absolute;
        let sent = self.peer.send_cancellable_request(request, PeerRequestOptions::no_options());
        let mut handle = match timeout(self.limits.idle, sent).await {
            Ok(Ok(handle)) => handle,
            Ok(Err(error)) => return Err(self.explain(error).await),
            Err(_) => return Err(SessionError::TimedOut { limit: self.limits.idle, kind: "without an answer" }),
        };
        let watch = self.handler.watch(handle.progress_token.clone());
        let mut idle = Instant::now() + self.limits.idle;
        loop {
            tokio::select! {
                biased;
                answer = &mut handle.rx => {
                    return match answer {
                        Ok(Ok(result)) => Ok(result),
                        Ok(Err(error)) => Err(self.explain(error).await),
                        Err(_) => Err(self.explain(ServiceError::TransportClosed).await),
                    };
                }
                () = sleep_until(absolute) => {
                    cancel(handle);
                    return Err(SessionError::TimedOut { limit: self.limits.limits.absolute, kind: "altogether" });
                }
                () = watch.progress() => idle = Instant::now() + self.limits.idle,
                () = sleep_until(idle) => {
                    cancel(handle);
                    return Err(SessionError::TimedOut { limit: self.limits.idle, kind: "without an answer" });
                }
            }
        }
    }

    /// rmcp knows that something failed; the wire and the keeper know why.
    async fn explain(&self, error: ServiceError) -> SessionError {
        match error {
            ServiceError::McpError(error) => error::of_rpc(error),
            ServiceError::TransportSend(sent) => match sent.error.downcast() {
                Ok(error) => match *error {
                    crate::link::LinkError::Closed | crate::link::LinkError::Broken(_) => self.over().await,
                    error => SessionError::Link(error),
                },
                Err(error) => SessionError::Link(crate::link::LinkError::Broken(error)),
            },
            ServiceError::TransportClosed | ServiceError::Cancelled { .. } => self.over().await,
            other => SessionError::Link(crate::link::LinkError::Broken(other.into())),
        }
    }

    async fn over(&self) -> SessionError {
        let _ = timeout(REASON_TIME, self.monitor.wait()).await;
        match self.monitor.take_failure() {
            Some(error) => SessionError::Link(error),
            None => SessionError::Ended(self.monitor.ended()),
        }
    }
}

/// Tells the server that nobody waits any more, without waiting for it ourselves.
fn cancel(handle: RequestHandle<RoleClient>) {
    tokio::spawn(async move {
        let _ = timeout(CANCEL_TIME, handle.cancel(Some("time limit".to_owned()))).await;
    });
}
