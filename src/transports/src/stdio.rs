//! A program on this machine, spoken to over its standard streams.

use std::sync::Arc;

use portcullis::{
    Definition,
    diagnostic::Code,
    inventory,
    transport::{Field, FieldValue, OpenContext, Plan, Transport, TransportError, TransportKind},
};

/// The kind.
pub static KIND: TransportKind = TransportKind {
    name: "stdio",
    summary: "a program on this machine",
    implied_by: Some("command"),
    spellings: &["local"],
    vscode: None,
    fields: &[
        Field { name: "command", value: FieldValue::Text, required: true, secret: false, doc: "the program to run" },
        Field {
            name: "args",
            value: FieldValue::Texts,
            required: false,
            secret: false,
            doc: "its arguments, each passed on as it is",
        },
        Field { name: "cwd", value: FieldValue::Text, required: false, secret: false, doc: "the folder it runs in" },
        Field {
            name: "env",
            value: FieldValue::Environment,
            required: false,
            secret: true,
            doc: "environment variables set for it",
        },
    ],
    foreign: Code::FieldStdioOnly,
    refusal: None,
    check: |_, _| {},
    build: || Arc::new(Stdio),
};

inventory::submit! { &KIND }

#[derive(Debug)]
struct Stdio;

impl Transport for Stdio {
    fn plan(&self, _definition: &Definition, _context: &OpenContext) -> Result<Box<dyn Plan>, TransportError> {
        Err(TransportError::Unsupported { kind: KIND.name, reason: "not yet" })
    }
}
