//! Streamable HTTP as a wire: each message a POST of its own, its answer the response.

use std::{sync::Arc, time::Duration};

use futures::{FutureExt, future::BoxFuture};
use portcullis::{
    link::LinkError,
    serde_json::{self, value::RawValue},
    wire::{Inbox, Kind, Outgoing, Received, Wire, WireTraits},
};
use reqwest::{
    Response, StatusCode,
    header::{self, HeaderMap},
};
use tokio::{sync::watch, time::timeout};

use super::{
    body,
    connection::Connection,
    events::{self, End, Position},
    reply,
};

/// Attempts to get a stream back, one after the other.
const RESUMPTIONS: u32 = 5;
/// How long the first message after the handshake waits for the stream of what the server says by
/// itself: what it says before that is lost.
const STREAM_TIME: Duration = Duration::from_secs(3);
/// Attempts at a request that changes nothing, of a server that is busy.
const BUSY_ATTEMPTS: u32 = 3;
/// Longest pause that such a server is given.
const BUSY_PAUSE: Duration = Duration::from_secs(5);

/// A [`Wire`] over streamable HTTP.
#[derive(Debug)]
pub(crate) struct HttpWire {
    connection: Arc<Connection>,
    /// How far the stream of what the server says by itself is.
    stream: watch::Sender<Stream>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stream {
    /// The handshake is not over.
    Early,
    /// It may be opened.
    Wanted,
    /// It is open, or there will be none.
    Settled,
    /// The session is gone.
    Expired,
}

impl HttpWire {
    pub(super) fn new(connection: Arc<Connection>) -> Self {
        Self { connection, stream: watch::Sender::new(Stream::Early) }
    }

    async fn post(&self, message: &Outgoing, inbox: &Inbox) -> Result<(), LinkError> {
        let response = self.response(message).await?;
        match message.kind {
            Kind::Request(id) => {
                if message.method == "initialize" && response.status().is_success() {
                    self.connection.begin_session(&response);
                }
                self.answer(response, id, inbox).await
            }
            _ if !response.status().is_success() => Err(self.connection.status(response.status())),
            _ => {
                if message.method == "notifications/initialized" && !message.stateless {
                    self.stream.send_replace(Stream::Wanted);
                    // Without one everything works but what the server says by itself.
                    let settled = self.stream.subscribe();
                    let _ = timeout(STREAM_TIME, { settled }.wait_for(|stream| *stream != Stream::Wanted)).await;
                }
                Ok(())
            }
        }
    }

    /// The response to a message; of a server that is busy, asked for again where that is harmless.
    async fn response(&self, message: &Outgoing) -> Result<Response, LinkError> {
        let harmless = is_harmless(&message.method);
        let mut attempt = 1;
        loop {
            let response = self.connection.post(message).await?;
            if let Err(error) = reply::refusal(&response, self.connection.host(), self.connection.is_in_session()) {
                if matches!(error, LinkError::SessionExpired) {
                    self.connection.forget_session();
                    self.stream.send_replace(Stream::Expired);
                }
                return Err(error);
            }
            let busy = matches!(response.status(), StatusCode::TOO_MANY_REQUESTS | StatusCode::SERVICE_UNAVAILABLE);
            if !busy || !harmless || attempt == BUSY_ATTEMPTS {
                return Ok(response);
            }
            tokio::time::sleep(retry_after(response.headers())).await;
            attempt += 1;
        }
    }

    /// Hands over what came back for a request.
    async fn answer(&self, response: Response, id: u64, inbox: &Inbox) -> Result<(), LinkError> {
        let connection = &self.connection;
        let status = response.status();
        let kind = reply::content_type(response.headers());
        if !status.is_success() {
            return self.refused(response, &kind, id, inbox).await;
        }
        if matches!(status, StatusCode::ACCEPTED | StatusCode::NO_CONTENT) {
            return Err(connection.not_mcp(format!("HTTP status {} without an answer", status.as_u16())));
        }
        match kind.as_str() {
            "text/event-stream" => self.events(response, id, inbox).await,
            "application/json" => {
                let text = body::read(response, connection.limit).await?;
                if text.trim_ascii().is_empty() {
                    return Err(connection.not_mcp("an empty body"));
                }
                match inbox.deliver_owned(text) {
                    Ok(Received::Answer(answered)) if answered == id => Ok(()),
                    _ => Err(connection.not_mcp("JSON that does not answer the request")),
                }
            }
            _ if response.content_length() == Some(0) => Err(connection.not_mcp("an empty body")),
            kind => Err(connection.not_mcp(reply::named(kind))),
        }
    }

    /// A status that is an error; a server may still say what is wrong in words of MCP, and leave out
    /// which request it means.
    async fn refused(&self, response: Response, kind: &str, id: u64, inbox: &Inbox) -> Result<(), LinkError> {
        #[derive(serde::Deserialize)]
        struct Nameless<'a> {
            #[serde(borrow)]
            error: &'a RawValue,
            #[serde(default)]
            id: Option<serde::de::IgnoredAny>,
        }
        let status = response.status();
        if kind == "application/json" {
            let text = body::read(response, body::ERROR_BYTES).await.unwrap_or_default();
            let text = match serde_json::from_slice::<Nameless<'_>>(&text) {
                Ok(Nameless { error, id: None }) if error.get().starts_with('{') => {
                    format!(r#"{{"jsonrpc":"2.0","id":{id},"error":{}}}"#, error.get()).into_bytes()
                }
                Ok(_) => text,
                Err(_) => Vec::new(),
            };
            if inbox.deliver_owned(text) == Ok(Received::Answer(id)) {
                return Ok(());
            }
        }
        Err(self.connection.status(status))
    }

    /// An answer that comes as a stream, which is taken up again where it can be.
    async fn events(&self, response: Response, id: u64, inbox: &Inbox) -> Result<(), LinkError> {
        let limit = self.connection.limit;
        let mut position = Position::default();
        let mut end = events::read(response, limit, Some(id), &mut position, inbox).await;
        for attempt in 0..=RESUMPTIONS {
            let error = match end {
                End::Answered => return Ok(()),
                // What goes over the bound does so again when it is asked for again.
                End::Over(error @ LinkError::TooLarge { .. }) => return Err(error),
                End::Over(error) => error,
            };
            let Some(last) = position.last_event.clone().filter(|_| attempt < RESUMPTIONS) else {
                return Err(error);
            };
            tokio::time::sleep(position.pause(attempt)).await;
            end = match self.connection.get(Some(&last)).await {
                Ok(response) if is_stream(&response) => {
                    events::read(response, limit, Some(id), &mut position, inbox).await
                }
                // There is no rest to be had.
                Ok(_) => return Err(error),
                Err(error) => End::Over(error),
            };
        }
        Err(LinkError::Broken("the stream ended before the answer".into()))
    }

    /// What the server says by itself, as long as it does.
    async fn listen(&self, inbox: &Inbox) {
        let mut position = Position::default();
        let mut failures = 0;
        while failures < RESUMPTIONS {
            match self.connection.get(position.last_event.as_deref()).await {
                Ok(response) if is_stream(&response) => {
                    self.settle();
                    let before = position.last_event.clone();
                    events::read(response, self.connection.limit, None, &mut position, inbox).await;
                    // A server that ends every stream at once is asked less and less often.
                    failures = if position.last_event == before { failures + 1 } else { 0 };
                }
                Ok(response) if response.status().is_server_error() => failures += 1,
                // Everything but what a server says by itself works without.
                Ok(_) => return,
                Err(_) => failures += 1,
            }
            tokio::time::sleep(position.pause(failures)).await;
        }
    }

    fn settle(&self) {
        self.stream.send_if_modified(|stream| {
            let wanted = *stream == Stream::Wanted;
            if wanted {
                *stream = Stream::Settled;
            }
            wanted
        });
    }
}

/// Whether a request may go out twice.
fn is_harmless(method: &str) -> bool {
    matches!(method, "initialize" | "server/discover" | "ping") || method.ends_with("/list")
}

/// How long a busy server wants to be left alone, within bounds. A date is not read: whoever writes one
/// means more than we wait.
fn retry_after(headers: &HeaderMap) -> Duration {
    let seconds = headers.get(header::RETRY_AFTER).and_then(|value| value.to_str().ok());
    let asked = seconds.and_then(|value| value.trim().parse().ok()).map_or(Duration::from_secs(1), Duration::from_secs);
    asked.min(BUSY_PAUSE)
}

fn is_stream(response: &Response) -> bool {
    response.status().is_success() && reply::content_type(response.headers()) == "text/event-stream"
}

impl Wire for HttpWire {
    fn run(&self, inbox: Inbox) -> BoxFuture<'_, Result<(), LinkError>> {
        async move {
            let mut stream = self.stream.subscribe();
            let listening = async {
                let _ = stream.wait_for(|stream| *stream != Stream::Early).await;
                self.listen(&inbox).await;
                self.settle();
                std::future::pending::<()>().await;
            };
            let mut watched = self.stream.subscribe();
            tokio::select! {
                () = listening => Ok(()),
                _ = watched.wait_for(|stream| *stream == Stream::Expired) => Err(LinkError::SessionExpired),
                () = self.connection.shut_down() => Ok(()),
            }
        }
        .boxed()
    }

    /// Completes once the answer, or what is wrong with it, is there.
    fn send<'a>(&'a self, message: Outgoing, inbox: &'a Inbox) -> BoxFuture<'a, Result<(), LinkError>> {
        async move {
            let unanswered = self.connection.watch();
            let sent = tokio::select! {
                biased;
                () = self.connection.shut_down() => Err(LinkError::Closed),
                sent = self.post(&message, inbox) => sent,
            };
            unanswered.ended();
            sent
        }
        .boxed()
    }

    fn close(&self) -> BoxFuture<'_, ()> {
        async move {
            self.connection.shut();
            self.connection.end_session().await;
        }
        .boxed()
    }

    fn traits(&self) -> WireTraits {
        WireTraits { untouched: true, headers: true, probes: true, cancels: true }
    }
}

#[cfg(test)]
mod tests {
    use reqwest::header::HeaderValue;

    use super::*;

    #[test]
    fn r33_what_a_busy_server_wants_is_waited_for_up_to_a_bound() {
        for (after, seconds) in [
            ("0", 0),
            ("2", 2),
            (" 2 ", 2),
            ("99999999", 5),
            ("99999999999999999999999", 1),
            ("-1", 1),
            ("1.5", 1),
            ("", 1),
            ("Wed, 21 Oct 2015 07:28:00 GMT", 1),
        ] {
            let headers = HeaderMap::from_iter([(header::RETRY_AFTER, HeaderValue::from_static(after))]);
            assert_eq!(retry_after(&headers), Duration::from_secs(seconds), "{after}");
        }
        assert_eq!(retry_after(&HeaderMap::new()), Duration::from_secs(1));
    }
}
