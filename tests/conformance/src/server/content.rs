//! Pieces of content.

use serde_json::{Value, json};

/// One red pixel as PNG.
pub(crate) const IMAGE: &str =
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8BQDwAEhQGAhKmMIQAAAABJRU5ErkJggg==";
/// No sample as WAV.
const AUDIO: &str = "UklGRiQAAABXQVZFZm10IBAAAAABAAEAESsAACJWAAACABAAZGF0YQAAAAA=";

pub(crate) fn text(text: impl Into<String>) -> Value {
    json!({"type": "text", "text": text.into()})
}

pub(crate) fn image() -> Value {
    json!({"type": "image", "data": IMAGE, "mimeType": "image/png"})
}

pub(crate) fn audio() -> Value {
    json!({"type": "audio", "data": AUDIO, "mimeType": "audio/wav"})
}

pub(crate) fn embedded(uri: &str, mime: &str, text: &str) -> Value {
    json!({"type": "resource", "resource": {"uri": uri, "mimeType": mime, "text": text}})
}

/// The parameters of a form that asks for one value.
pub(crate) fn form(message: &str, member: &str, kind: &str) -> Value {
    json!({
        "message": message,
        "requestedSchema": {"type": "object", "properties": {member: {"type": kind}}, "required": [member]},
    })
}

/// The parameters of a request to the model.
pub(crate) fn sampling(prompt: &str, tokens: u32) -> Value {
    json!({"messages": [{"role": "user", "content": text(prompt)}], "maxTokens": tokens})
}
