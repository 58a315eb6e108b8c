//! What happens, as server-sent events: `questions` and `connection`.

use std::{convert::Infallible, sync::Arc, time::Duration};

use axum::{body::Body, response::Response};
use bytes::Bytes;
use futures::stream;
use http::{HeaderValue, header};
use portcullis::{Gate, gate::ConnectionEvent};
use serde::Serialize;
use tokio::sync::{broadcast, watch};

use crate::routes::Gateway;

/// How often a stream that has nothing to say shows that it is there.
const ALIVE: Duration = Duration::from_secs(15);

struct Events {
    gate: Gate,
    questions: watch::Receiver<u64>,
    connections: broadcast::Receiver<ConnectionEvent>,
    first: bool,
}

pub(super) fn stream(gateway: &Gateway) -> Response {
    let gate = gateway.0.gate.clone();
    let events =
        Events { questions: gate.questions().changes(), connections: gate.connection_events(), gate, first: true };
    let events = stream::unfold(events, |mut events| async move {
        let event = events.next().await?;
        Some((Ok::<_, Infallible>(event), events))
    });
    let mut response = Response::new(Body::from_stream(events));
    response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static("text/event-stream"));
    response
}

impl Events {
    /// All that is open comes first, and again with each change: whoever missed one has the newest.
    async fn next(&mut self) -> Option<Bytes> {
        if std::mem::take(&mut self.first) {
            return Some(event("questions", &self.gate.questions().open()));
        }
        loop {
            return Some(tokio::select! {
                Ok(()) = self.questions.changed() => event("questions", &self.gate.questions().open()),
                connection = self.connections.recv() => match connection {
                    Ok(connection) => event("connection", &connection),
                    Err(broadcast::error::RecvError::Lagged(_)) => continue,
                    Err(broadcast::error::RecvError::Closed) => return None,
                },
                () = tokio::time::sleep(ALIVE) => Bytes::from_static(b": \n\n"),
            });
        }
    }
}

fn event(name: &str, data: &impl Serialize) -> Bytes {
    let data = Arc::new(serde_json::to_string(data).unwrap_or_default());
    Bytes::from(format!("event: {name}\ndata: {data}\n\n"))
}
