//! What servers offer: tools, resources, prompts.

use portcullis::{
    gate::{Choice, ToolView},
    session::ListKind,
    tools::RefusedTool,
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json, value::RawValue};

use super::{ApiError, OneServer, text};

operations! {
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
