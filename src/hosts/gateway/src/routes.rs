//! The routes, and who may take them.

use std::{
    collections::HashMap,
    fmt::Debug,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use axum::{
    Router,
    body::{Body, to_bytes},
    extract::{Path, Request, State},
    middleware::{self, Next},
    response::Response,
    routing::{any, get},
};
use http::{HeaderValue, Method, StatusCode, header};
use portcullis::{Gate, secret::Secret};
use portcullis_projects::ProjectOptions;
use serde_json::json;
use tokio::io::{AsyncRead, AsyncWrite};

use crate::{
    endpoint::{Endpoint, EndpointOptions, Of},
    guard::{self, Guard, Refused},
    manage,
    mcp::{
        http::{self as carrier, HttpSessions},
        stdio,
    },
    pipe::{self, Pipes},
};

/// Longest body of a request, in bytes.
pub(crate) const BODY_BYTES: usize = 4 << 20;

/// What opens the endpoint.
#[derive(Debug, Clone)]
pub struct Tokens {
    /// Opens `/mcp`; whoever is on this machine comes in where there is none.
    pub mcp: Option<Secret>,
    /// Opens the management API.
    pub management: Secret,
}

/// What a host brings.
#[derive(Debug)]
pub struct GatewayParts {
    /// The gate; its approver may wait for ever, since questions are answered by id.
    pub gate: Gate,
    /// What opens the endpoint.
    pub tokens: Tokens,
    /// Names and origins.
    pub guard: Guard,
    /// Where projects are, and what of them is given out.
    pub projects: ProjectOptions,
    /// How calls are decided.
    pub options: EndpointOptions,
}

/// The endpoint of one gate. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Gateway(pub(crate) Arc<Inner>);

#[derive(Debug)]
pub(crate) struct Inner {
    pub(crate) gate: Gate,
    tokens: Tokens,
    guard: Guard,
    pub(crate) projects: ProjectOptions,
    options: EndpointOptions,
    all: Served,
    of_groups: Mutex<HashMap<String, Arc<Served>>>,
    of_servers: Mutex<HashMap<String, Arc<Served>>>,
    pub(crate) calls: manage::Calls,
    pub(crate) pipes: Pipes,
}

/// One endpoint with its sessions.
#[derive(Debug)]
struct Served {
    endpoint: Arc<Endpoint>,
    sessions: HttpSessions,
}

impl Served {
    fn new(endpoint: Arc<Endpoint>) -> Self {
        Self { endpoint, sessions: HttpSessions::default() }
    }
}

impl Gateway {
    /// An endpoint that listens nowhere yet.
    #[must_use]
    pub fn new(parts: GatewayParts) -> Self {
        let GatewayParts { gate, tokens, guard, projects, options } = parts;
        Self(Arc::new_cyclic(|inner| Inner {
            all: Served::new(Endpoint::new(inner, &gate, options, Of::All)),
            gate,
            tokens,
            guard,
            projects,
            options,
            of_groups: Mutex::default(),
            of_servers: Mutex::default(),
            calls: manage::Calls::default(),
            pipes: Pipes::default(),
        }))
    }

    /// Every route: `/mcp`, `/servers/{id}/mcp`, `/groups/{id}/mcp`, `/health`, `/ready`, `/api`.
    pub fn router(&self) -> Router {
        Router::new()
            .route("/mcp", any(all))
            .route("/servers/{id}/mcp", any(of_server))
            .route("/groups/{id}/mcp", any(of_group))
            .route("/health", get(async || StatusCode::OK))
            .route("/ready", get(ready))
            .route(pipe::PATH, get(pipe::open))
            .merge(manage::routes())
            .fallback(async || StatusCode::NOT_FOUND)
            .with_state(self.clone())
            .layer(middleware::from_fn_with_state(self.clone(), guarded))
    }

    /// One that nobody can reach: for a host that carries out operations itself.
    #[must_use]
    pub fn local(gate: Gate, projects: ProjectOptions) -> Self {
        let mut nobodys = [0; 32];
        // Without random numbers it is still served nowhere.
        let _ = getrandom::fill(&mut nobodys);
        let management = Secret::new(nobodys.iter().map(|byte| format!("{byte:02x}")).collect::<String>());
        let (tokens, guard) = (Tokens { mcp: None, management }, Guard::default());
        Self::new(GatewayParts { gate, tokens, guard, projects, options: EndpointOptions::default() })
    }

    /// Serves one client over a pair of streams, a message a line, until its input ends; the group of
    /// this id alone where one is given.
    ///
    /// # Errors
    ///
    /// What reading or writing said.
    pub async fn serve_stream(
        &self,
        group: Option<&str>,
        input: impl AsyncRead + Unpin,
        output: impl AsyncWrite + Unpin,
    ) -> std::io::Result<()> {
        match group {
            // No token opened it, so none that is made anew ends it.
            Some(id) => {
                let endpoint = self.endpoint(Of::Group { id: id.to_owned(), token: None });
                stdio::serve(&endpoint, input, output).await
            }
            None => stdio::serve(&self.0.all.endpoint, input, output).await,
        }
    }

    /// Whether a request holds the token of the management API.
    pub(crate) fn manages(&self, headers: &http::HeaderMap) -> bool {
        guard::is_token(guard::bearer(headers), self.0.tokens.management.reveal())
    }

    fn opens(&self, headers: &http::HeaderMap) -> bool {
        match &self.0.tokens.mcp {
            Some(token) => guard::is_token(guard::bearer(headers), token.reveal()),
            None => true,
        }
    }

    fn endpoint(&self, of: Of) -> Arc<Endpoint> {
        Endpoint::new(&Arc::downgrade(&self.0), &self.0.gate, self.0.options, of)
    }

    /// The endpoint that shows one server.
    fn server(&self, name: &str) -> Arc<Served> {
        let mut known = self.0.of_servers.lock().unwrap_or_else(PoisonError::into_inner);
        let made = || Arc::new(Served::new(self.endpoint(Of::Server(name.to_owned()))));
        known.entry(name.to_owned()).or_insert_with(made).clone()
    }

    /// The endpoint of a group, if `token` opens it. Sessions that another token opened are not there any more.
    async fn group(&self, id: &str, token: &str) -> Option<Arc<Served>> {
        let group = self.0.gate.open_group(id, token).await.ok().flatten();
        let Some(group) = group else {
            let known = self.of_groups().get(id).cloned();
            if let Some(served) = known
                && served.endpoint.is_over().await
            {
                served.endpoint.end();
                let mut known = self.of_groups();
                if known.get(id).is_some_and(|other| Arc::ptr_eq(other, &served)) {
                    known.remove(id);
                }
            }
            return None;
        };
        let of = Of::Group { id: group.id, token: group.token };
        let mut known = self.of_groups();
        if let Some(served) = known.get(id).filter(|served| served.endpoint.of == of) {
            return Some(served.clone());
        }
        let served = Arc::new(Served::new(self.endpoint(of)));
        if let Some(old) = known.insert(id.to_owned(), served.clone()) {
            old.endpoint.end();
        }
        Some(served)
    }

    fn of_groups(&self) -> MutexGuard<'_, HashMap<String, Arc<Served>>> {
        self.0.of_groups.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The server of this id, if it is enabled.
async fn enabled(gate: &Gate, id: &str) -> Option<String> {
    let servers = gate.servers().await.ok()?;
    servers.into_iter().find(|server| server.id == id && server.enabled).map(|server| server.name)
}

/// Before any route: who asks, and from where.
async fn guarded(State(gateway): State<Gateway>, request: Request, next: Next) -> Response {
    let mut response = match gateway.0.guard.check(&request) {
        Ok(()) => next.run(request).await,
        Err(Refused(status, why)) => {
            let mut response = Response::new(Body::from(json!({"error": why}).to_string()));
            *response.status_mut() = status;
            response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
            response
        }
    };
    let headers = response.headers_mut();
    headers.insert(header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    headers.entry(header::CACHE_CONTROL).or_insert(HeaderValue::from_static("no-store"));
    response
}

async fn all(State(gateway): State<Gateway>, request: Request) -> Response {
    if !gateway.opens(request.headers()) {
        return guard::unauthorized();
    }
    carried(&gateway.0.all, request).await
}

/// One server alone, under its own names: for clients and prompts that know these.
async fn of_server(State(gateway): State<Gateway>, Path(id): Path<String>, request: Request) -> Response {
    if !gateway.opens(request.headers()) {
        return guard::unauthorized();
    }
    match enabled(&gateway.0.gate, &id).await {
        Some(name) => carried(&gateway.server(&name), request).await,
        None => status(StatusCode::NOT_FOUND),
    }
}

async fn of_group(State(gateway): State<Gateway>, Path(id): Path<String>, request: Request) -> Response {
    // One answer for every reason: a token tells nothing about groups that it does not open.
    let served = match guard::bearer(request.headers()) {
        Some(token) => gateway.group(&id, token).await,
        None => None,
    };
    match served {
        Some(served) => carried(&served, request).await,
        None => guard::unauthorized(),
    }
}

async fn carried(served: &Served, request: Request) -> Response {
    let (parts, body) = request.into_parts();
    match parts.method {
        Method::POST => {
            let body = match to_bytes(body, BODY_BYTES).await {
                Ok(body) => body,
                Err(_) => return status(StatusCode::PAYLOAD_TOO_LARGE),
            };
            carrier::post(&served.endpoint, &served.sessions, &parts.headers, &body).await
        }
        Method::GET => carrier::get(&served.sessions, &parts.headers).await,
        Method::DELETE => carrier::delete(&served.sessions, &parts.headers),
        _ => {
            let mut response = status(StatusCode::METHOD_NOT_ALLOWED);
            response.headers_mut().insert(header::ALLOW, HeaderValue::from_static("GET, POST, DELETE"));
            response
        }
    }
}

pub(crate) fn status(status: StatusCode) -> Response {
    let mut response = Response::new(Body::empty());
    *response.status_mut() = status;
    response
}

/// Where each server stands, for whoever may know.
async fn ready(State(gateway): State<Gateway>, request: Request) -> Response {
    // Where anybody may call, still nobody learns which servers there are.
    let opens = gateway.0.tokens.mcp.is_some() && gateway.opens(request.headers());
    if opens || gateway.manages(request.headers()) {
        return manage::answer(manage::ready(&gateway).await);
    }
    guard::unauthorized()
}
