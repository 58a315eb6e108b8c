//! What the endpoint offers: tools, resources and prompts of enabled servers, under names that lead back.
//!
//! What is known answers at once: tools come from what was listed last, and no server starts for them.
//! Resources and prompts are asked for, all servers at one time; one that is dead or slow is left out.

mod names;

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use futures::future::join_all;
use portcullis::{Gate, GateError, model_text::json_for_model, session::ListKind, tools::Tool};
use serde::Deserialize;
use serde_json::{Value, value::RawValue};

use self::names::Naming;
use crate::mcp::message::{RpcError, with_member};

/// How long a list of resources or prompts waits for servers that do not answer; their items are left out.
const LIST_TIME: Duration = Duration::from_secs(15);

/// Which servers an endpoint shows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Shown {
    /// All that are enabled.
    All,
    /// Those that the group of this id holds by now, as far as they are enabled; none once it is gone.
    Group(String),
    /// This one alone, under its own names.
    One(String),
}

/// The servers that are shown at one moment.
enum Servers {
    All,
    Named(Vec<String>),
}

impl Servers {
    fn has(&self, server: &str) -> bool {
        match self {
            Self::All => true,
            Self::Named(names) => names.iter().any(|name| name == server),
        }
    }
}

/// The view of one endpoint on the gate.
#[derive(Debug)]
pub(crate) struct Offer {
    gate: Gate,
    shown: Shown,
    naming: Naming,
    tools: Mutex<Arc<Tools>>,
}

/// Tools as they were offered last.
#[derive(Debug, Default)]
pub(crate) struct Tools {
    /// Each definition, under the name it has here.
    pub(crate) definitions: Vec<String>,
    index: HashMap<String, (String, Arc<Tool>)>,
}

/// A server that is shown.
struct Server {
    name: String,
    id: String,
}

impl Offer {
    /// `entry` is how clients call this endpoint in their configuration.
    pub(crate) fn new(gate: Gate, shown: Shown, entry: &str) -> Self {
        let naming = match shown {
            Shown::One(_) => Naming::Own,
            _ => Naming::many(entry),
        };
        Self { gate, shown, naming, tools: Mutex::default() }
    }

    /// Whether a server is shown by now, as far as it is enabled.
    pub(crate) async fn shows(&self, server: &str) -> bool {
        self.shown().await.is_ok_and(|shown| shown.has(server))
    }

    /// Looked at each time: what a person takes out of a group is gone at once, wherever they do it.
    async fn shown(&self) -> Result<Servers, GateError> {
        Ok(match &self.shown {
            Shown::All => Servers::All,
            Shown::One(name) => Servers::Named(vec![name.clone()]),
            Shown::Group(id) => match self.gate.group(id).await {
                Ok(group) => Servers::Named(group.servers),
                Err(GateError::UnknownGroup { .. }) => Servers::Named(Vec::new()),
                Err(error) => return Err(error),
            },
        })
    }

    pub(crate) fn gate(&self) -> &Gate {
        &self.gate
    }

    fn known(&self) -> Arc<Tools> {
        self.tools.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// The tools that may be called now. Starts nothing.
    pub(crate) async fn tools(&self) -> Result<Arc<Tools>, GateError> {
        let mut tools = Tools::default();
        let shown = self.shown().await?;
        for offered in self.gate.offered().await?.into_iter().filter(|offered| shown.has(&offered.server)) {
            let name = self.naming.name(&offered.id, offered.tool.name());
            let json = Value::from(name.as_str()).to_string();
            let Some(definition) = with_member(offered.tool.definition(), "name", &json) else { continue };
            tools.definitions.push(json_for_model(&definition).into_owned());
            tools.index.insert(name, (offered.server, offered.tool));
        }
        let tools = Arc::new(tools);
        *self.tools.lock().unwrap_or_else(PoisonError::into_inner) = tools.clone();
        Ok(tools)
    }

    /// Server and tool behind a name. A name never stands for anything else: whether it may be called is
    /// the gate's business.
    pub(crate) async fn tool(&self, name: &str) -> Result<Option<(String, String)>, GateError> {
        let found = self.behind(name).await?;
        Ok(found.map(|(server, tool)| (server, tool.name().to_owned())))
    }

    /// The tool behind a name, as it was defined when it was offered last.
    pub(crate) async fn definition(&self, name: &str) -> Result<Option<Arc<Tool>>, GateError> {
        Ok(self.behind(name).await?.map(|(_, tool)| tool))
    }

    async fn behind(&self, name: &str) -> Result<Option<(String, Arc<Tool>)>, GateError> {
        if let Some(found) = self.known().index.get(name) {
            // What was offered once may have been taken out of the group since.
            let shown = self.shown().await?;
            return Ok(Some(found.clone()).filter(|(server, _)| shown.has(server)));
        }
        Ok(self.tools().await?.index.get(name).cloned())
    }

    /// How often each server that runs said that a list changed, by id. Starts nothing.
    pub(crate) async fn changes(&self, kind: ListKind) -> Result<Vec<(String, u64)>, GateError> {
        let servers = self.servers().await?.into_iter();
        Ok(servers.map(|server| (server.id, self.gate.list_changes(&server.name, kind))).collect())
    }

    async fn servers(&self) -> Result<Vec<Server>, GateError> {
        let servers = self.gate.servers().await?.into_iter();
        let shown = self.shown().await?;
        let shown = servers.filter(|server| server.enabled && shown.has(&server.name));
        Ok(shown.map(|server| Server { name: server.name, id: server.id }).collect())
    }

    /// Every item of a list of all servers, under the names they have here.
    pub(crate) async fn list(&self, kind: ListKind) -> Result<Vec<String>, GateError> {
        let servers = self.servers().await?;
        let lists = join_all(servers.iter().map(|server| async move {
            let listed = tokio::time::timeout(LIST_TIME, self.gate.list(&server.name, kind)).await;
            match listed {
                Ok(Ok(items)) => items,
                Ok(Err(error)) => {
                    tracing::debug!(server = server.name, %error, "left out of a list");
                    Vec::new()
                }
                Err(_) => Vec::new(),
            }
        }))
        .await;
        let each = servers.iter().zip(lists);
        Ok(each
            .flat_map(|(server, items)| items.into_iter().filter_map(|item| self.item(server, kind, &item)))
            .collect())
    }

    fn item(&self, server: &Server, kind: ListKind, item: &RawValue) -> Option<String> {
        #[derive(Deserialize)]
        #[serde(rename_all = "camelCase")]
        struct Named {
            #[serde(default)]
            name: Option<String>,
            #[serde(default)]
            uri: Option<String>,
            #[serde(default)]
            uri_template: Option<String>,
        }
        let named: Named = serde_json::from_str(item.get()).ok()?;
        let (member, value) = match kind {
            ListKind::Prompts => ("name", self.naming.name(&server.id, &named.name?)),
            ListKind::ResourceTemplates => ("uriTemplate", self.naming.uri(&server.id, &named.uri_template?)),
            _ => ("uri", self.naming.uri(&server.id, &named.uri?)),
        };
        let item = with_member(item, member, &Value::from(value).to_string())?;
        Some(json_for_model(&item).into_owned())
    }

    /// Server and own address behind an address. One that a server wrote into a result leads to the only
    /// server that lists it.
    pub(crate) async fn resource(&self, uri: &str) -> Result<Option<(String, String)>, GateError> {
        let servers = self.servers().await?;
        if self.naming == Naming::Own {
            return Ok(only(servers, uri));
        }
        if let Some((id, own)) = names::own_uri(uri) {
            let found = servers.into_iter().find(|server| server.id == id);
            return Ok(found.map(|server| (server.name, own.to_owned())));
        }
        let listed = self.list(ListKind::Resources).await?;
        let of = |item: &String| {
            let item: Value = serde_json::from_str(item).ok()?;
            let (id, own) = names::own_uri(item["uri"].as_str()?)?;
            (own == uri).then(|| id.to_owned())
        };
        let ids: Vec<String> = listed.iter().filter_map(of).collect();
        let [id] = ids.as_slice() else { return Ok(None) };
        Ok(servers.into_iter().find(|server| server.id == *id).map(|server| (server.name, uri.to_owned())))
    }

    /// Server and own template of addresses.
    pub(crate) async fn template(&self, uri: &str) -> Result<Option<(String, String)>, GateError> {
        if self.naming == Naming::Own {
            return Ok(only(self.servers().await?, uri));
        }
        let Some((id, own)) = names::own_uri(uri) else { return Ok(None) };
        let found = self.servers().await?.into_iter().find(|server| server.id == id);
        Ok(found.map(|server| (server.name, own.to_owned())))
    }

    /// Server and own name behind the name of a prompt.
    pub(crate) async fn prompt(&self, name: &str) -> Result<Option<(String, String)>, GateError> {
        let servers = self.servers().await?;
        if self.naming == Naming::Own {
            return Ok(only(servers, name));
        }
        // The id holds no `_`: a plain name says whose it is, and only a hashed one has to be looked up.
        if let Some((id, own)) = name.split_once("__")
            && let Some(server) = servers.iter().find(|server| server.id == id)
            && self.naming.name(id, own) == name
        {
            return Ok(Some((server.name.clone(), own.to_owned())));
        }
        for server in servers {
            let listed = tokio::time::timeout(LIST_TIME, self.gate.list(&server.name, ListKind::Prompts)).await;
            for item in listed.ok().and_then(Result::ok).into_iter().flatten() {
                #[derive(Deserialize)]
                struct Named {
                    name: String,
                }
                if let Ok(named) = serde_json::from_str::<Named>(item.get())
                    && self.naming.name(&server.id, &named.name) == name
                {
                    return Ok(Some((server.name, named.name)));
                }
            }
        }
        Ok(None)
    }
}

/// The server behind every name of an endpoint that shows one.
fn only(servers: Vec<Server>, own: &str) -> Option<(String, String)> {
    servers.into_iter().next().map(|server| (server.name, own.to_owned()))
}

/// What the gate said, as the specification has it. A call that was refused is told to the model as a
/// result, since that is all that a model reads.
pub(crate) fn of_gate(error: &GateError) -> RpcError {
    let mut message = error.to_string();
    let mut source = std::error::Error::source(error);
    while let Some(cause) = source {
        let text = cause.to_string();
        if !message.contains(&text) {
            message = format!("{message}: {text}");
        }
        source = cause.source();
    }
    let code = match error.class() {
        portcullis::gate::ErrorClass::Usage | portcullis::gate::ErrorClass::Unknown => RpcError::INVALID_PARAMS,
        _ => RpcError::INTERNAL,
    };
    RpcError::new(code, message).with_data(serde_json::json!({"code": error.code(), "help": error.help()}))
}
