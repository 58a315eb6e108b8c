//! The management API: everything that a person does with servers, tools, questions and the trail, as JSON.
//!
//! One table ([`operations`]) says what there is, how dangerous it is, and where it can be reached; the routes,
//! the OpenAPI document and the tests are made from it.

mod calls;
mod client;
mod error;
mod events;
mod openapi;
mod operations;

use axum::{
    Router,
    body::{Body, to_bytes},
    extract::{Query, RawPathParams, Request, State},
    response::Response,
    routing::{self, MethodFilter},
};
use http::{HeaderValue, StatusCode, header};
use serde_json::{Map, Value, json};

pub(crate) use self::{calls::Calls, client::encoded};
pub use self::{
    client::ManagementClient,
    error::ApiError,
    openapi::document,
    operations::{Grade, Operation, Verb, operations},
};
use crate::{
    guard,
    routes::{BODY_BYTES, Gateway, status},
};

/// Where the operations are.
pub const ROOT: &str = "/api/v1";

pub(crate) fn routes() -> Router<Gateway> {
    let mut router = Router::new();
    for operation in operations() {
        let filter = match operation.verb {
            Verb::Get => MethodFilter::GET,
            Verb::Post => MethodFilter::POST,
            Verb::Delete => MethodFilter::DELETE,
        };
        let handler =
            move |State(gateway): State<Gateway>,
                  path: RawPathParams,
                  query: Query<Map<String, Value>>,
                  request: Request| async move { run(operation, gateway, &path, query.0, request).await };
        router = router.route(&format!("{ROOT}{}", operation.path), routing::on(filter, handler));
    }
    router
        .route(&format!("{ROOT}/events"), routing::get(events))
        .route(&format!("{ROOT}/openapi.json"), routing::get(described))
}

async fn run(
    operation: &'static Operation,
    gateway: Gateway,
    path: &RawPathParams,
    query: Map<String, Value>,
    request: Request,
) -> Response {
    if !gateway.manages(request.headers()) {
        return guard::unauthorized();
    }
    let Ok(body) = to_bytes(request.into_body(), BODY_BYTES).await else {
        return status(StatusCode::PAYLOAD_TOO_LARGE);
    };
    let mut input = query;
    if !body.is_empty() {
        match serde_json::from_slice(&body) {
            Ok(Value::Object(members)) => input.extend(members),
            _ => return answer(Err(ApiError::usage("the body is a JSON object"))),
        }
    }
    input.extend(path.iter().map(|(name, value)| (name.to_owned(), value.into())));
    answer(operation.carry_out(&gateway, Value::Object(input)).await)
}

/// What an operation came to, as a response.
pub(crate) fn answer(result: Result<String, ApiError>) -> Response {
    let (status, body) = match result {
        Ok(body) => (StatusCode::OK, body),
        Err(error) => (error.status(), error.to_json().to_string()),
    };
    let mut response = Response::new(Body::from(body));
    *response.status_mut() = status;
    response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
    response
}

async fn events(State(gateway): State<Gateway>, request: Request) -> Response {
    if !gateway.manages(request.headers()) {
        return guard::unauthorized();
    }
    events::stream(&gateway)
}

async fn described(State(gateway): State<Gateway>, request: Request) -> Response {
    if !gateway.manages(request.headers()) {
        return guard::unauthorized();
    }
    answer(Ok(document().to_string()))
}

/// Where each server stands.
pub(crate) async fn ready(gateway: &Gateway) -> Result<String, ApiError> {
    let gate = &gateway.0.gate;
    let servers = gate.servers().await?.into_iter().map(|server| {
        let connection = gate.connection(&server.name);
        json!({"name": server.name, "trusted": server.trusted, "enabled": server.enabled, "connection": connection})
    });
    Ok(json!({"servers": servers.collect::<Vec<_>>(), "questions": gate.questions().open().len()}).to_string())
}
