//! Calls, the questions that they wait for, what is always allowed, and the trail.

use portcullis::approval::{Answer, Arguments, Call};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};

use super::{Nothing, text};

operations! {
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
    "audit.list" Read Get "/audit" "log" "The newest lines of the trail, newest last; never arguments, never a secret"
    Newest => |gateway, Newest { lines }| text(&gateway.0.gate.trail(lines.min(TRAIL_LINES)).await?);
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

/// Most lines of the trail in one answer.
const TRAIL_LINES: usize = 10_000;

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Newest {
    /// How many; at most 10,000.
    #[serde(default = "some_lines", deserialize_with = "number")]
    lines: usize,
}

fn some_lines() -> usize {
    50
}

/// A number, also as the text that a query is.
fn number<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<usize, D::Error> {
    let value = Value::deserialize(deserializer)?;
    let number = value.as_u64().or_else(|| value.as_str()?.parse().ok());
    number.and_then(|number| number.try_into().ok()).ok_or_else(|| serde::de::Error::custom("`lines` is a number"))
}
