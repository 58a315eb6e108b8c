//! Tools of the endpoint itself: the operations of the table that an agent may carry out.
//!
//! What changes something is decided by the gate as any other call. At the endpoint of a group there is nothing but
//! the group, and everything else does not exist, in the same words whatever it is.

use std::{
    sync::{Arc, LazyLock},
    time::{Duration, Instant},
};

use portcullis::{
    GateError, approval::Call, gate::CallContext, model_text::json_for_model, serde_json::value::RawValue, tools::Tool,
};
use serde_json::{Map, Value, json};

use crate::{
    manage::{ApiError, Grade, Operation, operations},
    routes::Gateway,
};

/// How the endpoint is called where a server's name stands.
pub(crate) const SERVER: &str = "portcullis";
/// Members of an input that hold the id of the group.
const GROUP: &str = "group_id";

/// One tool of the endpoint's own.
#[derive(Debug)]
pub(crate) struct OwnTool {
    operation: &'static Operation,
    /// As it is offered where there are several groups.
    tool: Arc<Tool>,
    /// As it is offered at the endpoint of one; none where it is of no group.
    of_group: Option<Arc<Tool>>,
}

static TOOLS: LazyLock<Vec<OwnTool>> = LazyLock::new(|| operations().filter_map(OwnTool::of).collect());

impl OwnTool {
    fn of(operation: &'static Operation) -> Option<Self> {
        let name = operation.tool.filter(|_| operation.grade != Grade::Dangerous)?;
        let schema = (operation.input)();
        let has_group = schema["properties"].get(GROUP).is_some();
        let tool = |schema: Value| {
            let definition = json!({
                "name": name,
                "description": operation.summary,
                "inputSchema": schema,
                "annotations": {"readOnlyHint": operation.grade == Grade::Read, "openWorldHint": false},
            });
            let raw = RawValue::from_string(definition.to_string()).ok()?;
            Tool::parse(&raw).ok().map(Arc::new)
        };
        let of_group = has_group.then(|| tool(without_group(schema.clone()))).flatten();
        Some(Self { operation, tool: tool(schema)?, of_group })
    }

    /// As it is offered at the endpoint of `group`, or of all.
    pub(crate) fn offered(&self, group: Option<&str>) -> Option<&Arc<Tool>> {
        match group {
            Some(_) => self.of_group.as_ref(),
            None => Some(&self.tool),
        }
    }
}

/// The id of the group may be left out where there is one group.
fn without_group(mut schema: Value) -> Value {
    if let Some(required) = schema.get_mut("required").and_then(Value::as_array_mut) {
        required.retain(|name| name != GROUP);
    }
    schema
}

/// All of them.
pub(crate) fn tools() -> impl Iterator<Item = &'static OwnTool> {
    TOOLS.iter()
}

/// The tool of this name.
pub(crate) fn tool(name: &str) -> Option<&'static OwnTool> {
    TOOLS.iter().find(|tool| tool.operation.tool == Some(name))
}

/// Carries out a call of a tool of the endpoint's own; the result as a client gets it.
///
/// # Errors
///
/// What the gate said before anything was done.
pub(crate) async fn call(
    gateway: &Gateway,
    tool: &'static OwnTool,
    group: Option<&str>,
    call: Call,
    context: &CallContext,
) -> Result<String, GateError> {
    let gate = &gateway.0.gate;
    let input = match input(&call, group) {
        Ok(input) => input,
        Err(error) => {
            gate.note_own(&call, "refused", Duration::ZERO).await?;
            return Ok(refused(&error));
        }
    };
    if tool.operation.grade != Grade::Read {
        let Some(offered) = tool.offered(group) else { return Ok(refused(&does_not_exist())) };
        gate.decide_own(offered.clone(), call.clone(), context).await?;
    }
    let begun = Instant::now();
    let done = tool.operation.carry_out(gateway, input).await;
    let noted = gate.note_own(&call, if done.is_ok() { "ok" } else { "tool-error" }, begun.elapsed()).await;
    match (tool.operation.grade, noted) {
        // It was written down that it was allowed, and it has happened: nobody is to try it again.
        (Grade::Write | Grade::Dangerous, Err(error)) => {
            tracing::error!(tool = call.tool, %error, "the trail lacks what came of it");
        }
        (_, noted) => noted?,
    }
    Ok(match done {
        Ok(text) => result(&text),
        Err(error) => refused(&error),
    })
}

fn input(call: &Call, group: Option<&str>) -> Result<Value, ApiError> {
    let mut input: Map<String, Value> = serde_json::from_str(call.arguments.get()).unwrap_or_default();
    if let Some(own) = group {
        match input.insert(GROUP.to_owned(), own.into()) {
            Some(other) if other != own => return Err(does_not_exist()),
            _ => {}
        }
    }
    Ok(input.into())
}

fn does_not_exist() -> ApiError {
    ApiError { help: None, ..ApiError::unknown("it does not exist") }
}

/// What an operation gave. A text is the text itself, so that a model reads it as it is.
fn result(text: &str) -> String {
    let value: Value = serde_json::from_str(text).unwrap_or_default();
    let plain = ["text", "prompt"].iter().find_map(|name| value[name].as_str());
    let result = match plain {
        Some(plain) => json!({"content": [{"type": "text", "text": plain}]}),
        None if value.is_object() => json!({"content": [{"type": "text", "text": text}], "structuredContent": value}),
        None => json!({"content": [{"type": "text", "text": text}]}),
    };
    for_model(&result)
}

fn refused(error: &ApiError) -> String {
    // Whatever is not to be seen is told in the same words.
    let hidden = does_not_exist();
    let error = if matches!(error.code.as_str(), "unknown-project" | "unknown-group") { &hidden } else { error };
    let help = error.help.as_deref().map(|help| format!("\n{help}")).unwrap_or_default();
    let words = format!("{}{help}", error.message);
    let code = json!({"portcullis/code": error.code});
    for_model(&json!({"content": [{"type": "text", "text": words}], "isError": true, "_meta": code}))
}

fn for_model(value: &Value) -> String {
    match RawValue::from_string(value.to_string()) {
        Ok(raw) => json_for_model(raw.get()).into_owned(),
        Err(_) => value.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn c6_there_are_at_most_twenty_with_short_descriptions_and_none_is_dangerous() {
        assert!(tools().count() > 5 && tools().count() <= 20, "{}", tools().count());
        for tool in tools() {
            let described = tool.tool.description().unwrap();
            assert!(described.chars().count() <= 100, "{described}: {}", described.chars().count());
            assert_ne!(tool.operation.grade, Grade::Dangerous);
            assert_eq!(tool.tool.claims_read_only(), tool.operation.grade == Grade::Read);
            // Each names the command that a person has for the same.
            assert!(described.ends_with(')') || described.contains("secrets"), "{described}");
        }
        let parsed = operations().filter(|operation| operation.tool.is_some()).count();
        assert_eq!(parsed, tools().count());
    }

    #[test]
    fn s48_another_group_is_refused_before_anything_is_looked_at() {
        let call = |arguments: &str| Call {
            server: SERVER.to_owned(),
            tool: "t".to_owned(),
            arguments: portcullis::approval::Arguments::parse(arguments.to_owned()).unwrap(),
            caller: "c".to_owned(),
        };
        assert_eq!(input(&call("{}"), Some("web")).unwrap(), json!({"group_id": "web"}));
        assert_eq!(input(&call(r#"{"group_id":"web"}"#), Some("web")).unwrap(), json!({"group_id": "web"}));
        assert_eq!(input(&call(r#"{"group_id":"ops"}"#), Some("web")), Err(does_not_exist()));
        assert_eq!(input(&call(r#"{"group_id":"ops"}"#), None).unwrap(), json!({"group_id": "ops"}));
    }
}
