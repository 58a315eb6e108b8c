//! The state in memory: definitions, and what a person decided about each of them.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::LazyLock,
};

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::projects::{Group, Project};
use crate::{
    canonical,
    definition::{Definition, Fields, Fingerprint, Input, StoreKey},
    tools::Pin,
    trust::TrustRecord,
};

/// How many changes are remembered, to say what a conflict is about.
const RECENT: usize = 64;

/// All that a store keeps.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct State {
    /// Counts saves; 0 before the first.
    pub revision: u64,
    /// The store's id, for entries that lie elsewhere (a keyring); empty until there is a key.
    pub id: String,
    /// The servers, in document order.
    pub definitions: Vec<Definition>,
    /// What the document asks a person for.
    pub inputs: Vec<Input>,
    /// The folders that a person registered.
    pub projects: Vec<Project>,
    /// What belongs together.
    pub groups: Vec<Group>,
    /// What a person decided, by server name. A server without an entry has the default.
    pub runtime: BTreeMap<String, Runtime>,
    /// Servers whose decisions were dropped while loading, since somebody else wrote them or
    /// changed the definition beside them. Not kept; for a host to say so.
    pub distrusted: Vec<String>,
    pub(super) unknown: Unknown,
    pub(super) recent: Vec<Recent>,
}

/// What a newer version wrote and this one does not know; kept as it is.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct Unknown {
    pub(super) top: Fields,
    pub(super) definitions: BTreeMap<String, Fields>,
    pub(super) inputs: BTreeMap<String, Fields>,
}

/// Which servers one save was about.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct Recent {
    pub(super) revision: u64,
    pub(super) servers: Vec<String>,
}

/// What a person decided about one server; the default is: nothing yet.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Runtime {
    /// Whether it may be started and its tools be offered.
    pub enabled: bool,
    /// The tools that are switched on, each as a person last saw it.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub enabled_tools: BTreeMap<String, Pin>,
    /// What happens to calls that nothing else decides.
    pub mode: Mode,
    /// The consent that is remembered.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub trust: Option<TrustRecord>,
    /// What is always allowed.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub grants: Vec<Grant>,
    /// What a newer version wrote and this one does not know; kept as it is.
    #[serde(flatten)]
    pub unknown: Fields,
}

/// What happens to calls of a server that nothing else decides.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Mode {
    /// A person is asked.
    #[default]
    Ask,
    /// Calls of tools that say they only read are allowed; the person believes this server.
    AllowReadOnly,
    /// Calls are allowed.
    Allow,
    /// Calls are denied.
    Deny,
}

/// A remembered "always" for one tool as it was defined.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Grant {
    /// Short and random; to revoke it by.
    pub id: String,
    /// The tool.
    pub tool: String,
    /// The tool's definition at that time; another one is not covered.
    pub pin: Pin,
    /// The caller it is for; everybody where there is none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub caller: Option<String>,
    /// When, as RFC 3339 in UTC.
    pub at: String,
}

static NOTHING_YET: LazyLock<Runtime> = LazyLock::new(Runtime::default);

impl State {
    /// The server of exactly this name.
    #[must_use]
    pub fn definition(&self, name: &str) -> Option<&Definition> {
        self.definitions.iter().find(|definition| definition.name() == name)
    }

    /// What a person decided about the server of this name; the default where they did not.
    #[must_use]
    pub fn runtime(&self, name: &str) -> &Runtime {
        self.runtime.get(name).unwrap_or(&NOTHING_YET)
    }

    /// The same, to be changed; `None` where there is no such server.
    pub fn runtime_mut(&mut self, name: &str) -> Option<&mut Runtime> {
        self.definition(name)?;
        Some(self.runtime.entry(name.to_owned()).or_default())
    }

    /// The declared inputs that a definition refers to, as one value, in the order of their ids.
    pub(super) fn inputs_of(&self, definition: &Definition) -> Value {
        let mut used: Vec<&Input> = self
            .inputs
            .iter()
            .filter(|input| {
                let reference = format!("${{input:{}}}", input.id);
                definition.fields().values().any(|value| mentions(value, &reference))
            })
            .collect();
        used.sort_by(|a, b| a.id.cmp(&b.id));
        serde_json::to_value(used).unwrap_or_default()
    }

    /// What decisions about a server hang off: its fingerprint, and the inputs it refers to, since
    /// another default of an input is another value of a variable.
    pub(super) fn standing(&self, definition: &Definition, key: &StoreKey) -> (Fingerprint, Vec<u8>) {
        let mut inputs = Vec::new();
        canonical::value(&self.inputs_of(definition), &mut inputs);
        (definition.fingerprint(key), inputs)
    }

    /// Holds a state that is about to be saved against the one it replaces: decisions about what
    /// is gone or has changed are dropped, and the save is noted with the servers it is about.
    pub(super) fn settle(&mut self, before: &Self, key: &StoreKey) {
        self.revision = before.revision + 1;
        self.id.clone_from(&before.id);
        self.unknown.clone_from(&before.unknown);
        let mut runtime = std::mem::take(&mut self.runtime);
        for definition in &self.definitions {
            let name = definition.name();
            let (fingerprint, inputs) = self.standing(definition, key);
            let changed = before.definition(name).is_some_and(|old| before.standing(old, key) != (fingerprint, inputs));
            let foreign = runtime
                .get(name)
                .and_then(|runtime| runtime.trust.as_ref())
                .is_some_and(|trust| trust.fingerprint != fingerprint);
            if !changed
                && !foreign
                && let Some(kept) = runtime.remove(name)
            {
                self.runtime.insert(name.to_owned(), kept);
            }
        }
        self.settle_groups();
        self.distrusted.clear();
        let servers = self.differs_from(before);
        self.recent.clone_from(&before.recent);
        self.recent.push(Recent { revision: self.revision, servers });
        let superfluous = self.recent.len().saturating_sub(RECENT);
        self.recent.drain(..superfluous);
    }

    /// Whether there is nothing to save: the same servers, inputs and decisions, in the same order.
    pub(super) fn says_the_same(&self, other: &Self) -> bool {
        // Maps are equal in any order, and a person's order is kept.
        let written = |state: &Self| {
            state
                .definitions
                .iter()
                .map(|definition| serde_json::to_string(definition.fields()).unwrap_or_default())
                .collect::<Vec<_>>()
        };
        self.definitions == other.definitions
            && self.inputs == other.inputs
            && self.projects == other.projects
            && self.groups == other.groups
            && self.differs_from(other).is_empty()
            && written(self) == written(other)
    }

    /// The servers that are not the same in both, sorted.
    pub(super) fn differs_from(&self, other: &Self) -> Vec<String> {
        let names: BTreeSet<&str> = self.definitions.iter().chain(&other.definitions).map(Definition::name).collect();
        names
            .into_iter()
            .filter(|name| self.definition(name) != other.definition(name) || self.runtime(name) != other.runtime(name))
            .map(str::to_owned)
            .collect()
    }

    /// The servers that changed after `revision`; as far as that is still known, else those in
    /// which `mine` differs.
    pub(super) fn changed_since(&self, revision: u64, mine: &Self) -> Vec<String> {
        let known = self.recent.first().is_some_and(|first| first.revision <= revision.saturating_add(1));
        if !known || revision > self.revision {
            return self.differs_from(mine);
        }
        let servers: BTreeSet<&String> =
            self.recent.iter().filter(|recent| recent.revision > revision).flat_map(|recent| &recent.servers).collect();
        servers.into_iter().cloned().collect()
    }
}

fn mentions(value: &Value, reference: &str) -> bool {
    match value {
        Value::String(text) => text.contains(reference),
        Value::Array(items) => items.iter().any(|item| mentions(item, reference)),
        Value::Object(map) => map.values().any(|item| mentions(item, reference)),
        _ => false,
    }
}
