//! rmcp's HTTP worker as a wire whose errors are typed and go to whoever sent the message.

use std::{fmt, sync::Arc, time::Duration};

use futures::{FutureExt, future::BoxFuture};
use portcullis::{
    Limits,
    link::{Failure, LinkError, Wire},
    rmcp::model::JsonRpcMessage,
};
use rmcp::transport::{
    StreamableHttpClientTransport, Transport as _, common::client_side_sse::ExponentialBackoff,
    streamable_http_client::StreamableHttpClientTransportConfig,
};
use tokio::sync::watch;

use super::{
    Client,
    address::Address,
    client::{Failed, Incoming, Outgoing, Quiet, Shared, locked},
    events,
    headers::Headers,
};

/// Requests that wait for their answer at one time; more wait to be sent.
const CONCURRENT: usize = 64;
/// Attempts to get a stream back, one after the other.
const RESUMPTIONS: usize = 5;
/// Longest pause between two of them.
const LONGEST_PAUSE: Duration = Duration::from_secs(30);

/// A [`Wire`] over streamable HTTP.
pub(crate) struct HttpWire {
    worker: StreamableHttpClientTransport<Client>,
    shared: Arc<Shared>,
    /// Gone once the wire is closed.
    open: Option<watch::Sender<()>>,
}

impl fmt::Debug for HttpWire {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HttpWire").field("shared", &self.shared).finish_non_exhaustive()
    }
}

impl HttpWire {
    pub(super) fn new(
        http: reqwest::Client,
        address: &Address,
        headers: Headers,
        limits: &Limits,
    ) -> (Self, Arc<Shared>) {
        let shared = Arc::new(Shared::new(http, address.host(), limits.message_bytes, limits.stop_grace));
        let (open, opened) = watch::channel(());
        let client = Client { shared: shared.clone(), open: opened };
        let mut pauses = ExponentialBackoff::default();
        pauses.max_times = Some(RESUMPTIONS);
        pauses.max_delay = Some(LONGEST_PAUSE);
        let mut config = StreamableHttpClientTransportConfig::with_uri(address.as_str())
            .reinit_on_expired_session(false)
            .max_concurrent_requests(CONCURRENT);
        config.custom_headers = headers;
        config.retry_config = Arc::new(pauses);
        let worker = StreamableHttpClientTransport::with_client(client, config);
        (Self { worker, shared: shared.clone(), open: Some(open) }, shared)
    }
}

impl Wire for HttpWire {
    /// For a request that is answered by a stream, completes once the answer or its failure is
    /// there.
    fn send(&mut self, message: Outgoing) -> BoxFuture<'static, Result<(), LinkError>> {
        let id = match &message {
            JsonRpcMessage::Request(request) => Some(request.id.clone()),
            _ => None,
        };
        let (sent, shared) = (self.worker.send(message), self.shared.clone());
        async move {
            sent.await.map_err(|error| link_error(error, &shared.failure))?;
            let stream = id.and_then(|id| locked(&shared.streams).remove(&id));
            match stream {
                Some(told) => told.await.map_or(Ok(()), Err),
                None => Ok(()),
            }
        }
        .boxed()
    }

    fn receive(&mut self) -> BoxFuture<'_, Option<Incoming>> {
        async move {
            loop {
                let message = self.worker.receive().await?;
                let told = events::answered(&message).is_some_and(|id| locked(&self.shared.told).remove(id));
                if !told {
                    return Some(message);
                }
            }
        }
        .boxed()
    }

    fn close(&mut self) -> BoxFuture<'_, Result<(), LinkError>> {
        self.open = None;
        // The worker ends the session, which may take as long as a server likes.
        let grace = self.shared.grace;
        let closed = tokio::time::timeout(grace, self.worker.close());
        closed.map(|closed| closed.unwrap_or(Ok(())).map_err(|_| LinkError::Closed)).boxed()
    }

    fn failure(&self) -> Failure {
        self.shared.failure.clone()
    }

    /// rmcp's worker turns some of them into headers.
    fn reads_arguments(&self) -> bool {
        true
    }
}

fn link_error(error: Failed, failure: &Failure) -> LinkError {
    match error {
        Failed::Client(Quiet(error)) => error,
        Failed::TransportChannelClosed => failure.take().unwrap_or(LinkError::Closed),
        // Nothing else is made by the client, and the worker's own say nothing of a server.
        other => LinkError::Broken(other.into()),
    }
}
