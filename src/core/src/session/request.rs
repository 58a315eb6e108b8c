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
const REASON_TIME: Duration = Duration::from_millis(800);

impl Session {
    /// Sends `request` and waits for its answer. Progress restarts the idle limit, not the absolute.
    pub(super) async fn request(&self, request: ClientRequest) -> Result<ServerResult, SessionError> {
        if self.is_over() {
            return Err(SessionError::NotRunning(self.monitor.ended()));
        }
        let absolute = Instant::now() + self.limits.limits.absolute;
        let sent = self.peer.send_cancellable_request(request, PeerRequestOptions::no_options());
        let handle = match timeout(self.limits.idle, sent).await {
            Ok(Ok(handle)) => handle,
            Ok(Err(error)) => return Err(self.explain(error).await),
            Err(_) => return Err(SessionError::TimedOut { limit: self.limits.idle, kind: "without an answer" }),
        };
        let watch = self.handler.watch(handle.progress_token.clone());
        let mut waiting = Waiting(Some(handle));
        let mut idle = Instant::now() + self.limits.idle;
        loop {
            tokio::select! {
                biased;
                answer = waiting.answer() => {
                    return match answer {
                        Ok(result) => Ok(result),
                        Err(error) => Err(self.explain(error).await),
                    };
                }
                () = sleep_until(absolute) => {
                    return Err(SessionError::TimedOut { limit: self.limits.limits.absolute, kind: "altogether" });
                }
                () = watch.progress() => idle = Instant::now() + self.limits.idle,
                () = sleep_until(idle) => {
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
        match self.monitor.failure() {
            Some(error) => SessionError::Link(error),
            None => SessionError::Ended(self.monitor.ended()),
        }
    }
}

/// A request without an answer. Dropping it, for whatever reason, tells the server that nobody waits.
struct Waiting(Option<RequestHandle<RoleClient>>);

impl Waiting {
    /// Cancel-safe.
    async fn answer(&mut self) -> Result<ServerResult, ServiceError> {
        let Some(handle) = &mut self.0 else { return Err(ServiceError::TransportClosed) };
        let answer = (&mut handle.rx).await.unwrap_or(Err(ServiceError::TransportClosed));
        self.0 = None;
        answer
    }
}

impl Drop for Waiting {
    fn drop(&mut self) {
        // Nobody is there to wait for it; it is bounded, and without a runtime the link is gone as well.
        if let (Some(handle), Ok(runtime)) = (self.0.take(), tokio::runtime::Handle::try_current()) {
            runtime.spawn(async move {
                let _ = timeout(CANCEL_TIME, handle.cancel(Some("nobody waits any more".to_owned()))).await;
            });
        }
    }
}
