//! What a request over HTTP says twice, in headers and in its body (SEP-2243, SEP-2575), and which era it is of.

use std::borrow::Cow;

use base64::{Engine as _, prelude::BASE64_STANDARD};
use http::HeaderMap;
use serde::Deserialize;
use serde_json::{json, value::RawValue};

use super::{HANDSHAKES, STATELESS, client::Identity, message::RpcError, revisions};
use crate::endpoint::Endpoint;

pub(crate) const REVISION: &str = "mcp-protocol-version";
pub(crate) const LAST_EVENT: &str = "last-event-id";
pub(crate) const SESSION: &str = "mcp-session-id";
const METHOD: &str = "mcp-method";
const NAME: &str = "mcp-name";

/// What the body says of the protocol.
#[derive(Deserialize, Default)]
struct Meta<'a> {
    #[serde(borrow, default, rename = "io.modelcontextprotocol/protocolVersion")]
    revision: Option<Cow<'a, str>>,
    #[serde(borrow, default, rename = "io.modelcontextprotocol/clientInfo")]
    client: Option<&'a RawValue>,
    #[serde(borrow, default, rename = "io.modelcontextprotocol/clientCapabilities")]
    capabilities: Option<&'a RawValue>,
}

#[derive(Deserialize, Default)]
struct Params<'a> {
    #[serde(borrow, default, rename = "_meta")]
    meta: Option<Meta<'a>>,
    #[serde(borrow, default)]
    name: Option<Cow<'a, str>>,
    #[serde(borrow, default)]
    uri: Option<Cow<'a, str>>,
    #[serde(borrow, default, rename = "taskId")]
    task: Option<Cow<'a, str>>,
}

/// How a request is to be read.
#[derive(Debug)]
pub(crate) enum Era {
    /// As part of a session, or as the beginning of one.
    Handshake,
    /// For itself.
    Stateless(Identity),
}

fn header_of<'a>(headers: &'a HeaderMap, name: &str) -> Result<Option<&'a str>, RpcError> {
    let mut values = headers.get_all(name).iter();
    let Some(value) = values.next() else { return Ok(None) };
    let text = value.to_str().ok().filter(|_| values.next().is_none()).map(str::trim);
    text.map(Some).ok_or_else(|| mismatch(format!("`{name}` is one header of visible characters")))
}

fn mismatch(why: impl Into<String>) -> RpcError {
    RpcError::new(RpcError::HEADER_MISMATCH, why)
}

fn read<'a>(params: Option<&'a RawValue>) -> Params<'a> {
    params.map(|params| serde_json::from_str(params.get())).transpose().ok().flatten().unwrap_or_default()
}

/// Tells the era of a request, and checks its headers where they are part of it.
///
/// # Errors
///
/// What to answer, with status 400.
pub(crate) fn era(headers: &HeaderMap, method: &str, params: Option<&RawValue>) -> Result<Era, RpcError> {
    let revision = header_of(headers, REVISION)?;
    let params = read(params);
    let meta = params.meta.unwrap_or_default();
    let is_new = revision.is_some_and(|revision| revision >= STATELESS) && method != "initialize";
    if meta.revision.is_none() && !is_new && method != "server/discover" {
        return match revision {
            Some(revision) if revision < STATELESS && !HANDSHAKES.contains(&revision) => Err(unsupported(revision)),
            _ => Ok(Era::Handshake),
        };
    }
    if meta.revision.is_some() && revision != meta.revision.as_deref() {
        return Err(mismatch("`MCP-Protocol-Version` and `_meta` name different revisions"));
    }
    let identity = spoken(&meta)?;
    if header_of(headers, METHOD)? != Some(method) {
        return Err(mismatch("`Mcp-Method` is the method of the request"));
    }
    let named = match method {
        "tools/call" | "prompts/get" => params.name,
        "resources/read" => params.uri,
        "tasks/get" | "tasks/update" | "tasks/cancel" => params.task,
        _ => None,
    };
    if let Some(named) = named
        && header_of(headers, NAME)?.and_then(decoded).as_deref() != Some(&*named)
    {
        return Err(mismatch("`Mcp-Name` is the name, the address or the task that the request is about"));
    }
    Ok(Era::Stateless(identity))
}

/// Tells the era of a request on a stream, which has no headers.
///
/// # Errors
///
/// What to answer.
pub(crate) fn era_of_body(method: &str, params: Option<&RawValue>) -> Result<Era, RpcError> {
    let meta = read(params).meta.unwrap_or_default();
    if meta.revision.is_none() && method != "server/discover" {
        return Ok(Era::Handshake);
    }
    spoken(&meta).map(Era::Stateless)
}

/// Who speaks the newer revision, by what the body says of itself.
fn spoken(meta: &Meta<'_>) -> Result<Identity, RpcError> {
    let Some(spoken) = &meta.revision else {
        return Err(RpcError::invalid_params("`_meta` holds `io.modelcontextprotocol/protocolVersion`"));
    };
    if meta.capabilities.is_none_or(|capabilities| !capabilities.get().starts_with('{')) {
        return Err(RpcError::invalid_params("`_meta` holds `io.modelcontextprotocol/clientCapabilities`"));
    }
    if spoken != STATELESS {
        return Err(unsupported(spoken));
    }
    Ok(Identity::read(meta.client, meta.capabilities))
}

/// Compares the arguments of a call with the headers in which its tool wants them too.
///
/// # Errors
///
/// What to answer, with status 400.
pub(crate) async fn arguments(
    endpoint: &Endpoint,
    headers: &HeaderMap,
    params: Option<&RawValue>,
) -> Result<(), RpcError> {
    #[derive(Deserialize)]
    struct Call<'a> {
        #[serde(borrow)]
        name: Cow<'a, str>,
        #[serde(borrow, default)]
        arguments: Option<&'a RawValue>,
    }
    // What does not fit is said where the call is made.
    let Some(Ok(call)) = params.map(|params| serde_json::from_str::<Call<'_>>(params.get())) else { return Ok(()) };
    let Ok(Some(tool)) = endpoint.offer.definition(&call.name).await else { return Ok(()) };
    let values = call.arguments.map(|arguments| tool.header_values(arguments)).unwrap_or_default();
    for name in tool.header_names() {
        let header = format!("mcp-param-{}", name.to_ascii_lowercase());
        let said = match header_of(headers, &header)? {
            Some(said) => Some(decoded(said).ok_or_else(|| mismatch(format!("`{header}` is no valid Base64")))?),
            None => None,
        };
        let value = values.iter().find(|(other, _)| other == name).map(|(_, value)| value.as_str());
        if said.as_deref() != value {
            return Err(mismatch(format!("`{header}` and the argument say different things")));
        }
    }
    Ok(())
}

fn unsupported(revision: &str) -> RpcError {
    let revision: String = revision.chars().take(32).collect();
    RpcError::new(RpcError::UNSUPPORTED_REVISION, "this protocol revision is not spoken here")
        .with_data(json!({"supported": revisions(), "requested": revision}))
}

/// A value that may be in Base64, where a header cannot hold it as it is.
fn decoded(value: &str) -> Option<Cow<'_, str>> {
    match value.strip_prefix("=?base64?").and_then(|rest| rest.strip_suffix("?=")) {
        None => Some(Cow::Borrowed(value)),
        Some(encoded) => String::from_utf8(BASE64_STANDARD.decode(encoded).ok()?).ok().map(Cow::Owned),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seen(headers: &[(&'static str, &str)], method: &str, params: &str) -> String {
        let headers = headers
            .iter()
            .map(|(name, value)| (http::HeaderName::from_static(name), http::HeaderValue::from_str(value).unwrap()));
        let params = RawValue::from_string(params.to_owned()).unwrap();
        match era(&headers.collect(), method, Some(&params)) {
            Ok(Era::Handshake) => "handshake".to_owned(),
            Ok(Era::Stateless(identity)) => format!("stateless {}", identity.name),
            Err(error) => error.code.to_string(),
        }
    }

    #[test]
    fn the_era_of_a_request_is_what_it_says_twice() {
        const META: &str = r#"{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{},"io.modelcontextprotocol/clientInfo":{"name":"c","version":"1"}}"#;
        let with = |more: &str| format!(r#"{{"_meta":{META}{more}}}"#);
        let new = ("mcp-protocol-version", "2026-07-28");
        let call = ("mcp-method", "tools/call");
        for (headers, method, params, expected) in [
            (vec![], "initialize", "{}".to_owned(), "handshake"),
            (vec![("mcp-protocol-version", "2025-06-18")], "tools/list", "{}".to_owned(), "handshake"),
            (vec![("mcp-protocol-version", "1999-01-01")], "tools/list", "{}".to_owned(), "-32022"),
            (vec![new], "tools/list", "{}".to_owned(), "-32602"),
            (vec![], "server/discover", "{}".to_owned(), "-32602"),
            (vec![new, ("mcp-method", "tools/list")], "tools/list", with(""), "stateless c"),
            (vec![new], "tools/list", with(""), "-32020"),
            (vec![new, ("mcp-method", "TOOLS/LIST")], "tools/list", with(""), "-32020"),
            (vec![("mcp-method", "tools/list")], "tools/list", with(""), "-32020"),
            (vec![new, call, ("mcp-name", " a ")], "tools/call", with(r#","name":"a""#), "stateless c"),
            (vec![new, call, ("mcp-name", "=?base64?w6k=?=")], "tools/call", with(r#","name":"é""#), "stateless c"),
            (vec![new, call, ("mcp-name", "=?base64?w6k?=")], "tools/call", with(r#","name":"é""#), "-32020"),
            (vec![new, call, ("mcp-name", "b")], "tools/call", with(r#","name":"a""#), "-32020"),
            (vec![new, call], "tools/call", with(r#","name":"a""#), "-32020"),
        ] {
            assert_eq!(seen(&headers, method, &params), expected, "{headers:?} {method} {params}");
        }
    }
}
