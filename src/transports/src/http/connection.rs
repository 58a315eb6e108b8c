//! What every request of one connection has in common.

use std::{
    fmt,
    sync::{Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use portcullis::{
    link::LinkError,
    wire::{Kind, Outgoing},
};
use reqwest::{
    Method, RequestBuilder, Response, StatusCode,
    header::{self, HeaderMap, HeaderName, HeaderValue},
};
use tokio::sync::watch;

use super::{
    address::Address,
    body, certificate, headers,
    pool::{Pool, Unanswered},
};

const SESSION: HeaderName = HeaderName::from_static("mcp-session-id");
const REVISION: HeaderName = HeaderName::from_static("mcp-protocol-version");
const LAST_EVENT: HeaderName = HeaderName::from_static("last-event-id");
const METHOD: HeaderName = HeaderName::from_static("mcp-method");
const NAME: HeaderName = HeaderName::from_static("mcp-name");

/// What wire and keeper know of one connection.
pub(crate) struct Connection {
    pool: Pool,
    url: url::Url,
    host: String,
    /// Those of the definition.
    headers: HeaderMap,
    /// Of one message, in bytes.
    pub(super) limit: usize,
    /// For the end of a session.
    grace: Duration,
    state: Mutex<State>,
    /// Whoever ends the session has it.
    ending: tokio::sync::Mutex<()>,
    closed: watch::Sender<bool>,
}

#[derive(Debug, Default)]
struct State {
    /// The session's id, as the server gave it.
    session: Option<HeaderValue>,
    /// The protocol revision, for requests that belong to no message.
    revision: Option<HeaderValue>,
}

impl fmt::Debug for Connection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Connection").field("host", &self.host).finish_non_exhaustive()
    }
}

impl Connection {
    pub(super) fn new(pool: Pool, address: &Address, headers: HeaderMap, limit: usize, grace: Duration) -> Self {
        Self {
            pool,
            url: address.url().clone(),
            host: address.host(),
            headers,
            limit,
            grace,
            state: Mutex::default(),
            ending: tokio::sync::Mutex::default(),
            closed: watch::Sender::new(false),
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn host(&self) -> &str {
        &self.host
    }

    /// Watches over one request.
    pub(super) fn watch(&self) -> Unanswered<'_> {
        self.pool.watch()
    }

    /// Ends every request.
    pub(super) fn shut(&self) {
        self.closed.send_replace(true);
    }

    /// Completes once the wire is closed.
    pub(super) async fn shut_down(&self) {
        // An error means that it is gone.
        let _ = self.closed.subscribe().wait_for(|closed| *closed).await;
    }

    fn request(&self, method: Method) -> RequestBuilder {
        let mut headers = self.headers.clone();
        headers.insert(header::ACCEPT_ENCODING, HeaderValue::from_static("identity"));
        if let Some(session) = &self.state().session {
            headers.insert(SESSION, session.clone());
        }
        self.pool.client().request(method, self.url.clone()).headers(headers)
    }

    /// Posts one message.
    pub(super) async fn post(&self, message: &Outgoing) -> Result<Response, LinkError> {
        let mut headers = HeaderMap::with_capacity(8);
        headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
        headers.insert(header::ACCEPT, HeaderValue::from_static("application/json, text/event-stream"));
        let mut set = |name: HeaderName, value: &str| {
            if let Ok(value) = headers::encoded(value) {
                headers.insert(name, value);
            }
        };
        if let Some(revision) = &message.revision {
            set(REVISION, revision);
        }
        if message.stateless && message.kind != Kind::Answer {
            set(METHOD, &message.method);
            if let Some(name) = &message.name {
                set(NAME, name);
            }
            for (name, value) in &message.parameters {
                if let Ok(name) = HeaderName::try_from(format!("mcp-param-{name}")) {
                    set(name, value);
                }
            }
        }
        if let Some(revision) = headers.get(REVISION) {
            let mut state = self.state();
            if state.revision.as_ref() != Some(revision) {
                state.revision = Some(revision.clone());
            }
        }
        let request = self.request(Method::POST).headers(headers).body(message.text.clone());
        request.send().await.map_err(|error| self.unsent(error))
    }

    /// Asks for a stream of what the server says by itself, or for the rest of one.
    pub(super) async fn get(&self, last_event: Option<&str>) -> Result<Response, LinkError> {
        let mut request = self.request(Method::GET).header(header::ACCEPT, "text/event-stream");
        if let Some(revision) = self.state().revision.clone() {
            request = request.header(REVISION, revision);
        }
        if let Some(Ok(last)) = last_event.map(HeaderValue::from_str) {
            request = request.header(LAST_EVENT, last);
        }
        request.send().await.map_err(|error| self.unsent(error))
    }

    /// Whether the server keeps a session.
    pub(super) fn is_in_session(&self) -> bool {
        self.state().session.is_some()
    }

    /// Notes the session that a response to `initialize` began.
    pub(super) fn begin_session(&self, response: &Response) {
        if let Some(id) = response.headers().get(SESSION) {
            let mut id = id.clone();
            // Whoever knows it speaks in our name.
            id.set_sensitive(true);
            self.state().session = Some(id);
        }
    }

    /// The session is gone on the server's side.
    pub(super) fn forget_session(&self) {
        self.state().session = None;
    }

    /// Ends the session, once. Whoever comes second waits for the first.
    pub(crate) async fn end_session(&self) {
        let _one = self.ending.lock().await;
        if !self.is_in_session() {
            return;
        }
        let mut request = self.request(Method::DELETE).timeout(self.grace);
        if let Some(revision) = self.state().revision.clone() {
            request = request.header(REVISION, revision);
        }
        // A server that refuses keeps the session until it forgets it.
        let answered = request.send().await.is_ok();
        tracing::debug!(host = self.host, answered, "asked the server to end the session");
        self.forget_session();
    }

    pub(super) fn not_mcp(&self, what: impl Into<String>) -> LinkError {
        LinkError::NotMcp { host: self.host.clone(), what: what.into() }
    }

    pub(super) fn status(&self, status: StatusCode) -> LinkError {
        LinkError::Status { status: status.as_u16(), host: self.host.clone() }
    }

    /// Why nothing came back, without the URL.
    fn unsent(&self, error: reqwest::Error) -> LinkError {
        if let Some(problem) = certificate::problem(&error) {
            LinkError::Certificate { host: self.host.clone(), problem }
        } else if error.is_connect() {
            LinkError::Unreachable { host: self.host.clone(), source: error.without_url().into() }
        } else {
            body::broken(error)
        }
    }
}
