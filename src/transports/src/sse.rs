//! The HTTP+SSE transport of 2024-11-05: recognised, so that the refusal can say what to write.

use std::sync::Arc;

use portcullis::{
    Definition,
    diagnostic::Code,
    inventory,
    transport::{Field, FieldValue, OpenContext, Plan, Refusal, Transport, TransportError, TransportKind},
};

/// The kind.
pub static KIND: TransportKind = TransportKind {
    name: "sse",
    summary: "the HTTP+SSE transport of 2024-11-05 (refused)",
    implied_by: None,
    spellings: &[],
    vscode: None,
    fields: &[
        Field { name: "url", value: FieldValue::Url, required: true, secret: false, doc: "where its stream was" },
        Field {
            name: "headers",
            value: FieldValue::Headers,
            required: false,
            secret: true,
            doc: "sent with every request",
        },
    ],
    foreign: Code::FieldHttpOnly,
    refusal: Some(Refusal {
        code: Code::SseUnsupported,
        message: "`sse` is the transport of 2024-11-05, which streamable HTTP replaced in 2025-03-26",
        help: "write `\"type\": \"http\"` and the server's streamable HTTP address, which often ends in `/mcp`",
    }),
    check: |_, _| {},
    build: || Arc::new(Sse),
};

inventory::submit! { &KIND }

#[derive(Debug)]
struct Sse;

impl Transport for Sse {
    fn plan(&self, _definition: &Definition, _context: &OpenContext) -> Result<Box<dyn Plan>, TransportError> {
        Err(TransportError::Unsupported { kind: KIND.name, reason: "use streamable HTTP (`\"type\": \"http\"`)" })
    }
}
