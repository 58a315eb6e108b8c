//! How arguments and results stay untouched through rmcp's typed model.
//!
//! Out: the approved bytes ride in the request's `Extensions`, which never reach the wire by
//! themselves; [`encode`] writes them in place of the typed arguments. In: [`Pending`] knows by id
//! which answers are wanted as text, and hands rmcp a `CustomResult` holding it, which rmcp only
//! routes by id.

use std::{
    borrow::Cow,
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use rmcp::model::{
    ClientNotification, ClientRequest, CustomResult, ErrorCode, ErrorData, JsonRpcMessage, ListToolsResult, MetaObject,
    RequestId, RequestMetaObject, ServerResult, Tool,
};
use serde::{Deserialize, Serialize};
use serde_json::{Value, value::RawValue};

use crate::{
    canonical,
    limits::MESSAGE_DEPTH,
    link::{Incoming, Outgoing},
};

/// Arguments exactly as they were approved.
#[derive(Debug, Clone)]
pub(crate) struct RawArguments(pub(crate) Arc<RawValue>);

/// A result exactly as the server wrote it.
#[derive(Debug, Clone)]
pub struct RawResult {
    text: Box<RawValue>,
    untouched: bool,
}

impl RawResult {
    /// The JSON text.
    #[must_use]
    pub fn get(&self) -> &str {
        self.text.get()
    }

    /// Whether it is what the server wrote, byte by byte; not so on a link that only hands over
    /// rmcp's typed model.
    #[must_use]
    pub fn is_untouched(&self) -> bool {
        self.untouched
    }

    /// Whether the tool itself reports a failure (`isError`).
    #[must_use]
    pub fn is_error(&self) -> bool {
        #[derive(Deserialize)]
        struct Flag {
            #[serde(default, rename = "isError")]
            is_error: bool,
        }
        serde_json::from_str::<Flag>(self.get()).is_ok_and(|flag| flag.is_error)
    }

    pub(crate) fn from_server(result: ServerResult) -> Result<Self, serde_json::Error> {
        match result {
            ServerResult::CustomResult(CustomResult(Value::String(text))) => {
                Ok(Self { text: RawValue::from_string(text)?, untouched: true })
            }
            // rmcp's HTTP worker has to see the tools; the text came beside them.
            ServerResult::ListToolsResult(ListToolsResult { meta: Some(mut meta), .. })
                if meta.contains_key(RAW_KEY) =>
            {
                let text = meta.remove(RAW_KEY);
                let text = text.as_ref().and_then(Value::as_str).unwrap_or("null");
                Ok(Self { text: RawValue::from_string(text.to_owned())?, untouched: true })
            }
            other => Ok(Self { text: serde_json::value::to_raw_value(&other)?, untouched: false }),
        }
    }
}

/// Where the text of a list rides when rmcp has to see the tools as well.
const RAW_KEY: &str = "portcullis/raw";

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Wanted {
    /// The text alone.
    Text,
    /// The tools that decode, and the text in `_meta`.
    Tools,
    /// rmcp's own reading.
    Typed,
}

/// A line or body that is no message and answers nobody.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Noise;

/// The requests that wait for an answer on one link, by id; shared by its encoder and decoder.
#[derive(Debug, Clone, Default)]
pub struct Pending {
    ids: Arc<Mutex<HashMap<RequestId, Wanted>>>,
    show_tools: bool,
}

impl Pending {
    /// For rmcp's HTTP worker, which reads `tools/list` answers to build `Mcp-Param-*` headers.
    #[must_use]
    pub fn showing_tools() -> Self {
        Self { show_tools: true, ..Self::default() }
    }

    fn ids(&self) -> MutexGuard<'_, HashMap<RequestId, Wanted>> {
        self.ids.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// To be called with every message before it is sent.
    pub fn note(&self, message: &Outgoing) {
        match message {
            JsonRpcMessage::Request(request) => {
                let wanted = match request.request {
                    ClientRequest::CallToolRequest(_) => Wanted::Text,
                    ClientRequest::ListToolsRequest(_) if self.show_tools => Wanted::Tools,
                    ClientRequest::ListToolsRequest(_) => Wanted::Text,
                    _ => Wanted::Typed,
                };
                self.ids().insert(request.id.clone(), wanted);
            }
            // The answer may never come: the map must not grow.
            JsonRpcMessage::Notification(note) => {
                if let ClientNotification::CancelledNotification(cancelled) = &note.notification
                    && let Some(id) = &cancelled.params.request_id
                {
                    self.ids().remove(id);
                }
            }
            _ => {}
        }
    }

    /// To be called for a request that failed and will not be answered.
    pub fn forget(&self, id: &RequestId) {
        self.ids().remove(id);
    }

    /// How many requests wait.
    #[must_use]
    pub fn len(&self) -> usize {
        self.ids().len()
    }

    /// Whether none waits.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Reads one message. A wanted result stays text; an answer that cannot be read becomes an
    /// error for the request that waits for it.
    ///
    /// # Errors
    ///
    /// [`Noise`] for everything that is no message and answers nobody: a banner, a second answer
    /// to one request, an answer to an id that was never used.
    pub fn decode(&self, text: &[u8]) -> Result<Incoming, Noise> {
        let envelope = serde_json::from_slice::<Envelope<'_>>(text);
        match envelope {
            Ok(Envelope { id: Some(id), method: None, result, error }) if result.is_some() || error.is_some() => {
                let (id, wanted) = self.answered(id)?;
                match result {
                    Some(result) if error.is_none() && wanted != Wanted::Typed => {
                        Ok(JsonRpcMessage::response(wanted.carry(result), id))
                    }
                    _ => Ok(serde_json::from_slice(text).unwrap_or_else(|_| unreadable(id))),
                }
            }
            Ok(Envelope { method: Some(_), .. }) => serde_json::from_slice(text).map_err(|_| Noise),
            _ => {
                let id = sniff_id(text).ok_or(Noise)?;
                Ok(unreadable(self.answered_id(&id)?.0))
            }
        }
    }

    /// The same for a message that nobody needs afterwards: a wanted result stays where it is in
    /// memory, which halves what a large one takes.
    ///
    /// # Errors
    ///
    /// As [`decode`](Self::decode).
    pub(crate) fn decode_owned(&self, mut text: Vec<u8>) -> Result<Incoming, Noise> {
        let Some((range, id)) = self.wanted_text(&text) else { return self.decode(text.trim_ascii()) };
        text.truncate(range.end);
        text.drain(..range.start);
        match String::from_utf8(text) {
            Ok(text) => Ok(JsonRpcMessage::response(ServerResult::CustomResult(CustomResult(Value::String(text))), id)),
            Err(_) => Ok(unreadable(id)),
        }
    }

    /// Where in `text` a result stands that is wanted as text and nothing else; the request is answered.
    fn wanted_text(&self, text: &[u8]) -> Option<(std::ops::Range<usize>, RequestId)> {
        let Ok(Envelope { id: Some(id), method: None, result: Some(result), error: None }) =
            serde_json::from_slice(text)
        else {
            return None;
        };
        let id = serde_json::from_str::<RequestId>(id.get()).ok()?;
        let start = result.get().as_ptr().addr() - text.as_ptr().addr();
        let range = start..start + result.get().len();
        let mut ids = self.ids();
        (ids.get(&id) == Some(&Wanted::Text)).then(|| ids.remove(&id))?;
        Some((range, id))
    }

    fn answered(&self, id: &RawValue) -> Result<(RequestId, Wanted), Noise> {
        let id = serde_json::from_str::<RequestId>(id.get()).map_err(|_| Noise)?;
        self.answered_id(&id)
    }

    fn answered_id(&self, id: &RequestId) -> Result<(RequestId, Wanted), Noise> {
        self.ids().remove_entry(id).ok_or(Noise)
    }

    /// The same for text that rmcp parses itself (the data of an SSE event).
    #[must_use]
    pub fn rewrite(&self, text: String) -> String {
        match self.decode(text.as_bytes()) {
            Ok(message) => serde_json::to_string(&message).unwrap_or(text),
            Err(Noise) => String::new(),
        }
    }
}

fn unreadable(id: RequestId) -> Incoming {
    JsonRpcMessage::error(ErrorData::new(UNREADABLE, UNREADABLE_MESSAGE, None), Some(id))
}

/// The error code of an answer that could not be read.
pub(crate) const UNREADABLE: ErrorCode = ErrorCode(-32_700);
/// Its message.
pub(crate) const UNREADABLE_MESSAGE: &str = "the server's answer to this request could not be read";

/// The `"id"` of a message that does not parse, if one can be made out near either end.
fn sniff_id(text: &[u8]) -> Option<RequestId> {
    const NEAR: usize = 256;
    let found = |part: &[u8]| {
        let at = memchr::memmem::find(part, b"\"id\"")?;
        let rest = part[at + 4..].trim_ascii_start().strip_prefix(b":")?.trim_ascii_start();
        let end = rest.iter().position(|byte| !byte.is_ascii_digit())?;
        std::str::from_utf8(&rest[..end]).ok()?.parse().ok().map(RequestId::Number)
    };
    if !text.trim_ascii_start().starts_with(b"{") {
        return None;
    }
    found(&text[..text.len().min(NEAR)]).or_else(|| found(&text[text.len().saturating_sub(NEAR)..]))
}

impl Wanted {
    fn carry(self, result: &RawValue) -> ServerResult {
        #[derive(Deserialize)]
        struct Page<'a> {
            #[serde(borrow)]
            tools: Vec<&'a RawValue>,
        }
        let text = Value::String(result.get().to_owned());
        match self {
            Self::Tools if let Ok(page) = serde_json::from_str::<Page<'_>>(result.get()) => {
                let mut meta = MetaObject::default();
                meta.insert(RAW_KEY.to_owned(), text);
                ServerResult::ListToolsResult(ListToolsResult {
                    meta: Some(meta),
                    tools: page.tools.iter().filter_map(|tool| serde_json::from_str::<Tool>(tool.get()).ok()).collect(),
                    ..ListToolsResult::default()
                })
            }
            _ => ServerResult::CustomResult(CustomResult(text)),
        }
    }
}

#[derive(Deserialize)]
struct Envelope<'a> {
    #[serde(borrow)]
    id: Option<&'a RawValue>,
    #[serde(borrow)]
    method: Option<Cow<'a, str>>,
    #[serde(borrow)]
    result: Option<&'a RawValue>,
    #[serde(borrow)]
    error: Option<&'a RawValue>,
}

/// Whether rmcp's own writing of `message` says what was approved, numbers digit by digit. White space and
/// escapes may differ.
pub(crate) fn survives_rewriting(message: &Outgoing) -> bool {
    let JsonRpcMessage::Request(request) = message else { return true };
    let ClientRequest::CallToolRequest(call) = &request.request else { return true };
    let Some(RawArguments(approved)) = call.extensions.get::<RawArguments>() else { return true };
    let Some(Ok(written)) = call.params.arguments.as_ref().map(serde_json::to_string) else { return false };
    let canonical = |json: &str| canonical::text(json, MESSAGE_DEPTH).ok();
    canonical(approved.get()).is_some_and(|approved| canonical(&written) == Some(approved))
}

/// Writes one message; approved arguments go out as they came in.
///
/// # Errors
///
/// None for messages that rmcp makes.
pub fn encode(message: &Outgoing, out: &mut Vec<u8>) -> Result<(), serde_json::Error> {
    #[derive(Serialize)]
    struct Params<'a> {
        #[serde(rename = "_meta", skip_serializing_if = "Option::is_none")]
        meta: Option<&'a RequestMetaObject>,
        name: &'a str,
        arguments: &'a RawValue,
    }
    #[derive(Serialize)]
    struct Request<'a> {
        jsonrpc: &'a str,
        id: &'a RequestId,
        method: &'a str,
        params: Params<'a>,
    }
    if let JsonRpcMessage::Request(request) = message
        && let ClientRequest::CallToolRequest(call) = &request.request
        && let Some(RawArguments(arguments)) = call.extensions.get::<RawArguments>()
    {
        let meta = call.params.meta.as_ref().or_else(|| call.extensions.get::<RequestMetaObject>());
        let params = Params { meta, name: &call.params.name, arguments };
        return serde_json::to_writer(out, &Request { jsonrpc: "2.0", id: &request.id, method: "tools/call", params });
    }
    serde_json::to_writer(out, message)
}
