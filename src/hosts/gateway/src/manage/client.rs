//! The other side of the API, for a host that finds an endpoint running.

use bytes::Bytes;
use http::{Request, header};
use http_body_util::{BodyExt as _, Full, Limited};
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;
use portcullis::secret::Secret;
use serde_json::{Map, Value};
use tokio::net::TcpStream;

use super::{ApiError, ROOT, Verb, operations};

/// Longest answer that is read, in bytes.
const ANSWER_BYTES: usize = 64 << 20;

/// Carries operations out at an endpoint of this machine.
#[derive(Debug, Clone)]
pub struct ManagementClient {
    port: u16,
    token: Secret,
}

impl ManagementClient {
    /// For the endpoint at `port` of loopback.
    #[must_use]
    pub fn new(port: u16, token: Secret) -> Self {
        Self { port, token }
    }

    /// Carries an operation out; its result as JSON text. Takes as long as the operation: a call may wait for a
    /// person. Dropping the future takes a call back.
    ///
    /// # Errors
    ///
    /// What the endpoint says, or that it does not answer.
    pub async fn run(&self, operation: &str, input: Value) -> Result<String, ApiError> {
        let operation = operations()
            .find(|other| other.id == operation)
            .ok_or_else(|| ApiError::usage(format!("there is no operation `{operation}`")))?;
        let mut input = match input {
            Value::Object(members) => members,
            _ => Map::new(),
        };
        let mut path = ROOT.to_owned();
        for part in operation.path.split('/').filter(|part| !part.is_empty()) {
            path.push('/');
            match part.strip_prefix('{').and_then(|part| part.strip_suffix('}')) {
                None => path.push_str(part),
                Some(name) => {
                    let value = input.remove(name).unwrap_or_default();
                    path.push_str(&encoded(value.as_str().unwrap_or_default()));
                }
            }
        }
        let mut body = String::new();
        if operation.verb == Verb::Post {
            body = Value::Object(input).to_string();
        } else if !input.is_empty() {
            let text = |value: &Value| value.as_str().map_or_else(|| value.to_string(), str::to_owned);
            let pairs = input.iter().map(|(name, value)| format!("{name}={}", encoded(&text(value))));
            path = format!("{path}?{}", pairs.collect::<Vec<_>>().join("&"));
        }
        self.send(operation.verb.name(), &path, body).await
    }

    pub(crate) fn port(&self) -> u16 {
        self.port
    }

    pub(crate) fn token(&self) -> &Secret {
        &self.token
    }

    pub(crate) fn unreachable(&self, error: &dyn std::error::Error) -> ApiError {
        ApiError {
            class: "unreachable".to_owned(),
            code: "endpoint".to_owned(),
            message: format!("the endpoint at port {} does not answer: {error}", self.port),
            help: Some("is `portcullis serve` still running?".to_owned()),
        }
    }

    async fn send(&self, method: &str, path: &str, body: String) -> Result<String, ApiError> {
        let unreachable = |error: &dyn std::error::Error| self.unreachable(error);
        let stream = TcpStream::connect(("127.0.0.1", self.port)).await.map_err(|error| unreachable(&error))?;
        let (mut sender, connection) =
            http1::handshake(TokioIo::new(stream)).await.map_err(|error| unreachable(&error))?;
        let request = Request::builder()
            .method(method.to_uppercase().as_str())
            .uri(path)
            .header(header::HOST, format!("127.0.0.1:{}", self.port))
            .header(header::AUTHORIZATION, format!("Bearer {}", self.token.reveal()))
            .header(header::CONTENT_TYPE, "application/json")
            .body(Full::new(Bytes::from(body)))
            .map_err(|error| unreachable(&error))?;
        let exchange = async {
            let response = sender.send_request(request).await.map_err(|error| unreachable(&error))?;
            let status = response.status();
            let body = Limited::new(response.into_body(), ANSWER_BYTES).collect().await;
            let body = body.map_err(|error| unreachable(&*error))?.to_bytes();
            Ok::<_, ApiError>((status, String::from_utf8_lossy(&body).into_owned()))
        };
        let (status, body) = tokio::select! {
            exchanged = exchange => exchanged?,
            // It ends with the exchange, or before it.
            Err(error) = connection => return Err(unreachable(&error)),
        };
        if status.is_success() {
            return Ok(body);
        }
        let told = serde_json::from_str(&body).ok().and_then(|body| ApiError::from_json(&body));
        Err(told.unwrap_or_else(|| ApiError {
            class: "internal".to_owned(),
            code: "endpoint".to_owned(),
            message: format!("the endpoint at port {} answered with {status}", self.port),
            help: None,
        }))
    }
}

/// As a part of a path or of a query.
pub(crate) fn encoded(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for byte in text.bytes() {
        if byte.is_ascii_alphanumeric() || b"-._~".contains(&byte) {
            out.push(char::from(byte));
        } else {
            out.push_str(&format!("%{byte:02X}"));
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn s56_what_stands_in_an_address_is_encoded() {
        assert_eq!(encoded("a/b c?#%é\r\n.."), "a%2Fb%20c%3F%23%25%C3%A9%0D%0A..");
    }
}
