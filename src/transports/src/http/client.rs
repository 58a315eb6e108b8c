//! rmcp's client trait over reqwest.

use std::{
    collections::{HashMap, HashSet},
    fmt,
    sync::{Arc, Mutex as StdMutex, MutexGuard, PoisonError},
    time::Duration,
};

use portcullis::{
    link::{Failure, LinkError},
    raw::{self, Pending},
    rmcp::model::{ClientNotification, ClientRequest, ErrorData, JsonRpcMessage, RequestId},
    serde_json::{self, value::RawValue},
};
use reqwest::{
    Response, StatusCode,
    header::{self, HeaderMap, HeaderName, HeaderValue},
};
use rmcp::transport::streamable_http_client::{
    StreamableHttpClient, StreamableHttpError, StreamableHttpPostResponse as Answer,
};
use tokio::sync::{Mutex, oneshot, watch};

use super::{
    body,
    events::{self, Events, Waiter},
    headers::Headers,
    reply,
};

pub(super) use portcullis::link::{Incoming, Outgoing};

const SESSION: HeaderName = HeaderName::from_static("mcp-session-id");
const LAST_EVENT: HeaderName = HeaderName::from_static("last-event-id");

pub(super) type Failed = StreamableHttpError<Quiet>;

/// An error that says no more in `Debug` than to a person: rmcp logs it.
pub(crate) struct Quiet(pub(super) LinkError);

impl fmt::Debug for Quiet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl fmt::Display for Quiet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.0, f)
    }
}

impl std::error::Error for Quiet {}

/// What wire, client and keeper know of one connection.
pub(crate) struct Shared {
    pub(super) http: reqwest::Client,
    pub(super) host: String,
    /// Of one message, in bytes.
    pub(super) limit: usize,
    /// For the end of a session.
    pub(super) grace: Duration,
    pub(super) pending: Pending,
    pub(super) failure: Failure,
    /// Requests whose answer comes as events.
    pub(super) streams: StdMutex<HashMap<RequestId, oneshot::Receiver<LinkError>>>,
    /// Requests that were told why already.
    pub(super) told: StdMutex<HashSet<RequestId>>,
    session: Mutex<Option<Session>>,
}

struct Session {
    uri: Arc<str>,
    id: String,
    headers: Headers,
}

impl fmt::Debug for Shared {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Shared").field("host", &self.host).finish_non_exhaustive()
    }
}

pub(super) fn locked<T>(mutex: &StdMutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Shared {
    pub(super) fn new(http: reqwest::Client, host: String, limit: usize, grace: Duration) -> Self {
        Self {
            http,
            host,
            limit,
            grace,
            pending: Pending::showing_tools(),
            failure: Failure::default(),
            streams: StdMutex::default(),
            told: StdMutex::default(),
            session: Mutex::default(),
        }
    }

    /// Ends the session, once. Whoever comes second waits for the first.
    pub(crate) async fn delete_session(&self) {
        let mut slot = self.session.lock().await;
        let Some(session) = slot.as_ref() else { return };
        let headers = all_headers(session.headers.clone(), None, Some(&session.id), None);
        let request = self.http.delete(&*session.uri).headers(headers).timeout(self.grace);
        // A server that refuses keeps the session until it forgets it.
        let answered = request.send().await.is_ok();
        tracing::debug!(host = self.host, answered, "asked the server to end the session");
        *slot = None;
    }

    fn not_mcp(&self, what: impl Into<String>) -> LinkError {
        LinkError::NotMcp { host: self.host.clone(), what: what.into() }
    }

    fn status(&self, status: StatusCode) -> LinkError {
        LinkError::Status { status: status.as_u16(), host: self.host.clone() }
    }

    /// Why nothing came back, without the URL.
    fn unsent(&self, error: reqwest::Error) -> LinkError {
        if error.is_connect() {
            LinkError::Unreachable { host: self.host.clone(), source: error.without_url().into() }
        } else {
            body::broken(error)
        }
    }
}

/// One connection, as rmcp's worker uses it.
#[derive(Clone)]
pub(crate) struct Client {
    pub(super) shared: Arc<Shared>,
    /// Ends with the wire, and with it every request: the worker does not look while it waits for
    /// the first one.
    pub(super) open: watch::Receiver<()>,
}

impl Client {
    async fn post(
        &self,
        uri: Arc<str>,
        message: &Outgoing,
        session: Option<Arc<str>>,
        headers: HeaderMap,
    ) -> Result<Answer, LinkError> {
        let shared = &self.shared;
        shared.pending.note(message);
        let mut text = Vec::with_capacity(256);
        raw::encode(message, &mut text).map_err(|error| LinkError::Broken(error.into()))?;
        let request = shared.http.post(&*uri).headers(headers).header(header::CONTENT_TYPE, "application/json");
        let response = request
            .header(header::ACCEPT, "application/json, text/event-stream")
            .header(header::ACCEPT_ENCODING, "identity")
            .body(text)
            .send()
            .await
            .map_err(|error| shared.unsent(error))?;
        reply::refusal(&response, &shared.host, session.is_some())?;
        match message {
            JsonRpcMessage::Request(request) => {
                let discovers = session.is_none() && matches!(request.request, ClientRequest::DiscoverRequest(_));
                self.answer(response, &request.id, discovers).await
            }
            _ if response.status().is_success() => Ok(Answer::Accepted),
            _ => Err(shared.status(response.status())),
        }
    }

    /// What came back for a request.
    async fn answer(&self, response: Response, id: &RequestId, discovers: bool) -> Result<Answer, LinkError> {
        let shared = &self.shared;
        let status = response.status();
        let kind = reply::content_type(response.headers());
        if !status.is_success() {
            return self.refused(response, &kind, id, discovers).await;
        }
        if matches!(status, StatusCode::ACCEPTED | StatusCode::NO_CONTENT) {
            return Err(shared.not_mcp(format!("HTTP status {} without an answer", status.as_u16())));
        }
        let session = response.headers().get(SESSION).and_then(|id| id.to_str().ok()).map(str::to_owned);
        match kind.as_str() {
            "text/event-stream" => Ok(Answer::Sse(self.events(response, id), session)),
            "application/json" => {
                let text = body::read(response, shared.limit).await?;
                self.decode(&text, id).map(|message| Answer::Json(message, session))
            }
            _ if response.content_length() == Some(0) => Err(shared.not_mcp("an empty body")),
            kind => Err(shared.not_mcp(reply::named(kind))),
        }
    }

    fn decode(&self, text: &[u8], id: &RequestId) -> Result<Incoming, LinkError> {
        let shared = &self.shared;
        if text.trim_ascii().is_empty() {
            return Err(shared.not_mcp("an empty body"));
        }
        match shared.pending.decode(text) {
            // It may be one that was made up for a text that cannot be read.
            Ok(JsonRpcMessage::Error(_)) if serde_json::from_slice::<&RawValue>(text).is_err() => {
                Err(shared.not_mcp("broken JSON"))
            }
            Ok(message) if events::answered(&message) == Some(id) => Ok(message),
            _ => Err(shared.not_mcp("JSON that does not answer the request")),
        }
    }

    /// A status that is an error; a server may still say what is wrong in words of MCP.
    async fn refused(
        &self,
        response: Response,
        kind: &str,
        id: &RequestId,
        discovers: bool,
    ) -> Result<Answer, LinkError> {
        let status = response.status();
        let text = if kind == "application/json" {
            body::read(response, body::ERROR_BYTES).await.unwrap_or_default()
        } else {
            Vec::new()
        };
        if let Ok(answer @ JsonRpcMessage::Error(_)) = self.decode(&text, id) {
            return Ok(Answer::Json(answer, None));
        }
        // A server of before `server/discover`: the handshake goes on with `initialize`.
        if discovers && status.is_client_error() {
            let error = match serde_json::from_slice::<Incoming>(&text) {
                Ok(JsonRpcMessage::Error(error)) => error.error,
                _ => ErrorData::invalid_request("not known to the server", None),
            };
            self.shared.pending.forget(id);
            return Ok(Answer::Json(JsonRpcMessage::error(error, Some(id.clone())), None));
        }
        Err(self.shared.status(status))
    }

    fn events(&self, response: Response, id: &RequestId) -> Events {
        let shared = self.shared.clone();
        let (failed, told) = oneshot::channel();
        locked(&shared.streams).insert(id.clone(), told);
        let note = {
            let shared = shared.clone();
            Box::new(move |id| {
                locked(&shared.told).insert(id);
            })
        };
        let waiter = Waiter { id: id.clone(), failed, note };
        self.until_closed(events::read(response, shared.limit, shared.pending.clone(), Some(waiter)))
    }

    fn until_closed(&self, events: Events) -> Events {
        use futures::StreamExt as _;
        let mut open = self.open.clone();
        events.take_until(Box::pin(async move { drop(open.changed().await) })).boxed()
    }

    /// The error as rmcp's worker takes it; nothing of the message is left waiting.
    fn failed(&self, message: &Outgoing, error: LinkError) -> Failed {
        match message {
            JsonRpcMessage::Request(request) => self.shared.pending.forget(&request.id),
            // The worker ends with this one and keeps the reason to itself.
            JsonRpcMessage::Notification(note)
                if matches!(note.notification, ClientNotification::InitializedNotification(_)) =>
            {
                self.shared.failure.set(error);
                return Failed::TransportChannelClosed;
            }
            _ => {}
        }
        Failed::Client(Quiet(error))
    }
}

/// All but what is the same for every request.
fn all_headers(headers: Headers, token: Option<String>, session: Option<&str>, last: Option<&str>) -> HeaderMap {
    let mut all: HeaderMap = headers.into_iter().collect();
    let mut set = |name: HeaderName, value: &str| {
        if let Ok(value) = HeaderValue::from_str(value) {
            all.insert(name, value);
        }
    };
    if let Some(session) = session {
        set(SESSION, session);
    }
    if let Some(last) = last {
        set(LAST_EVENT, last);
    }
    if let Some(Ok(value)) = token.map(|token| super::headers::bearer(&token)) {
        all.insert(header::AUTHORIZATION, value);
    }
    all
}

impl StreamableHttpClient for Client {
    type Error = Quiet;

    async fn post_message(
        &self,
        uri: Arc<str>,
        message: Outgoing,
        session: Option<Arc<str>>,
        token: Option<String>,
        headers: Headers,
    ) -> Result<Answer, Failed> {
        let mut open = self.open.clone();
        let all = all_headers(headers.clone(), token, session.as_deref(), None);
        let posted = tokio::select! {
            biased;
            _ = open.changed() => Err(LinkError::Closed),
            posted = self.post(uri.clone(), &message, session, all) => posted,
        };
        if let Ok(Answer::Json(_, Some(id)) | Answer::Sse(_, Some(id))) = &posted
            && let JsonRpcMessage::Request(request) = &message
            && matches!(request.request, ClientRequest::InitializeRequest(_))
        {
            *self.shared.session.lock().await = Some(Session { uri, id: id.clone(), headers });
        }
        posted.map_err(|error| self.failed(&message, error))
    }

    async fn delete_session(
        &self,
        _uri: Arc<str>,
        _session: Arc<str>,
        _token: Option<String>,
        headers: Headers,
    ) -> Result<(), Failed> {
        if let Some(session) = self.shared.session.lock().await.as_mut() {
            session.headers = headers;
        }
        self.shared.delete_session().await;
        Ok(())
    }

    async fn get_stream(
        &self,
        uri: Arc<str>,
        session: Option<Arc<str>>,
        last: Option<String>,
        token: Option<String>,
        headers: Headers,
    ) -> Result<Events, Failed> {
        let shared = &self.shared;
        let headers = all_headers(headers, token, session.as_deref(), last.as_deref());
        let request = shared.http.get(&*uri).headers(headers).header(header::ACCEPT, "text/event-stream");
        let response = request
            .header(header::ACCEPT_ENCODING, "identity")
            .send()
            .await
            .map_err(|error| Failed::Client(Quiet(shared.unsent(error))))?;
        let status = response.status();
        if status.is_server_error() {
            return Err(Failed::Client(Quiet(shared.status(status))));
        }
        let refused = reply::refusal(&response, &shared.host, session.is_some()).is_err();
        if refused || !status.is_success() || reply::content_type(response.headers()) != "text/event-stream" {
            // Everything but what a server says by itself works without.
            return Err(Failed::ServerDoesNotSupportSse);
        }
        Ok(self.until_closed(events::read(response, shared.limit, shared.pending.clone(), None)))
    }
}
