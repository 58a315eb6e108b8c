//! JSON-RPC from a client as text: taken apart without being changed, answered with what a server wrote.

use std::borrow::Cow;

use portcullis::limits::MESSAGE_DEPTH;
use serde::Deserialize;
use serde_json::{Value, json, value::RawValue};

/// Longest id of a request, in bytes.
const ID_BYTES: usize = 256;

/// A message of a client; each part as it was written.
#[derive(Debug)]
pub(crate) enum Message<'a> {
    /// It wants an answer.
    Request { id: &'a RawValue, method: Cow<'a, str>, params: Option<&'a RawValue> },
    /// It wants none.
    Notification { method: Cow<'a, str>, params: Option<&'a RawValue> },
    /// The answer to a request of ours.
    Answer { id: u64, answer: Result<&'a RawValue, &'a RawValue> },
}

#[derive(Deserialize)]
struct Envelope<'a> {
    #[serde(borrow, default)]
    jsonrpc: Option<Cow<'a, str>>,
    #[serde(borrow, default)]
    id: Option<&'a RawValue>,
    #[serde(borrow, default)]
    method: Option<Cow<'a, str>>,
    #[serde(borrow, default)]
    params: Option<&'a RawValue>,
    #[serde(borrow, default)]
    result: Option<&'a RawValue>,
    #[serde(borrow, default)]
    error: Option<&'a RawValue>,
}

impl<'a> Message<'a> {
    /// Reads one message. Two members of one name, a batch, an id that is neither a text nor a whole number,
    /// and nesting deeper than [`MESSAGE_DEPTH`] are no message: readers could differ in what they say.
    ///
    /// # Errors
    ///
    /// What to answer.
    pub(crate) fn read(text: &'a [u8]) -> Result<Self, RpcError> {
        if is_deeper_than(text, MESSAGE_DEPTH) {
            return Err(RpcError::new(RpcError::PARSE, format!("nested deeper than {MESSAGE_DEPTH} levels")));
        }
        if text.trim_ascii_start().starts_with(b"[") {
            return Err(RpcError::new(RpcError::INVALID_REQUEST, "batches are not part of this protocol"));
        }
        let envelope: Envelope<'_> = serde_json::from_slice(text).map_err(|error| {
            let code = if error.is_data() { RpcError::INVALID_REQUEST } else { RpcError::PARSE };
            RpcError::new(code, "the body is no JSON-RPC message")
        })?;
        let invalid = |why: &str| RpcError::new(RpcError::INVALID_REQUEST, why);
        if envelope.jsonrpc.as_deref() != Some("2.0") {
            return Err(invalid("`jsonrpc` is \"2.0\""));
        }
        if envelope.params.is_some_and(|params| !params.get().starts_with('{')) {
            return Err(invalid("`params` is an object"));
        }
        match envelope {
            Envelope { method: Some(method), id: Some(id), params, .. } if is_id(id) => {
                Ok(Self::Request { id, method, params })
            }
            Envelope { method: Some(_), id: Some(_), .. } => Err(invalid("`id` is a text or a whole number")),
            Envelope { method: Some(method), params, .. } => Ok(Self::Notification { method, params }),
            Envelope { id: Some(id), result, error, .. } => {
                let id = id.get().parse().map_err(|_| invalid("no request of this id was sent"))?;
                let answer = match (result, error) {
                    (Some(result), None) => Ok(result),
                    (None, Some(error)) => Err(error),
                    _ => return Err(invalid("an answer holds a result or an error")),
                };
                Ok(Self::Answer { id, answer })
            }
            _ => Err(invalid("neither a request nor an answer")),
        }
    }
}

/// The id of the request that a `notifications/cancelled` takes back, as it was written.
pub(crate) fn cancelled(params: Option<&RawValue>) -> Option<&str> {
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Cancelled<'a> {
        #[serde(borrow)]
        request_id: &'a RawValue,
    }
    let cancelled: Cancelled<'_> = serde_json::from_str(params?.get()).ok()?;
    Some(cancelled.request_id.get())
}

fn is_id(id: &RawValue) -> bool {
    let text = id.get();
    let is_number = !text.is_empty() && text.trim_start_matches('-').bytes().all(|byte| byte.is_ascii_digit());
    text.len() <= ID_BYTES && (text.starts_with('"') || is_number)
}

/// Whether brackets outside of texts are nested deeper than that. Anything that is no JSON is left to the parser.
fn is_deeper_than(text: &[u8], limit: usize) -> bool {
    let (mut depth, mut quoted, mut escaped) = (0_usize, false, false);
    for byte in text {
        match (quoted, escaped, byte) {
            (true, true, _) => escaped = false,
            (true, false, b'\\') => escaped = true,
            (true, false, b'"') => quoted = false,
            (false, _, b'"') => quoted = true,
            (false, _, b'[' | b'{') => {
                depth += 1;
                if depth > limit {
                    return true;
                }
            }
            (false, _, b']' | b'}') => depth = depth.saturating_sub(1),
            _ => {}
        }
    }
    false
}

/// A JSON-RPC error on its way to a client.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct RpcError {
    pub(crate) code: i64,
    pub(crate) message: String,
    pub(crate) data: Option<Value>,
}

impl RpcError {
    pub(crate) const PARSE: i64 = -32_700;
    pub(crate) const INVALID_REQUEST: i64 = -32_600;
    pub(crate) const METHOD_NOT_FOUND: i64 = -32_601;
    pub(crate) const INVALID_PARAMS: i64 = -32_602;
    pub(crate) const INTERNAL: i64 = -32_603;
    /// Of the revisions up to 2025-11-25.
    pub(crate) const RESOURCE_NOT_FOUND: i64 = -32_002;
    /// SEP-2243: a header and the body say different things.
    pub(crate) const HEADER_MISMATCH: i64 = -32_020;
    /// SEP-2575: the client does not offer what is needed.
    pub(crate) const MISSING_CAPABILITY: i64 = -32_021;
    /// SEP-2575.
    pub(crate) const UNSUPPORTED_REVISION: i64 = -32_022;
    /// The client took the request back.
    pub(crate) const CANCELLED: i64 = -32_800;

    pub(crate) fn new(code: i64, message: impl Into<String>) -> Self {
        Self { code, message: message.into(), data: None }
    }

    pub(crate) fn invalid_params(message: impl Into<String>) -> Self {
        Self::new(Self::INVALID_PARAMS, message)
    }

    pub(crate) fn method_not_found(method: &str) -> Self {
        let method: String = method.chars().take(64).collect();
        Self::new(Self::METHOD_NOT_FOUND, format!("there is no method `{}`", portcullis::display::escape(&method)))
    }

    pub(crate) fn with_data(self, data: Value) -> Self {
        Self { data: Some(data), ..self }
    }

    pub(crate) fn to_json(&self) -> Value {
        let mut error = json!({"code": self.code, "message": self.message});
        if let Some(data) = &self.data {
            error["data"] = data.clone();
        }
        error
    }
}

/// The answer to the request of this id, with the result as it is written.
pub(crate) fn answer(id: Option<&str>, answer: &Result<String, RpcError>) -> String {
    let id = id.unwrap_or("null");
    match answer {
        Ok(result) => [r#"{"jsonrpc":"2.0","id":"#, id, r#","result":"#, result, "}"].concat(),
        Err(error) => format!(r#"{{"jsonrpc":"2.0","id":{id},"error":{}}}"#, error.to_json()),
    }
}

/// A request of ours.
pub(crate) fn request(id: u64, method: &str, params: &str) -> String {
    format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"{method}","params":{params}}}"#)
}

/// A notification.
pub(crate) fn notification(method: &str, params: &str) -> String {
    format!(r#"{{"jsonrpc":"2.0","method":"{method}","params":{params}}}"#)
}

/// The members of an object, in order, as they are written. Names are unique.
pub(crate) fn members(object: &RawValue) -> Option<Vec<(String, &RawValue)>> {
    struct Visitor;
    impl<'de> serde::de::Visitor<'de> for Visitor {
        type Value = Vec<(String, &'de RawValue)>;
        fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
            f.write_str("an object")
        }
        fn visit_map<A: serde::de::MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
            let mut members = Vec::with_capacity(map.size_hint().unwrap_or(8));
            while let Some(member) = map.next_entry()? {
                members.push(member);
            }
            Ok(members)
        }
    }
    let mut reader = serde_json::Deserializer::from_str(object.get());
    serde::Deserializer::deserialize_map(&mut reader, Visitor).ok()
}

/// An object of these members.
pub(crate) fn object<'a>(members: impl IntoIterator<Item = (&'a str, &'a str)>) -> String {
    let mut text = String::from("{");
    for (name, json) in members {
        if text.len() > 1 {
            text.push(',');
        }
        text.push_str(&Value::from(name).to_string());
        text.push(':');
        text.push_str(json);
    }
    text.push('}');
    text
}

/// `object` with `name` set to `json`: in its place, or first where there is none.
pub(crate) fn with_member(object_text: &RawValue, name: &str, json: &str) -> Option<String> {
    let members = members(object_text)?;
    let has = members.iter().any(|(other, _)| other == name);
    let kept = members.iter().map(|(other, value)| (other.as_str(), if other == name { json } else { value.get() }));
    Some(if has { object(kept) } else { object(std::iter::once((name, json)).chain(kept)) })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seen(text: &str) -> String {
        match Message::read(text.as_bytes()) {
            Ok(Message::Request { id, method, params }) => {
                format!("request {} {method} {}", id.get(), params.map_or("-", RawValue::get))
            }
            Ok(Message::Notification { method, .. }) => format!("notification {method}"),
            Ok(Message::Answer { id, answer }) => format!("answer {id} {}", answer.is_ok()),
            Err(error) => format!("{}", error.code),
        }
    }

    #[test]
    fn s29_what_readers_could_take_differently_is_no_message() {
        for (text, expected) in [
            (r#"{"jsonrpc":"2.0","id":1,"method":"m","params":{"a": 1e400}}"#, r#"request 1 m {"a": 1e400}"#),
            (r#"{"jsonrpc":"2.0","id":"1","method":"m"}"#, r#"request "1" m -"#),
            (r#"{"jsonrpc":"2.0","id":-7,"method":"m"}"#, "request -7 m -"),
            (r#"{"jsonrpc":"2.0","id":1.0,"method":"m"}"#, "-32600"),
            (r#"{"jsonrpc":"2.0","id":null,"method":"m"}"#, "notification m"),
            (r#"{"jsonrpc":"2.0","id":{},"method":"m"}"#, "-32600"),
            (r#"{"jsonrpc":"2.0","id":1,"id":2,"method":"m"}"#, "-32600"),
            (r#"{"jsonrpc":"2.0","id":1,"method":"m","method":"n"}"#, "-32600"),
            (r#"{"id":1,"method":"m"}"#, "-32600"),
            (r#"{"jsonrpc":"2.0","id":1,"method":"m","params":[1]}"#, "-32600"),
            (r#"[{"jsonrpc":"2.0","id":1,"method":"m"}]"#, "-32600"),
            (r#"{"jsonrpc":"2.0","method":"n"}"#, "notification n"),
            (r#"{"jsonrpc":"2.0","id":3,"result":{}}"#, "answer 3 true"),
            (r#"{"jsonrpc":"2.0","id":3,"error":{}}"#, "answer 3 false"),
            (r#"{"jsonrpc":"2.0","id":"x","result":{}}"#, "-32600"),
            (r#"{"jsonrpc":"2.0","id":3,"result":{},"error":{}}"#, "-32600"),
            ("{", "-32700"),
            ("", "-32700"),
            ("\u{feff}{}", "-32700"),
        ] {
            assert_eq!(seen(text), expected, "{text}");
        }
    }

    #[test]
    fn s55_nesting_is_bounded_and_texts_do_not_count() {
        let nested = |levels: usize| {
            format!(
                r#"{{"jsonrpc":"2.0","id":1,"method":"m","params":{{"a":{}{}}}}}"#,
                "[".repeat(levels),
                "]".repeat(levels)
            )
        };
        assert!(seen(&nested(MESSAGE_DEPTH - 2)).starts_with("request"));
        assert_eq!(seen(&nested(MESSAGE_DEPTH - 1)), "-32700");
        let text = format!(r#"{{"jsonrpc":"2.0","id":1,"method":"m","params":{{"a":"\"{}"}}}}"#, "[".repeat(500));
        assert!(seen(&text).starts_with("request"));
    }

    #[test]
    fn one_member_is_set_and_the_others_stay_as_they_are() {
        let raw = |text: &str| RawValue::from_string(text.to_owned()).unwrap();
        let set = |text: &str| with_member(&raw(text), "name", r#""b""#).unwrap();
        assert_eq!(set(r#"{"x": 1e400, "name":"a","y":{ }}"#), r#"{"x":1e400,"name":"b","y":{ }}"#);
        assert_eq!(set(r#"{"x":1}"#), r#"{"name":"b","x":1}"#);
        assert_eq!(set("{}"), r#"{"name":"b"}"#);
    }
}
