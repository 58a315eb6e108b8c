//! Streamable HTTP: one message a request, answered as JSON unless something has to be told first.

use std::{
    collections::HashMap,
    convert::Infallible,
    pin::Pin,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant},
};

use axum::{body::Body, response::Response};
use bytes::Bytes;
use futures::stream;
use http::{HeaderMap, HeaderValue, StatusCode, header};
use serde_json::value::RawValue;
use tokio::sync::mpsc;

use super::{
    client::Client,
    dispatch,
    headers::{self, Era},
    listening::{ALIVE, Said, Told},
    message::{self, Message, RpcError},
    streams::Streams,
};
use crate::endpoint::Endpoint;

/// Most sessions of one endpoint; the one that was used longest ago makes room.
const SESSIONS: usize = 512;
/// How long a session is kept that nobody uses.
const KEPT: Duration = Duration::from_secs(24 * 3600);
/// Messages on their way to one request.
const ON_THE_WAY: usize = 64;

/// How long an answer may take before its stream is begun, so that whoever waits sees that somebody is there.
const EARLY: Duration = Duration::from_secs(1);

/// What an answer comes from.
pub(super) enum Work {
    UnderWay(Pin<Box<dyn Future<Output = String> + Send>>),
    Done(String),
}

/// The sessions of one endpoint.
#[derive(Debug, Default)]
pub(crate) struct HttpSessions(Mutex<HashMap<String, Kept>>);

#[derive(Debug)]
struct Kept {
    client: Arc<Client>,
    used: Instant,
}

impl HttpSessions {
    fn lock(&self) -> MutexGuard<'_, HashMap<String, Kept>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn get(&self, id: &str) -> Option<Arc<Client>> {
        let mut sessions = self.lock();
        let kept = sessions.get_mut(id)?;
        kept.used = Instant::now();
        Some(kept.client.clone())
    }

    fn add(&self, client: Arc<Client>) -> Option<String> {
        let id = super::unguessable().ok()?;
        let mut sessions = self.lock();
        sessions.retain(|_, kept| kept.used.elapsed() < KEPT);
        if sessions.len() >= SESSIONS
            && let Some(oldest) = sessions.iter().min_by_key(|(_, kept)| kept.used).map(|(id, _)| id.clone())
        {
            sessions.remove(&oldest);
        }
        sessions.insert(id.clone(), Kept { client, used: Instant::now() });
        Some(id)
    }
}

fn json(status: StatusCode, body: String) -> Response {
    let mut response = Response::new(Body::from(body));
    *response.status_mut() = status;
    response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
    response
}

fn failed(status: StatusCode, id: Option<&str>, error: RpcError) -> Response {
    json(status, message::answer(id, &Err(error)))
}

fn empty(status: StatusCode) -> Response {
    let mut response = Response::new(Body::empty());
    *response.status_mut() = status;
    response
}

/// Whether the client takes answers of this type.
fn accepts(headers: &HeaderMap, kind: &str) -> bool {
    let mut accepted = headers.get_all(header::ACCEPT).iter().filter_map(|value| value.to_str().ok()).peekable();
    let (any, own) = ("*/*", kind.split_once('/').map_or("", |(group, _)| group));
    accepted.peek().is_none()
        || accepted.flat_map(|value| value.split(',')).any(|range| {
            let (range, parameters) = range.split_once(';').unwrap_or((range, ""));
            let range = range.trim();
            let wanted = range.eq_ignore_ascii_case(kind) || range == any || range == format!("{own}/*");
            wanted
                && !parameters
                    .split(';')
                    .any(|parameter| matches!(parameter.trim(), "q=0" | "q=0.0" | "q=0.00" | "q=0.000"))
        })
}

/// A message of a client.
pub(crate) async fn post(
    endpoint: &Arc<Endpoint>,
    sessions: &HttpSessions,
    headers: &HeaderMap,
    body: &Bytes,
) -> Response {
    if !accepts(headers, "application/json") && !accepts(headers, "text/event-stream") {
        let why = "the answer is application/json or text/event-stream";
        return failed(StatusCode::NOT_ACCEPTABLE, None, RpcError::new(RpcError::INVALID_REQUEST, why));
    }
    let message = match Message::read(body) {
        Ok(message) => message,
        Err(error) => return failed(StatusCode::BAD_REQUEST, None, error),
    };
    let session = headers.get(headers::SESSION).and_then(|value| value.to_str().ok());
    match message {
        Message::Request { id, method, params } => match headers::era(headers, &method, params) {
            Err(error) => failed(StatusCode::BAD_REQUEST, Some(id.get()), error),
            Ok(Era::Stateless(identity)) => {
                if method == "tools/call"
                    && let Err(error) = headers::arguments(endpoint, headers, params).await
                {
                    return failed(StatusCode::BAD_REQUEST, Some(id.get()), error);
                }
                let client = Client::stateless(endpoint.clone(), identity);
                if method == "subscriptions/listen" {
                    return listen(&client, id, params).await;
                }
                answered(client, id.get(), &method, params, accepts(headers, "text/event-stream")).await
            }
            Ok(Era::Handshake) if method == "initialize" => begin(endpoint, sessions, id, params).await,
            Ok(Era::Handshake) => match client_of(sessions, session) {
                Ok(client) => answered(client, id.get(), &method, params, accepts(headers, "text/event-stream")).await,
                Err(status) => failed(status, Some(id.get()), no_session(status)),
            },
        },
        Message::Notification { method, params } => {
            // Without a session there is nothing that it could be about.
            if let Some(session) = session {
                match client_of(sessions, Some(session)) {
                    Ok(client) if method == "notifications/cancelled" => {
                        if let Some(id) = message::cancelled(params) {
                            client.cancel(id);
                        }
                    }
                    Ok(_) => {}
                    Err(status) => return failed(status, None, no_session(status)),
                }
            }
            empty(StatusCode::ACCEPTED)
        }
        Message::Answer { id, answer } => match client_of(sessions, session) {
            Ok(client) => {
                client.answered(id, answer);
                empty(StatusCode::ACCEPTED)
            }
            Err(status) => failed(status, None, no_session(status)),
        },
    }
}

fn client_of(sessions: &HttpSessions, session: Option<&str>) -> Result<Arc<Client>, StatusCode> {
    let session = session.ok_or(StatusCode::BAD_REQUEST)?;
    sessions.get(session).ok_or(StatusCode::NOT_FOUND)
}

fn no_session(status: StatusCode) -> RpcError {
    let why = match status {
        StatusCode::NOT_FOUND => "there is no such session: begin with `initialize`",
        _ => "`Mcp-Session-Id` is missing: begin with `initialize`",
    };
    RpcError::new(RpcError::INVALID_REQUEST, why)
}

/// The beginning of a session.
async fn begin(
    endpoint: &Arc<Endpoint>,
    sessions: &HttpSessions,
    id: &RawValue,
    params: Option<&RawValue>,
) -> Response {
    let client = Client::new(endpoint.clone());
    let (on, _) = mpsc::channel(1);
    let result = dispatch::request(&client, "initialize", params, &on).await;
    let is_ok = result.is_ok();
    let mut response = json(StatusCode::OK, message::answer(Some(id.get()), &result));
    if is_ok
        && let Some(session) = sessions.add(client)
        && let Ok(session) = HeaderValue::from_str(&session)
    {
        response.headers_mut().insert(headers::SESSION, session);
    }
    response
}

/// The status of an answer in the newer era, where it is an error.
fn status(client: &Client, error: &RpcError) -> StatusCode {
    if !client.stateless {
        return StatusCode::OK;
    }
    match error.code {
        RpcError::METHOD_NOT_FOUND => StatusCode::NOT_FOUND,
        RpcError::UNSUPPORTED_REVISION | RpcError::MISSING_CAPABILITY | RpcError::HEADER_MISMATCH => {
            StatusCode::BAD_REQUEST
        }
        _ => StatusCode::OK,
    }
}

/// Carries out a request: plain JSON, or a stream from the first thing that has to be told before the result.
/// Whoever goes away takes the request back.
async fn answered(client: Arc<Client>, id: &str, method: &str, params: Option<&RawValue>, streams: bool) -> Response {
    let (on, mut told) = mpsc::channel(ON_THE_WAY);
    if !streams {
        // It hears no more than the result: a question for it fails at once.
        told.close();
    }
    let (id, method, params) = (id.to_owned(), method.to_owned(), params.map(ToOwned::to_owned));
    let failure = Arc::new(std::sync::OnceLock::new());
    let noted = failure.clone();
    let asked = client.clone();
    let mut work: Pin<Box<dyn Future<Output = String> + Send>> = Box::pin(async move {
        let result = carried(&asked, &id, &method, params.as_deref(), &on).await;
        if let Err(error) = &result {
            let _ = noted.set(status(&asked, error));
        }
        message::answer(Some(&id), &result)
    });
    let (first, work) = tokio::select! {
            biased;
            Some(first) = told.recv() => (Some(first), Work::UnderWay(work)),
            answer = &mut work => {
                // What it told with its last breath comes before it.
                match told.try_recv() {
                    Ok(first) => (Some(first), Work::Done(answer)),
                    Err(_) => return json(failure.get().copied().unwrap_or(StatusCode::OK), answer),
                }
            }
            () = tokio::time::sleep(EARLY), if streams => (None, Work::UnderWay(work)),
    };
    // The newer revisions know no way to take a stream up again: there, whoever goes away takes the request back.
    if !client.stateless && client.streams.has_room() {
        return Streams::begin(&client, first.as_deref(), told, work);
    }
    streamed(first, told, work)
}

/// A request, unless the client takes it back or loses its right to the endpoint.
pub(crate) async fn carried(
    client: &Arc<Client>,
    id: &str,
    method: &str,
    params: Option<&RawValue>,
    on: &mpsc::Sender<String>,
) -> Result<String, RpcError> {
    let (_under_way, cancelled) = client.begin(id)?;
    tokio::select! {
        biased;
        Ok(()) = cancelled => Err(RpcError::new(RpcError::CANCELLED, "you took the request back")),
        () = client.endpoint.over() => {
            let why = "the group was removed or given another token while this was under way; ask the person for \
                       the new one";
            Err(RpcError::new(RpcError::INVALID_REQUEST, why))
        }
        result = dispatch::request(client, method, params, on) => result,
    }
}

fn event(message: &str) -> Bytes {
    event_of(message, None)
}

/// A message as an event, perhaps with an id.
pub(super) fn event_of(message: &str, id: Option<&str>) -> Bytes {
    // A message is one line: texts hold their line ends escaped, and white space between may go.
    let line = if message.contains(['\n', '\r']) { message.replace(['\n', '\r'], " ") } else { message.to_owned() };
    let (before, id) = if let Some(id) = id { ("id: ", id) } else { ("", "") };
    let end = if id.is_empty() { "" } else { "\n" };
    Bytes::from([before, id, end, "event: message\ndata: ", &line, "\n\n"].concat())
}

pub(super) fn event_stream(body: Body) -> Response {
    let mut response = Response::new(body);
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("text/event-stream"));
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-cache, no-transform"));
    response
}

/// What is told, and the answer at the end.
pub(super) struct Messages {
    told: mpsc::Receiver<String>,
    work: Option<Work>,
}

impl Messages {
    pub(super) fn new(told: mpsc::Receiver<String>, work: Work) -> Self {
        Self { told, work: Some(work) }
    }

    /// The next message; nothing behind the answer. Cancel-safe.
    pub(super) async fn next(&mut self) -> Option<String> {
        if let Some(Work::UnderWay(work)) = &mut self.work {
            tokio::select! {
                biased;
                Some(message) = self.told.recv() => return Some(message),
                answer = work => self.work = Some(Work::Done(answer)),
            }
        }
        // What was told with the last breath comes before the answer.
        match (self.told.try_recv(), self.work.take()?) {
            (Ok(message), work) => {
                self.work = Some(work);
                Some(message)
            }
            (Err(_), Work::Done(answer)) => Some(answer),
            (Err(_), Work::UnderWay(_)) => None,
        }
    }
}

fn streamed(first: Option<String>, told: mpsc::Receiver<String>, work: Work) -> Response {
    // Something comes at once: that somebody is there, if nothing else.
    let first = first.map_or(Bytes::from_static(b": \n\n"), |first| event(&first));
    let events = stream::unfold((Some(first), Messages::new(told, work)), |(first, mut messages)| async move {
        if let Some(first) = first {
            return Some((Ok::<_, Infallible>(first), (None, messages)));
        }
        let bytes = tokio::select! {
            message = messages.next() => event(&message?),
            () = tokio::time::sleep(ALIVE) => Bytes::from_static(b": \n\n"),
        };
        Some((Ok(bytes), (None, messages)))
    });
    event_stream(Body::from_stream(events))
}

/// The stream of what a client with a session is told unasked.
pub(crate) async fn get(sessions: &HttpSessions, headers: &HeaderMap) -> Response {
    let session = headers.get(headers::SESSION).and_then(|value| value.to_str().ok());
    if session.is_none() || !accepts(headers, "text/event-stream") {
        return empty(StatusCode::METHOD_NOT_ALLOWED);
    }
    match client_of(sessions, session) {
        Ok(client) => {
            let last = headers.get(headers::LAST_EVENT).and_then(|value| value.to_str().ok());
            match last.and_then(|last| Streams::resume(&client, last)) {
                Some(response) => response,
                // What is not kept is lost; what comes from now on is told.
                None => stream_of(Told::of_session(&client).await),
            }
        }
        Err(status) => failed(status, None, no_session(status)),
    }
}

/// Ends a session.
pub(crate) fn delete(sessions: &HttpSessions, headers: &HeaderMap) -> Response {
    let session = headers.get(headers::SESSION).and_then(|value| value.to_str().ok());
    match session {
        None => empty(StatusCode::BAD_REQUEST),
        Some(session) if sessions.lock().remove(session).is_some() => empty(StatusCode::NO_CONTENT),
        Some(_) => empty(StatusCode::NOT_FOUND),
    }
}

/// `subscriptions/listen`: a stream that says first what will be told.
async fn listen(client: &Arc<Client>, id: &RawValue, params: Option<&RawValue>) -> Response {
    match Told::listen(client, id, params).await {
        Ok(told) => stream_of(told),
        Err(error) => failed(StatusCode::BAD_REQUEST, Some(id.get()), error),
    }
}

fn stream_of(told: Told) -> Response {
    let events = stream::unfold(told, |mut told| async move {
        let bytes = match told.next().await? {
            Said::Message(message) => event(&message),
            Said::Nothing => Bytes::from_static(b": \n\n"),
        };
        Some((Ok::<_, Infallible>(bytes), told))
    });
    event_stream(Body::from_stream(events))
}
