//! Servers: documents, trust, whether and how they run.

use portcullis::{
    diagnostic::Severity,
    document::{ExportFormat, ExportSecrets, ParseOptions},
    store::{How, Mode},
};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;

use super::{ApiError, Nothing, OneServer, text};

operations! {
    "servers.list" Read Get "/servers" "list" "All servers, in the order of the document" Nothing => |gateway, _| {
        let servers = gateway.0.gate.servers().await?;
        text(&servers.iter().map(portcullis::gate::ServerView::to_json).collect::<Vec<_>>())
    };
    "servers.show" Read Get "/servers/{name}" "show" "One server" OneServer => |gateway, OneServer { name }| {
        text(&gateway.0.gate.server(&name).await?.to_json())
    };
    "servers.import" Dangerous Post "/servers" "import" "Adds the servers of a document, or replaces all; starts nothing"
    Imports => |gateway, Imports { document, replace }| {
        let gate = &gateway.0.gate;
        let parsed = gate.check(document.as_bytes(), &ParseOptions::default());
        let errors: Vec<String> = parsed
            .diagnostics
            .iter()
            .filter(|found| found.severity() == Severity::Error)
            .map(|found| format!("{}:{}: {}", found.line, found.column, found.message))
            .collect();
        let Some(document) = parsed.document else { return Err(ApiError::usage(errors.join("\n"))) };
        let how = if replace { How::Replace } else { How::Merge };
        gate.import(document, how, None).await?;
        let servers = gate.servers().await?;
        text(&servers.iter().map(portcullis::gate::ServerView::to_json).collect::<Vec<_>>())
    };
    "servers.export" Read Get "/document" "export" "The document of all servers, without secrets" Nothing => |gateway, _| {
        let document = gateway.0.gate.export(ExportFormat::Canonical, ExportSecrets::Keep).await?;
        text(&json!({"document": document}))
    };
    "servers.remove" Dangerous Delete "/servers/{name}" "remove" "Removes a server, and ends it"
    OneServer => |gateway, OneServer { name }| {
        gateway.0.gate.remove(&name).await?;
        text(&json!({"name": name}))
    };
    "servers.question" Read Get "/servers/{name}/trust" "trust" "What a server would do, to be shown before it is trusted"
    OneServer => |gateway, OneServer { name }| {
        let question = gateway.0.gate.trust_question(&name).await?;
        text(&json!({
            "fingerprint": question.fingerprint().to_string(),
            "view": question.view(),
            "differences": question.differences(),
        }))
    };
    "servers.trust" Dangerous Post "/servers/{name}/trust" "trust" "Trusts a server as it was shown"
    Consents => |gateway, Consents { name, fingerprint }| {
        let gate = &gateway.0.gate;
        let question = gate.trust_question(&name).await?;
        if question.fingerprint().to_string() != fingerprint {
            return Err(portcullis::GateError::WrongFingerprint { server: name }.into());
        }
        gate.trust(question).await?;
        text(&gate.server(&name).await?.to_json())
    };
    "servers.untrust" Dangerous Delete "/servers/{name}/trust" "untrust" "Takes trust back, and ends the server"
    OneServer => |gateway, OneServer { name }| {
        gateway.0.gate.untrust(&name).await?;
        text(&gateway.0.gate.server(&name).await?.to_json())
    };
    "servers.enable" Dangerous Post "/servers/{name}/enable" "enable" "Switches a server on"
    OneServer => |gateway, OneServer { name }| {
        gateway.0.gate.enable(&name).await?;
        text(&gateway.0.gate.server(&name).await?.to_json())
    };
    "servers.disable" Dangerous Post "/servers/{name}/disable" "disable" "Switches a server off, and ends it"
    OneServer => |gateway, OneServer { name }| {
        gateway.0.gate.disable(&name).await?;
        text(&gateway.0.gate.server(&name).await?.to_json())
    };
    "servers.mode" Dangerous Post "/servers/{name}/mode" "mode" "Chooses how calls of a server are decided"
    SetsMode => |gateway, SetsMode { name, mode }| {
        gateway.0.gate.set_mode(&name, mode).await?;
        text(&gateway.0.gate.server(&name).await?.to_json())
    };
    "servers.ping" Read Get "/servers/{name}/ping" "ping" "Asks a server whether it answers, and starts it if need be"
    OneServer => |gateway, OneServer { name }| {
        let took = gateway.0.gate.ping(&name).await?;
        text(&json!({"name": name, "ms": took.as_secs_f64() * 1000.0}))
    };
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Consents {
    /// The server's name in the document.
    name: String,
    /// The fingerprint that was shown with the question.
    fingerprint: String,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Imports {
    /// The document, as text.
    document: String,
    /// Whether it replaces all servers, rather than being added to them.
    #[serde(default)]
    replace: bool,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct SetsMode {
    /// The server's name in the document.
    name: String,
    /// `ask`, `allow-read-only`, `allow` or `deny`.
    #[schemars(with = "String")]
    mode: Mode,
}
