//! A server on the network, spoken to over streamable HTTP.

use std::sync::Arc;

use portcullis::{
    Definition,
    diagnostic::Code,
    inventory,
    transport::{Field, FieldValue, OpenContext, Plan, Transport, TransportError, TransportKind},
};

/// The kind.
pub static KIND: TransportKind = TransportKind {
    name: "streamable-http",
    summary: "a server on the network",
    implied_by: Some("url"),
    spellings: &["http", "streamableHttp", "streamable_http"],
    vscode: Some("http"),
    fields: &[
        Field {
            name: "url",
            value: FieldValue::Url,
            required: true,
            secret: false,
            doc: "its address, `http` or `https`",
        },
        Field {
            name: "headers",
            value: FieldValue::Headers,
            required: false,
            secret: true,
            doc: "headers sent with every request",
        },
        Field { name: "auth", value: FieldValue::Object, required: false, secret: true, doc: "how to log in" },
    ],
    foreign: Code::FieldHttpOnly,
    refusal: None,
    check: |_, _| {},
    build: || Arc::new(StreamableHttp),
};

inventory::submit! { &KIND }

#[derive(Debug)]
struct StreamableHttp;

impl Transport for StreamableHttp {
    fn plan(&self, _definition: &Definition, _context: &OpenContext) -> Result<Box<dyn Plan>, TransportError> {
        Err(TransportError::Unsupported { kind: KIND.name, reason: "not yet" })
    }
}
