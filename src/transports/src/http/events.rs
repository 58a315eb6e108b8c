//! Server-sent events, bounded, with results kept as text.
//!
//! A stream that answers a request says how it failed to whoever sent the request: the error is
//! left with its [`Waiter`], and a message for that id, which rmcp wants, is made up and dropped
//! again by the wire.

use bytes::Bytes;
use futures::{
    Stream, StreamExt,
    stream::{self, BoxStream},
};
use portcullis::{
    link::LinkError,
    raw::Pending,
    rmcp::model::{ErrorData, JsonRpcMessage, RequestId},
    serde_json,
};
use rmcp::transport::streamable_http_client::SseError;
use sse_stream::{Sse, SseStream};
use tokio::sync::oneshot;

use super::client::Incoming;

/// Bounds of the time between two attempts to resume that a server may ask for, in milliseconds.
const RETRY_MILLIS: (u64, u64) = (500, 30_000);

/// Events as rmcp takes them.
pub(super) type Events = BoxStream<'static, Result<Sse, SseError>>;

/// The request that a stream answers.
pub(super) struct Waiter {
    pub(super) id: RequestId,
    /// Dropped without a word once the answer is there.
    pub(super) failed: oneshot::Sender<LinkError>,
    /// Notes that the error was handed over.
    pub(super) note: Box<dyn FnOnce(RequestId) + Send>,
}

/// The events of a body, each of at most `limit` bytes.
pub(super) fn read(response: reqwest::Response, limit: usize, pending: Pending, waiter: Option<Waiter>) -> Events {
    let events = SseStream::from_bytes_stream(bounded(response, limit));
    let resumable = waiter.is_none();
    let reader = Reader { events: events.boxed(), pending, waiter, resumable };
    stream::unfold(Some(reader), |reader| async {
        let mut reader = reader?;
        match reader.next().await {
            Ok(event) => Some((Ok(event), Some(reader))),
            Err(last) => last.map(|event| (Ok(event), None)),
        }
    })
    .boxed()
}

struct Reader {
    events: Events,
    pending: Pending,
    waiter: Option<Waiter>,
    /// Whether rmcp will ask for the rest of a stream that ends early.
    resumable: bool,
}

impl Reader {
    /// The next event, or the last one, if there is one.
    async fn next(&mut self) -> Result<Sse, Option<Sse>> {
        match self.events.next().await {
            Some(Ok(mut event)) => {
                let (least, most) = RETRY_MILLIS;
                event.retry = event.retry.map(|millis| millis.clamp(least, most));
                self.resumable |= event.id.is_some();
                if matches!(event.event.as_deref(), None | Some("" | "message")) {
                    event.data = event.data.and_then(|data| self.message(&data));
                }
                Ok(event)
            }
            Some(Err(SseError::Body(error))) => Err(self.fail(match error.downcast::<LinkError>() {
                Ok(error) => *error,
                Err(error) => LinkError::Broken(error),
            })),
            Some(Err(error)) => Err(self.fail(LinkError::Broken(error.into()))),
            None => Err(self.fail(LinkError::Broken("the stream ended before the answer".into()))),
        }
    }

    /// One message, with a wanted result as text; nothing for what is none.
    fn message(&mut self, data: &str) -> Option<String> {
        let message = self.pending.decode(data.as_bytes()).ok()?;
        if let (Some(id), Some(waiter)) = (answered(&message), &self.waiter)
            && *id == waiter.id
        {
            self.waiter = None;
        }
        serde_json::to_string(&message).ok()
    }

    /// Nothing more comes. What goes over the bound does so again when it is asked for again.
    fn fail(&mut self, error: LinkError) -> Option<Sse> {
        if self.resumable && !matches!(error, LinkError::TooLarge { .. }) {
            return None;
        }
        let Waiter { id, failed, note } = self.waiter.take()?;
        self.pending.forget(&id);
        note(id.clone());
        let _ = failed.send(error);
        let message: Incoming = JsonRpcMessage::error(ErrorData::internal_error("failed", None), Some(id));
        Some(Sse::default().data(serde_json::to_string(&message).ok()?))
    }
}

/// The id of the request that a message answers.
pub(super) fn answered(message: &Incoming) -> Option<&RequestId> {
    match message {
        JsonRpcMessage::Response(response) => Some(&response.id),
        JsonRpcMessage::Error(error) => error.id.as_ref(),
        _ => None,
    }
}

fn bounded(response: reqwest::Response, limit: usize) -> impl Stream<Item = Result<Bytes, LinkError>> + Send {
    let mut gauge = Gauge::default();
    let mut over = false;
    response
        .bytes_stream()
        .map(move |chunk| {
            let chunk = chunk.map_err(super::body::broken)?;
            if gauge.fits(&chunk, limit) { Ok(chunk) } else { Err(LinkError::TooLarge { limit }) }
        })
        .take_while(move |chunk| std::future::ready(!std::mem::replace(&mut over, chunk.is_err())))
}

/// Measures the event that is being received.
#[derive(Debug, Default)]
struct Gauge {
    event: usize,
    line: usize,
    comment: bool,
    after_return: bool,
}

impl Gauge {
    /// Whether every event that `chunk` is a part of stays within `limit`.
    fn fits(&mut self, chunk: &[u8], limit: usize) -> bool {
        chunk.iter().all(|&byte| {
            match byte {
                b'\n' if self.after_return => {}
                b'\n' | b'\r' => {
                    let kept = if self.comment { 0 } else { self.line };
                    self.event = if self.line == 0 { 0 } else { self.event + kept };
                    (self.line, self.comment) = (0, false);
                }
                _ => {
                    self.comment |= self.line == 0 && byte == b':';
                    self.line += 1;
                }
            }
            self.after_return = byte == b'\r';
            self.event + self.line <= limit
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn s59_an_event_is_measured_across_lines_and_chunks() {
        for (chunks, fits) in [
            (&["data: 12", "34\n\n", "data: 1234\n\n"][..], true),
            (&["data: 12345\n\n"], false),
            (&["data: 1\n", "data: 2\n"], false),
            (&[": 12345678", "\n", ": 12345678", "\ndata: 1\n\n"], true),
            (&[": 123456789"], false),
            (&["data: 1\r\n\r\ndata: 1\r\rdata: 1\n\n"], true),
        ] {
            let mut gauge = Gauge::default();
            assert_eq!(chunks.iter().all(|chunk| gauge.fits(chunk.as_bytes(), 10)), fits, "{chunks:?}");
        }
    }
}
