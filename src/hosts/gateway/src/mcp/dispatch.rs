//! Every method of the protocol, in both eras.

use std::{borrow::Cow, sync::Arc};

use portcullis::session::{Completed, ListKind, LogLevel};
use serde::Deserialize;
use serde_json::{Value, json, value::RawValue};
use tokio::sync::mpsc;

use super::{
    HANDSHAKES, WITH_HANDSHAKE, calls,
    client::{Client, Identity},
    message::RpcError,
    revisions,
    subscriptions::Subscriptions,
    tasks,
};
use crate::offer::of_gate;

/// How long a list may be kept, in milliseconds (SEP-2549): not at all, since a decision of the person
/// changes it at once.
pub(super) const TTL_MS: u64 = 0;

/// Carries out a request. What has to be told before the result goes to `on`.
pub(crate) async fn request(
    client: &Arc<Client>,
    method: &str,
    params: Option<&RawValue>,
    on: &mpsc::Sender<String>,
) -> Result<String, RpcError> {
    let result = match method {
        "tools/call" => return calls::call(client, params, on).await,
        "tools/list" => tools(client, params).await?,
        "resources/list" => list(client, params, ListKind::Resources).await?,
        "resources/templates/list" => list(client, params, ListKind::ResourceTemplates).await?,
        "prompts/list" => list(client, params, ListKind::Prompts).await?,
        "resources/read" => return calls::read_resource(client, params, on).await,
        "prompts/get" => return calls::get_prompt(client, params, on).await,
        "completion/complete" => return complete(client, params).await,
        "server/discover" if client.stateless => discovered(),
        "tasks/get" | "tasks/update" | "tasks/cancel" if client.stateless => {
            return tasks::request(client, method, params);
        }
        _ if client.stateless => return Err(RpcError::method_not_found(method)),
        "initialize" => return initialize(client, params),
        "ping" => return Ok("{}".to_owned()),
        "logging/setLevel" => {
            #[derive(Deserialize)]
            struct Sets {
                level: LogLevel,
            }
            client.set_log_level(Some(calls::read::<Sets>(params)?.level));
            return Ok("{}".to_owned());
        }
        "resources/subscribe" => {
            Subscriptions::add(client, &located(params)?).await?;
            return Ok("{}".to_owned());
        }
        "resources/unsubscribe" => {
            client.subscriptions.remove(&located(params)?);
            return Ok("{}".to_owned());
        }
        _ => return Err(RpcError::method_not_found(method)),
    };
    Ok(if client.stateless { complete_result(&result).unwrap_or(result) } else { result })
}

/// From revision 2026-07-28 on a result says that it is one.
pub(super) fn complete_result(result: &str) -> Option<String> {
    match result.strip_prefix('{')?.trim_start() {
        "}" => Some(r#"{"resultType":"complete"}"#.to_owned()),
        members => Some([r#"{"resultType":"complete","#, members].concat()),
    }
}

fn server_info() -> Value {
    json!({"name": "portcullis", "title": "Portcullis", "version": env!("CARGO_PKG_VERSION")})
}

fn capabilities(stateless: bool) -> Value {
    let mut resources = json!({"listChanged": true});
    if !stateless {
        resources["subscribe"] = true.into();
    }
    let mut capabilities = json!({"tools": {"listChanged": true}, "resources": resources, "prompts": {"listChanged": true}, "completions": {}, "logging": {}});
    if stateless {
        capabilities["extensions"] = json!({tasks::EXTENSION: {}});
    }
    capabilities
}

const INSTRUCTIONS: &str = "The tools of several servers, behind one gate: a person may be asked before a call happens. \
A call that was denied is not to be repeated unless the person says so.";

fn initialize(client: &Arc<Client>, params: Option<&RawValue>) -> Result<String, RpcError> {
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Initialize<'a> {
        #[serde(borrow)]
        protocol_version: Cow<'a, str>,
        #[serde(borrow, default)]
        capabilities: Option<&'a RawValue>,
        #[serde(borrow, default)]
        client_info: Option<&'a RawValue>,
    }
    let initialize: Initialize<'_> = calls::read(params)?;
    client.introduce(Identity::read(initialize.client_info, initialize.capabilities));
    let wanted = HANDSHAKES.iter().find(|known| **known == initialize.protocol_version);
    Ok(json!({
        "protocolVersion": wanted.unwrap_or(&WITH_HANDSHAKE),
        "capabilities": capabilities(false),
        "serverInfo": server_info(),
        "instructions": INSTRUCTIONS,
    })
    .to_string())
}

/// SEP-2575.
fn discovered() -> String {
    json!({
        "supportedVersions": revisions(),
        "capabilities": capabilities(true),
        "instructions": INSTRUCTIONS,
        "ttlMs": TTL_MS,
        "cacheScope": "private",
        "_meta": {"io.modelcontextprotocol/serverInfo": server_info()},
    })
    .to_string()
}

/// The client's own lists have one page.
fn first_page(params: Option<&RawValue>) -> Result<(), RpcError> {
    #[derive(Deserialize)]
    struct Paged {
        #[serde(default)]
        cursor: Option<String>,
    }
    let paged: Paged = calls::read(params)?;
    match paged.cursor {
        None => Ok(()),
        Some(_) => Err(RpcError::invalid_params("there is no such page: every list here is one page")),
    }
}

async fn tools(client: &Client, params: Option<&RawValue>) -> Result<String, RpcError> {
    first_page(params)?;
    let tools = client.endpoint.definitions().await.map_err(|error| of_gate(&error))?;
    Ok(page(client, "tools", &tools))
}

async fn list(client: &Client, params: Option<&RawValue>, kind: ListKind) -> Result<String, RpcError> {
    first_page(params)?;
    let items = client.endpoint.offer.list(kind).await.map_err(|error| of_gate(&error))?;
    let member = match kind {
        ListKind::Tools => "tools",
        ListKind::Resources => "resources",
        ListKind::ResourceTemplates => "resourceTemplates",
        ListKind::Prompts => "prompts",
    };
    Ok(page(client, member, &items))
}

fn page(client: &Client, member: &str, items: &[String]) -> String {
    let hints = if client.stateless { format!(r#","ttlMs":{TTL_MS},"cacheScope":"private""#) } else { String::new() };
    format!(r#"{{"{member}":[{}]{hints}}}"#, items.join(","))
}

fn located(params: Option<&RawValue>) -> Result<String, RpcError> {
    #[derive(Deserialize)]
    struct Located {
        uri: String,
    }
    calls::read::<Located>(params).map(|located| located.uri)
}

async fn complete(client: &Client, params: Option<&RawValue>) -> Result<String, RpcError> {
    #[derive(Deserialize)]
    struct Complete {
        r#ref: Reference,
        argument: Argument,
    }
    #[derive(Deserialize)]
    #[serde(tag = "type")]
    enum Reference {
        #[serde(rename = "ref/prompt")]
        Prompt { name: String },
        #[serde(rename = "ref/resource")]
        Resource { uri: String },
    }
    #[derive(Deserialize)]
    struct Argument {
        name: String,
        value: String,
    }
    let complete: Complete = calls::read(params)?;
    let offer = &client.endpoint.offer;
    let (found, is_prompt) = match &complete.r#ref {
        Reference::Prompt { name } => (offer.prompt(name).await, true),
        Reference::Resource { uri } => (offer.template(uri).await, false),
    };
    let found = found.map_err(|error| of_gate(&error))?;
    let (server, own) = found.ok_or_else(|| RpcError::invalid_params("there is nothing of that name"))?;
    let of = if is_prompt { Completed::Prompt(&own) } else { Completed::Resource(&own) };
    let Argument { name, value } = &complete.argument;
    let completed = offer.gate().complete(&server, of, name, value).await;
    let completed = completed.map_err(|error| of_gate(&error))?.into_string();
    Ok(if client.stateless { calls::finished(completed, false) } else { completed })
}
