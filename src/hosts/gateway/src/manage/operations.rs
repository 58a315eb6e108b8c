//! The table of operations.

use futures::future::BoxFuture;
use portcullis::{
    approval::{Answer, Arguments, Call},
    diagnostic::Severity,
    document::{ExportFormat, ExportSecrets, ParseOptions},
    gate::{Choice, ToolView},
    session::ListKind,
    store::{How, Mode},
    tools::RefusedTool,
};
use schemars::{JsonSchema, schema_for};
use serde::{Deserialize, Serialize, de::DeserializeOwned};
use serde_json::{Value, json, value::RawValue};

use super::ApiError;
use crate::routes::Gateway;

/// How much harm an operation can do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Grade {
    /// Changes nothing.
    Read,
    /// Changes something that a person can change back; an agent needs an approval.
    Write,
    /// Decides what may run or be called: a person's alone, never offered to an agent.
    Dangerous,
}

impl Grade {
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Read => "read",
            Self::Write => "write",
            Self::Dangerous => "dangerous",
        }
    }
}

/// The method of a route.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verb {
    /// `GET`
    Get,
    /// `POST`
    Post,
    /// `DELETE`
    Delete,
}

impl Verb {
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Get => "get",
            Self::Post => "post",
            Self::Delete => "delete",
        }
    }
}

/// Carries an operation out on its input; JSON text.
type Run = fn(Gateway, Value) -> BoxFuture<'static, Result<String, ApiError>>;

/// Something that can be done.
#[derive(Debug, Clone, Copy)]
pub struct Operation {
    /// Its stable name.
    pub id: &'static str,
    /// What it does.
    pub summary: &'static str,
    /// How much harm it can do.
    pub grade: Grade,
    /// The method of its route.
    pub verb: Verb,
    /// Its route, below the root of the API.
    pub path: &'static str,
    /// The command that does the same.
    pub command: &'static str,
    /// The tool by which an agent does the same, if it may.
    pub tool: Option<&'static str>,
    /// The JSON Schema of its input: parameters of path and query, members of the body.
    pub input: fn() -> Value,
    pub(super) run: Run,
}

macro_rules! operations {
    ($($id:literal $grade:ident $verb:ident $path:literal $command:literal $summary:literal $input:ty => |$gateway:ident, $in:pat_param| $body:expr;)+) => {
        /// Everything that can be done through the management API.
        pub const OPERATIONS: &[Operation] = &[$(Operation {
            id: $id,
            summary: $summary,
            grade: Grade::$grade,
            verb: Verb::$verb,
            path: $path,
            command: $command,
            tool: None,
            input: || schema_for!($input).to_value(),
            run: |$gateway, input| Box::pin(async move {
                let $in: $input = read(input)?;
                $body
            }),
        },)+];
    };
}

fn read<T: DeserializeOwned>(input: Value) -> Result<T, ApiError> {
    serde_json::from_value(input).map_err(|error| ApiError::usage(format!("the input does not fit: {error}")))
}

fn text(value: &impl Serialize) -> Result<String, ApiError> {
    serde_json::to_string(value).map_err(|error| ApiError::usage(error.to_string()))
}

/// Nothing to say.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Nothing {}

/// One server.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct OneServer {
    /// Its name in the document.
    name: String,
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
struct Selects {
    /// The server's name in the document.
    name: String,
    /// Tools to switch on, as they are known now.
    #[serde(default)]
    enable: Vec<String>,
    /// Tools to switch off.
    #[serde(default)]
    disable: Vec<String>,
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

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Calls {
    /// The server's name in the document.
    server: String,
    /// The tool, as its server calls it.
    tool: String,
    /// The arguments as the text of a JSON object, sent byte by byte.
    #[serde(default = "no_arguments")]
    arguments: String,
    /// Who calls.
    #[serde(default = "no_caller")]
    caller: String,
}

fn no_arguments() -> String {
    "{}".to_owned()
}

fn no_caller() -> String {
    "management".to_owned()
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct OneId {
    /// The id.
    id: String,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Answers {
    /// The question's id.
    id: String,
    /// `once`, `until-host-ends`, `always`, `always-for-caller` or `deny`.
    #[schemars(with = "String")]
    answer: Answer,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Reads {
    /// The server's name in the document.
    name: String,
    /// The address of the resource.
    uri: String,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Prompts {
    /// The server's name in the document.
    name: String,
    /// The name of the prompt.
    prompt: String,
    /// Its arguments, as the text of a JSON object.
    #[serde(default)]
    arguments: Option<String>,
}

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
    "tools.list" Read Get "/servers/{name}/tools" "tools" "The tools of a server as they were listed last"
    OneServer => |gateway, OneServer { name }| {
        let (tools, refused) = gateway.0.gate.tools(&name).await?;
        listed(&tools, &refused)
    };
    "tools.refresh" Write Post "/servers/{name}/tools/refresh" "tools" "Starts a trusted server and lists its tools again"
    OneServer => |gateway, OneServer { name }| {
        gateway.0.gate.refresh(&name).await?;
        let (tools, refused) = gateway.0.gate.tools(&name).await?;
        listed(&tools, &refused)
    };
    "tools.select" Dangerous Post "/servers/{name}/tools" "tools" "Switches tools on and off"
    Selects => |gateway, Selects { name, enable, disable }| {
        let choice = |names: Vec<String>| (!names.is_empty()).then_some(Choice::Named(names));
        gateway.0.gate.select(&name, choice(enable), choice(disable)).await?;
        text(&gateway.0.gate.tools(&name).await?.0)
    };
    "resources.list" Read Get "/servers/{name}/resources" "resources" "The resources of a server"
    OneServer => |gateway, OneServer { name }| text(&gateway.0.gate.list(&name, ListKind::Resources).await?);
    "resources.templates" Read Get "/servers/{name}/resource-templates" "resources" "The templates of addresses of a server's resources"
    OneServer => |gateway, OneServer { name }| text(&gateway.0.gate.list(&name, ListKind::ResourceTemplates).await?);
    "resources.read" Read Get "/servers/{name}/resource" "read" "Reads a resource"
    Reads => |gateway, Reads { name, uri }| Ok(gateway.0.gate.read(&name, &uri).await?.into_string());
    "prompts.list" Read Get "/servers/{name}/prompts" "prompts" "The prompts of a server"
    OneServer => |gateway, OneServer { name }| text(&gateway.0.gate.list(&name, ListKind::Prompts).await?);
    "prompts.get" Read Post "/servers/{name}/prompt" "prompt" "Gets a prompt"
    Prompts => |gateway, Prompts { name, prompt, arguments }| {
        let arguments = arguments.map(RawValue::from_string).transpose();
        let arguments = arguments.map_err(|_| ApiError::usage("`arguments` is the text of a JSON object"))?;
        Ok(gateway.0.gate.prompt(&name, &prompt, arguments.as_deref()).await?.into_string())
    };
    "calls.start" Dangerous Post "/calls" "call" "Calls a tool: the result, or the question that the call waits for"
    Calls => |gateway, Calls { server, tool, arguments, caller }| {
        let arguments = Arguments::parse(arguments)
            .map_err(|source| portcullis::GateError::Arguments { tool: tool.clone(), source })?;
        gateway.0.calls.begin(&gateway, Call { server, tool, arguments, caller }, None).await
    };
    "calls.wait" Read Get "/calls/{id}" "call" "The result of a call that waits for the question of this id; waits for it"
    OneId => |gateway, OneId { id }| gateway.0.calls.wait(&id).await;
    "approvals.list" Read Get "/approvals" "approvals" "The questions that wait for a person" Nothing => |gateway, _| {
        text(&gateway.0.gate.questions().open())
    };
    "approvals.answer" Dangerous Post "/approvals/{id}" "approve" "Answers a question"
    Answers => |gateway, Answers { id, answer }| {
        gateway.0.gate.questions().answer(&id, answer).map_err(portcullis::GateError::from)?;
        text(&json!({"id": id, "answer": answer}))
    };
    "approvals.deny-all" Dangerous Delete "/approvals" "deny" "Denies every question that waits" Nothing => |gateway, _| {
        text(&json!({"denied": gateway.0.gate.questions().deny_all()}))
    };
    "grants.list" Read Get "/grants" "grants" "What is always allowed" Nothing => |gateway, _| {
        let grants = gateway.0.gate.grants().await?;
        let grant = |(server, grant): &(String, portcullis::store::Grant)| {
            json!({"id": grant.id, "server": server, "tool": grant.tool, "caller": grant.caller, "at": grant.at})
        };
        text(&grants.iter().map(grant).collect::<Vec<_>>())
    };
    "grants.revoke" Dangerous Delete "/grants/{id}" "revoke" "Takes an \"always\" back" OneId => |gateway, OneId { id }| {
        gateway.0.gate.revoke(&id).await?;
        text(&json!({"id": id}))
    };
}

/// The tools of a server, and those that cannot be offered, with the reason.
fn listed(tools: &[ToolView], refused: &[RefusedTool]) -> Result<String, ApiError> {
    #[derive(Serialize)]
    struct Listed<'a> {
        tools: &'a [ToolView],
        refused: Vec<Value>,
    }
    let refused = refused.iter().map(|tool| json!({"name": tool.name, "reason": tool.reason})).collect();
    text(&Listed { tools, refused })
}
