//! Which tools a person switched on, as they last saw them.

use std::{collections::BTreeMap, sync::Arc};

use serde::Serialize;
use serde_json::value::RawValue;

use super::{Gate, GateError, find, nearest, sessions::Purpose};
use crate::{
    definition::Fingerprint,
    session::Session,
    store::{CachedTools, Runtime, change},
    tools::{Pin, RefusedTool, Tool, ToolDescriptor, ToolList, difference},
};

/// One tool as a person sees it.
#[derive(Debug, Clone)]
pub struct ToolView {
    /// What a model is told of it.
    pub descriptor: ToolDescriptor,
    /// The pin of the definition that is shown.
    pub pin: Pin,
    /// Whether it is switched on and may be called.
    pub enabled: bool,
    /// Whether a person switched it on as something else; what changed, escaped for display.
    pub changed: Option<Vec<String>>,
}

/// As the command line and the management API show it, with every schema as its server wrote it.
impl Serialize for ToolView {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        #[derive(Serialize)]
        #[serde(rename_all = "camelCase")]
        struct Shown<'a> {
            server: &'a str,
            name: &'a str,
            model_name: &'a str,
            title: Option<&'a str>,
            description: Option<&'a str>,
            enabled: bool,
            changed: bool,
            input_schema: &'a RawValue,
            output_schema: Option<&'a RawValue>,
            annotations: Option<&'a RawValue>,
        }
        let tool = &self.descriptor;
        let shown = Shown {
            server: &tool.server,
            name: &tool.name,
            model_name: &tool.model_name,
            title: tool.title.as_deref(),
            description: tool.description.as_deref(),
            enabled: self.enabled,
            changed: self.changed.is_some(),
            input_schema: &tool.input_schema,
            output_schema: tool.output_schema.as_deref(),
            annotations: tool.annotations.as_deref(),
        };
        shown.serialize(serializer)
    }
}

/// A tool that a model may be offered.
#[derive(Debug, Clone)]
pub struct OfferedTool {
    /// Its server, by its name in the document.
    pub server: String,
    /// The id of that server in model-facing names.
    pub id: String,
    /// The tool as its server defines it.
    pub tool: Arc<Tool>,
}

/// Tools to switch on or off.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Choice {
    /// All that are known.
    All,
    /// These.
    Named(Vec<String>),
    /// These, as a person was shown them; one that is something else by now is refused.
    Seen(BTreeMap<String, Pin>),
}

impl Gate {
    /// The tools of one server as they were listed last, and those that cannot be offered. Starts nothing.
    ///
    /// # Errors
    ///
    /// [`GateError::NotDiscovered`] where it never was asked.
    pub async fn tools(&self, name: &str) -> Result<(Vec<ToolView>, Vec<RefusedTool>), GateError> {
        let state = self.state().await?;
        let definition = find(&state, name)?;
        let fingerprint = definition.fingerprint(&self.key().await?);
        let Some(known) = self.0.parts.cache.load(fingerprint).await else {
            return Err(GateError::NotDiscovered { server: name.to_owned() });
        };
        let list = known.list();
        let runtime = state.runtime(name);
        let style = self.0.parts.name_style;
        let id = definition.id();
        let views = list
            .iter()
            .map(|tool| {
                let pin = runtime.enabled_tools.get(tool.name());
                ToolView {
                    descriptor: ToolDescriptor::new(style, name, &id, tool),
                    pin: tool.pin(),
                    enabled: pin == Some(&tool.pin()),
                    changed: pin.filter(|pin| **pin != tool.pin()).map(|_| changes(&known, tool)),
                }
            })
            .collect();
        Ok((views, list.refused().to_vec()))
    }

    /// What a model may be offered: enabled, unchanged tools of enabled servers, from what is known
    /// already. Starts nothing.
    ///
    /// # Errors
    ///
    /// What the store says.
    pub async fn descriptors(&self) -> Result<Vec<ToolDescriptor>, GateError> {
        let style = self.0.parts.name_style;
        let offered = self.offered().await?;
        Ok(offered.iter().map(|one| ToolDescriptor::new(style, &one.server, &one.id, &one.tool)).collect())
    }

    /// The same with each definition as its server wrote it.
    ///
    /// # Errors
    ///
    /// What the store says.
    pub async fn offered(&self) -> Result<Vec<OfferedTool>, GateError> {
        let state = self.state().await?;
        let key = self.key_of(&state).await?;
        let mut offered = Vec::new();
        for definition in &state.definitions {
            let runtime = state.runtime(definition.name());
            if !runtime.enabled || runtime.enabled_tools.is_empty() {
                continue;
            }
            let Some(known) = self.0.parts.cache.load(definition.fingerprint(&key)).await else { continue };
            let id = definition.id();
            let list = known.list();
            let chosen = list.iter().filter(|tool| runtime.enabled_tools.get(tool.name()) == Some(&tool.pin()));
            offered.extend(chosen.map(|tool| OfferedTool {
                server: definition.name().to_owned(),
                id: id.clone(),
                tool: tool.clone(),
            }));
        }
        Ok(offered)
    }

    /// The server and tool behind a model-facing name that is offered now.
    ///
    /// # Errors
    ///
    /// [`GateError::UnknownTool`].
    pub async fn resolve(&self, model_name: &str) -> Result<(String, String), GateError> {
        let offered = self.descriptors().await?;
        let found = offered.into_iter().find(|tool| tool.model_name == model_name);
        found.map(|tool| (tool.server, tool.name)).ok_or_else(|| GateError::UnknownTool {
            server: String::new(),
            tool: model_name.to_owned(),
            near: None,
        })
    }

    /// Starts a trusted server if it does not run, lists its tools and remembers them. One that is not
    /// enabled is ended again.
    ///
    /// # Errors
    ///
    /// [`GateError::NotTrusted`], [`GateError::TrustChanged`], or why it did not start or list.
    pub async fn refresh(&self, name: &str) -> Result<(), GateError> {
        let fresh = self.running(name).is_none();
        let lease = self.session(name, Purpose::List).await?;
        let session = &lease.session;
        let listed = if fresh { Ok(session.tools()) } else { session.refresh().await };
        let listed = listed.map_err(|error| self.failed(name, None, error));
        let result = match listed {
            Ok(list) => self.remember(session, &list).await.and_then(|()| self.held_list(name, &list)),
            Err(error) => Err(error),
        };
        drop(lease);
        self.stop_if_unfit(name).await;
        result
    }

    /// Keeps what a server listed; grants of a tool that changed are gone from here on.
    pub(super) async fn remember(&self, session: &Session, list: &Arc<ToolList>) -> Result<(), GateError> {
        if !session.is_noted(list) {
            self.take_note(session, list).await?;
            session.note(list);
        }
        Ok(())
    }

    async fn take_note(&self, session: &Session, list: &ToolList) -> Result<(), GateError> {
        let (name, fingerprint) = (session.server(), session.fingerprint());
        let key = self.key().await?;
        let known = self.0.parts.cache.load(fingerprint).await;
        let state = self.state().await?;
        self.granted().retain(|(granted, tool, pin, _)| {
            *granted != fingerprint || list.get(tool).is_none_or(|now| now.pin() == *pin)
        });
        let stale = |runtime: &Runtime| {
            runtime.grants.iter().any(|grant| list.get(&grant.tool).is_some_and(|tool| tool.pin() != grant.pin))
        };
        if stale(state.runtime(name)) {
            change(self.store(), |state| {
                let same = state.definition(name).is_some_and(|now| now.fingerprint(&key) == fingerprint);
                if same && let Some(runtime) = state.runtime_mut(name) {
                    runtime.grants.retain(|grant| list.get(&grant.tool).is_none_or(|tool| tool.pin() == grant.pin));
                }
                Ok::<_, GateError>(())
            })
            .await?;
        }
        let listed: Vec<Box<RawValue>> = list.listed().map(ToOwned::to_owned).collect();
        let same = |known: &CachedTools| {
            known.revision.as_deref() == session.revision()
                && known.listed.len() == listed.len()
                && known.listed.iter().zip(&listed).all(|(old, new)| old.get() == new.get())
        };
        if known.as_ref().is_some_and(same) {
            return Ok(());
        }
        let pinned = pinned(state.runtime(name), known.as_ref(), list);
        let tools = CachedTools {
            listed,
            pinned,
            at: jiff::Timestamp::now().to_string(),
            headers: session.wants_headers(),
            revision: session.revision().map(str::to_owned),
        };
        Ok(self.0.parts.cache.save(fingerprint, &tools).await?)
    }

    /// Switches tools on, each as it is known now, and off. A new or changed tool is off until then.
    ///
    /// # Errors
    ///
    /// [`GateError::NotTrusted`], [`GateError::NotDiscovered`], [`GateError::UnknownTool`]; nothing is changed then.
    pub async fn select(&self, name: &str, on: Option<Choice>, off: Option<Choice>) -> Result<(), GateError> {
        let state = self.state().await?;
        let definition = find(&state, name)?;
        if state.runtime(name).trust.is_none() {
            return Err(GateError::NotTrusted { server: name.to_owned() });
        }
        let fingerprint = definition.fingerprint(&self.key().await?);
        let Some(mut known) = self.0.parts.cache.load(fingerprint).await else {
            return Err(GateError::NotDiscovered { server: name.to_owned() });
        };
        let list = known.list();
        self.held(definition)?;
        let on = match (on, self.locked_tools(name)) {
            // All of them are all that were reviewed.
            (Some(Choice::All), Some(locked)) => Some(Choice::Named(locked.keys().cloned().collect())),
            (on, _) => on,
        };
        let on = pins(name, &list, on)?;
        self.held_tools(name, &on)?;
        let off = pins(name, &list, off)?;
        self.decide(name, |runtime| {
            runtime.enabled_tools.extend(on.clone());
            runtime.enabled_tools.retain(|tool, _| !off.contains_key(tool));
        })
        .await?;
        let before = known.pinned.len();
        known.pinned.retain(|tool, _| !on.contains_key(tool) && !off.contains_key(tool));
        if known.pinned.len() != before {
            self.0.parts.cache.save(fingerprint, &known).await?;
        }
        Ok(())
    }

    /// What changed of a tool that is enabled as something else.
    pub(super) async fn changes_of(&self, fingerprint: Fingerprint, tool: &Arc<Tool>) -> Vec<String> {
        match self.0.parts.cache.load(fingerprint).await {
            Some(known) => changes(&known, tool),
            None => vec!["its definition".to_owned()],
        }
    }
}

fn known_tool<'a>(server: &str, list: &'a ToolList, tool: &str) -> Result<&'a Arc<Tool>, GateError> {
    list.get(tool).ok_or_else(|| GateError::UnknownTool {
        server: server.to_owned(),
        tool: tool.to_owned(),
        near: nearest(tool, list.iter().map(|tool| tool.name())),
    })
}

fn pins(server: &str, list: &ToolList, choice: Option<Choice>) -> Result<BTreeMap<String, Pin>, GateError> {
    let pin = |tool: &Arc<Tool>| (tool.name().to_owned(), tool.pin());
    match choice {
        None => Ok(BTreeMap::new()),
        Some(Choice::All) => Ok(list.iter().map(pin).collect()),
        Some(Choice::Named(names)) => names.iter().map(|tool| known_tool(server, list, tool).map(pin)).collect(),
        Some(Choice::Seen(seen)) => {
            for (tool, seen) in &seen {
                if known_tool(server, list, tool)?.pin() != *seen {
                    let changes = vec!["its definition, since it was shown".to_owned()];
                    return Err(GateError::ToolChanged { server: server.to_owned(), tool: tool.clone(), changes });
                }
            }
            Ok(seen)
        }
    }
}

/// The definitions that a person last saw, of the tools that are something else now.
fn pinned(runtime: &Runtime, known: Option<&CachedTools>, list: &ToolList) -> BTreeMap<String, Box<RawValue>> {
    let Some(known) = known else { return BTreeMap::new() };
    let before = known.list();
    runtime
        .enabled_tools
        .iter()
        .filter(|(tool, pin)| list.get(tool).is_some_and(|now| now.pin() != **pin))
        .filter_map(|(tool, pin)| {
            let seen = match before.get(tool) {
                Some(old) if old.pin() == *pin => (**old.definition()).to_owned(),
                _ => known.pinned.get(tool)?.clone(),
            };
            Some((tool.clone(), seen))
        })
        .collect()
}

fn changes(known: &CachedTools, tool: &Tool) -> Vec<String> {
    match known.pinned.get(tool.name()) {
        Some(before) => difference(before, tool.definition()),
        None => vec!["its definition".to_owned()],
    }
}
