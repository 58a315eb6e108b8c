//! The pipe: the protocol of `serve --stdio`, a message a line, on a connection to an endpoint that runs already.
//!
//! A program that a client starts hands its own input and output on to it, so that there is one gate for all clients,
//! whoever started it. It holds the management token, as every command of the same person does.

use std::sync::Arc;

use axum::{
    body::Body,
    extract::{Query, Request, State},
    response::Response,
};
use http::{HeaderValue, StatusCode, header};
use hyper_util::rt::TokioIo;
use portcullis::display::escape;
use serde::Deserialize;
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::TcpStream,
    sync::Semaphore,
};

use crate::{
    guard,
    manage::{ApiError, ManagementClient},
    routes::{Gateway, status},
};

/// What both sides call the protocol.
const PROTOCOL: &str = "portcullis-pipe";
/// Where it is.
pub(crate) const PATH: &str = "/api/v1/pipe";
/// Most pipes at one time.
const PIPES: usize = 64;
/// Longest head of an answer, in bytes.
const HEAD_BYTES: usize = 16 << 10;

/// The places for pipes.
#[derive(Debug)]
pub(crate) struct Pipes(Arc<Semaphore>);

impl Default for Pipes {
    fn default() -> Self {
        Self(Arc::new(Semaphore::new(PIPES)))
    }
}

/// What a pipe shows.
#[derive(Debug, Deserialize)]
pub(crate) struct Shows {
    /// A group alone.
    #[serde(default)]
    group: Option<String>,
}

/// Turns a connection into a pipe.
pub(crate) async fn open(
    State(gateway): State<Gateway>,
    Query(Shows { group }): Query<Shows>,
    mut request: Request,
) -> Response {
    if !gateway.manages(request.headers()) {
        return guard::unauthorized();
    }
    if request.headers().get(header::UPGRADE).is_none_or(|wanted| wanted != PROTOCOL) {
        return status(StatusCode::UPGRADE_REQUIRED);
    }
    if let Some(id) = &group
        && let Err(error) = gateway.0.gate.group(id).await
    {
        return crate::manage::answer(Err(error.into()));
    }
    let Ok(place) = gateway.0.pipes.0.clone().try_acquire_owned() else {
        return status(StatusCode::SERVICE_UNAVAILABLE);
    };
    let upgraded = hyper::upgrade::on(&mut request);
    tokio::spawn(async move {
        let _place = place;
        let Ok(stream) = upgraded.await else { return };
        let (input, output) = tokio::io::split(TokioIo::new(stream));
        if let Err(error) = gateway.serve_stream(group.as_deref(), input, output).await {
            tracing::debug!(%error, "a pipe ended");
        }
    });
    let mut response = Response::new(Body::empty());
    *response.status_mut() = StatusCode::SWITCHING_PROTOCOLS;
    let headers = response.headers_mut();
    headers.insert(header::UPGRADE, HeaderValue::from_static(PROTOCOL));
    headers.insert(header::CONNECTION, HeaderValue::from_static("upgrade"));
    response
}

impl ManagementClient {
    /// A pipe to the endpoint, which shows all or one group; lines of the protocol go both ways.
    ///
    /// # Errors
    ///
    /// What the endpoint says, or that it does not answer.
    pub async fn pipe(&self, group: Option<&str>) -> Result<TcpStream, ApiError> {
        let mut stream =
            TcpStream::connect(("127.0.0.1", self.port())).await.map_err(|error| self.unreachable(&error))?;
        let _ = stream.set_nodelay(true);
        let query = group.map(|group| format!("?group={}", super::manage::encoded(group))).unwrap_or_default();
        let head = format!(
            "GET {PATH}{query} HTTP/1.1\r\nHost: 127.0.0.1:{}\r\nAuthorization: Bearer {}\r\nConnection: upgrade\r\n\
             Upgrade: {PROTOCOL}\r\n\r\n",
            self.port(),
            self.token().reveal()
        );
        stream.write_all(head.as_bytes()).await.map_err(|error| self.unreachable(&error))?;
        // Byte by byte: what stands behind the head is the pipe's already.
        let mut head = Vec::new();
        while !head.ends_with(b"\r\n\r\n") && head.len() < HEAD_BYTES {
            head.push(stream.read_u8().await.map_err(|error| self.unreachable(&error))?);
        }
        if head.starts_with(b"HTTP/1.1 101 ") {
            return Ok(stream);
        }
        let line = String::from_utf8_lossy(&head).lines().next().unwrap_or_default().to_owned();
        let said = format!("the endpoint at port {} opens no pipe: {}", self.port(), escape(&line));
        Err(ApiError { code: "endpoint".to_owned(), class: "internal".to_owned(), ..ApiError::usage(said) })
    }
}
