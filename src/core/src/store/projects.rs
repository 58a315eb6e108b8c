//! Projects and groups in the state, under one seal: a program that can write the file and not read the key registers
//! no folder and opens no group.

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::state::State;
use crate::{
    canonical::{self, hex, unhex},
    definition::{Fields, StoreKey},
    names::server_id,
};

/// A folder that a person registered.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Project {
    /// Its id, unique in the store.
    pub id: String,
    /// What it is called.
    pub name: String,
    /// The folder, absolute, without links.
    pub path: String,
    /// What a newer version wrote and this one does not know; kept as it is.
    #[serde(flatten)]
    pub unknown: Fields,
}

/// A selection of projects and servers with an endpoint and a token of its own.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Group {
    /// Its id, unique in the store.
    pub id: String,
    /// What it is called.
    pub name: String,
    /// The ids of its projects.
    #[serde(default)]
    pub projects: Vec<String>,
    /// Its servers, by their names in the document.
    #[serde(default)]
    pub servers: Vec<String>,
    /// What the token that opens its endpoint is known by; none before the first one is made. The token itself lies
    /// with the secrets.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub token: Option<String>,
    /// The file with the rules for its projects.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rules: Option<String>,
    /// What a newer version wrote and this one does not know; kept as it is.
    #[serde(flatten)]
    pub unknown: Fields,
}

impl State {
    /// The project of this id.
    #[must_use]
    pub fn project(&self, id: &str) -> Option<&Project> {
        self.projects.iter().find(|project| project.id == id)
    }

    /// The group of this id.
    #[must_use]
    pub fn group(&self, id: &str) -> Option<&Group> {
        self.groups.iter().find(|group| group.id == id)
    }

    /// Takes out of groups what is gone.
    pub(super) fn settle_groups(&mut self) {
        let projects: Vec<_> = self.projects.iter().map(|project| project.id.clone()).collect();
        let servers: Vec<_> = self.definitions.iter().map(|definition| definition.name().to_owned()).collect();
        for group in &mut self.groups {
            group.projects.retain(|id| projects.contains(id));
            group.servers.retain(|name| servers.contains(name));
        }
    }
}

/// An id for `name` that is not among `taken`.
pub(crate) fn new_id(name: &str, taken: impl Fn(&str) -> bool) -> String {
    let id = server_id(name);
    if !taken(&id) {
        return id;
    }
    (2_u32..).map(|number| format!("{id}-{number}")).find(|id| !taken(id)).unwrap_or(id)
}

fn sealed(projects: &Value, groups: &Value) -> Vec<u8> {
    let mut bytes = Vec::new();
    canonical::value(&json!([projects, groups]), &mut bytes);
    bytes
}

/// `projects`, `groups` and their seal; nothing where there are none.
pub(super) fn encode(state: &State, key: &StoreKey) -> Option<[(&'static str, Value); 3]> {
    if state.projects.is_empty() && state.groups.is_empty() {
        return None;
    }
    let (projects, groups) = (json!(state.projects), json!(state.groups));
    let seal = hex(&key.mac("projects", &sealed(&projects, &groups)));
    Some([("projects", projects), ("groups", groups), ("projectsSeal", seal.into())])
}

/// Takes over projects and groups whose seal holds; without one there are none.
pub(super) fn believe([projects, groups, seal]: [&Value; 3], state: &mut State, key: Option<&StoreKey>) {
    if projects.is_null() && groups.is_null() {
        return;
    }
    let holds = || {
        let seal = unhex(seal.as_str()?)?;
        key?.verify("projects", &sealed(projects, groups), &seal).then_some(())
    };
    let read = || Some((serde_json::from_value(projects.clone()).ok()?, serde_json::from_value(groups.clone()).ok()?));
    match holds().and_then(|()| read()) {
        Some((projects, groups)) => (state.projects, state.groups) = (projects, groups),
        None => {
            tracing::warn!("projects and groups are not believed: another program changed them in the store");
            // Kept as they are until a person decides anew, as whatever is not understood.
            for (name, value) in [("projects", projects), ("groups", groups), ("projectsSeal", seal)] {
                state.unknown.top.insert(name.to_owned(), value.clone());
            }
        }
    }
}
