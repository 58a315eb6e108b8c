//! A document meets the state: what stays as it was, what starts over, what goes.
//!
//! A definition that is unchanged keeps everything a person decided about it; a new or changed one
//! starts from nothing. Values that the document left to the store (`"${keep}"`) are filled in
//! from the definition of the same name, but never for another host than they were given for.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;
use url::Url;

use super::State;
use crate::{
    definition::{Definition, Fields, Fingerprint, Input, StoreKey},
    display::escape,
};

/// The value that means: the one that is stored for this field.
const KEEP: &str = "${keep}";

/// What happens to servers that the document does not name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum How {
    /// They stay.
    Merge,
    /// They are removed: the document is the whole.
    Replace,
}

/// What became of the servers, each list in the order of the state.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Reconciled {
    /// New ones.
    pub added: Vec<String>,
    /// Those that start over.
    pub changed: Vec<String>,
    /// Those that keep what was decided. Time limits may have changed.
    pub unchanged: Vec<String>,
    /// Those that are gone.
    pub removed: Vec<String>,
    /// Definitions that are no more: their processes are to be stopped, their tools forgotten.
    pub stale: Vec<Fingerprint>,
}

/// Why a document does not fit the state.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ReconcileError {
    /// There is no such value to keep.
    #[error("`{}` has no stored value for `{}` that `${{keep}}` could stand for; write the value itself", escape(.server), escape(.pointer))]
    KeepUnknown {
        /// The server.
        server: String,
        /// RFC 6901 pointer below the server, such as `/env/TOKEN`.
        pointer: String,
    },
    /// The value was given for another scheme, host or port.
    #[error("the stored value of `{}` was given for another scheme, host or port than `{}` has now, so it is not kept; write the value itself", escape(.pointer), escape(.server))]
    KeepMoved {
        /// The server.
        server: String,
        /// RFC 6901 pointer below the server, such as `/headers/Authorization`.
        pointer: String,
    },
    /// Two servers would share an id.
    #[error("`{}` and `{}` share the id `{id}`; rename one of them", escape(.server), escape(.other))]
    NameCollision {
        /// The server of the document.
        server: String,
        /// The one before it, or the stored one.
        other: String,
        /// What they share.
        id: String,
    },
    /// Two inputs of one id ask for different things.
    #[error("the input `{}` is declared already, and differently; give it another id", escape(.id))]
    InputConflict {
        /// The id.
        id: String,
    },
}

/// Puts the servers and inputs of a document into `state`.
///
/// # Errors
///
/// Everything that does not fit, at once; `state` is untouched then.
pub fn reconcile(
    state: &mut State,
    mut servers: Vec<Definition>,
    inputs: Vec<Input>,
    how: How,
    key: &StoreKey,
) -> Result<Reconciled, Vec<ReconcileError>> {
    let mut errors = Vec::new();
    for server in &mut servers {
        fill_in(server, state.definition(server.name()), &mut errors);
    }
    let mut next = State { inputs: merge_inputs(state, inputs, how, &mut errors), ..state.clone() };
    let given: BTreeSet<String> = servers.iter().map(|server| server.name().to_owned()).collect();
    next.definitions = match how {
        How::Merge => merge(&state.definitions, servers),
        How::Replace => servers,
    };
    find_collisions(&next.definitions, &given, &mut errors);
    if !errors.is_empty() {
        return Err(errors);
    }
    let reconciled = compare(state, &next, &given, key);
    next.runtime.retain(|name, _| reconciled.unchanged.contains(name) || !is_named(&reconciled, name));
    *state = next;
    Ok(reconciled)
}

fn is_named(reconciled: &Reconciled, name: &String) -> bool {
    [&reconciled.added, &reconciled.changed, &reconciled.removed].into_iter().any(|names| names.contains(name))
}

/// Stored servers keep their places, new ones follow.
fn merge(stored: &[Definition], servers: Vec<Definition>) -> Vec<Definition> {
    let mut merged = stored.to_vec();
    for server in servers {
        match merged[..stored.len()].iter_mut().find(|old| old.name() == server.name()) {
            Some(old) => *old = server,
            None => merged.push(server),
        }
    }
    merged
}

fn merge_inputs(state: &State, inputs: Vec<Input>, how: How, errors: &mut Vec<ReconcileError>) -> Vec<Input> {
    let mut merged = match how {
        How::Merge => state.inputs.clone(),
        How::Replace => Vec::new(),
    };
    for input in inputs {
        match merged.iter().find(|other| other.id == input.id) {
            None => merged.push(input),
            Some(other) if *other == input => {}
            Some(_) => errors.push(ReconcileError::InputConflict { id: input.id }),
        }
    }
    merged
}

fn find_collisions(definitions: &[Definition], given: &BTreeSet<String>, errors: &mut Vec<ReconcileError>) {
    let mut ids: BTreeMap<String, &Definition> = BTreeMap::new();
    for definition in definitions {
        let id = definition.id();
        let Some(other) = ids.insert(id.clone(), definition) else { continue };
        // Of the two, the one to rename is the one that the document names.
        let (server, other) = if given.contains(definition.name()) { (definition, other) } else { (other, definition) };
        errors.push(ReconcileError::NameCollision {
            server: server.name().to_owned(),
            other: other.name().to_owned(),
            id,
        });
    }
}

fn compare(before: &State, after: &State, given: &BTreeSet<String>, key: &StoreKey) -> Reconciled {
    let mut found = Reconciled::default();
    for definition in &after.definitions {
        let name = definition.name().to_owned();
        let Some(old) = before.definition(&name) else {
            found.added.push(name);
            continue;
        };
        if before.standing(old, key) != after.standing(definition, key) {
            found.stale.push(old.fingerprint(key));
            found.changed.push(name);
        } else if given.contains(&name) {
            found.unchanged.push(name);
        }
    }
    for old in &before.definitions {
        if after.definition(old.name()).is_none() {
            found.stale.push(old.fingerprint(key));
            found.removed.push(old.name().to_owned());
        }
    }
    found
}

/// Puts stored values where the document says `"${keep}"`.
fn fill_in(server: &mut Definition, stored: Option<&Definition>, errors: &mut Vec<ReconcileError>) {
    let name = server.name().to_owned();
    let stored = stored.filter(|stored| stored.kind() == server.kind());
    let moved = stored.is_some_and(|stored| goes_elsewhere(stored.fields(), server.fields()));
    for (field, value) in server.fields_mut() {
        let old = stored.and_then(|stored| stored.fields().get(field));
        visit(value, old, &mut format!("/{}", token(field)), &mut |old, pointer| match old {
            None => {
                errors.push(ReconcileError::KeepUnknown { server: name.clone(), pointer: pointer.to_owned() });
                None
            }
            Some(_) if moved => {
                errors.push(ReconcileError::KeepMoved { server: name.clone(), pointer: pointer.to_owned() });
                None
            }
            Some(old) => Some(old.to_owned()),
        });
    }
}

/// Walks a value beside the stored one, and asks `resolve` for each `"${keep}"`.
fn visit(
    value: &mut Value,
    old: Option<&Value>,
    pointer: &mut String,
    resolve: &mut dyn FnMut(Option<&str>, &str) -> Option<String>,
) {
    let end = pointer.len();
    match value {
        Value::String(text) if text == KEEP => {
            if let Some(kept) = resolve(old.and_then(Value::as_str), pointer) {
                *text = kept;
            }
        }
        Value::Array(items) => {
            for (index, item) in items.iter_mut().enumerate() {
                pointer.push_str(&format!("/{index}"));
                visit(item, old.and_then(|old| old.get(index)), pointer, resolve);
                pointer.truncate(end);
            }
        }
        Value::Object(map) => {
            for (key, item) in map {
                pointer.push('/');
                pointer.push_str(&token(key));
                visit(item, old.and_then(|old| old.get(key)), pointer, resolve);
                pointer.truncate(end);
            }
        }
        _ => {}
    }
}

/// A key as part of an RFC 6901 pointer.
fn token(key: &str) -> String {
    key.replace('~', "~0").replace('/', "~1")
}

/// Whether what is sent would go to another scheme, host or port: the definition's own URL, or
/// one of its authorization.
fn goes_elsewhere(old: &Fields, new: &Fields) -> bool {
    let (mut before, mut after) = (BTreeMap::new(), BTreeMap::new());
    for (fields, places) in [(old, &mut before), (new, &mut after)] {
        for (field, value) in fields {
            match value {
                Value::String(_) => note_place(field.clone(), value, places),
                Value::Object(_) if field == "auth" => note_places(field, value, places),
                _ => {}
            }
        }
    }
    before != after
}

fn note_places(path: &str, value: &Value, places: &mut BTreeMap<String, Place>) {
    match value {
        Value::Object(map) => map.iter().for_each(|(key, value)| note_places(&format!("{path}/{key}"), value, places)),
        Value::Array(items) => {
            items.iter().enumerate().for_each(|(index, item)| note_places(&format!("{path}/{index}"), item, places));
        }
        _ => note_place(path.to_owned(), value, places),
    }
}

fn note_place(path: String, value: &Value, places: &mut BTreeMap<String, Place>) {
    let Some(text) = value.as_str() else { return };
    let name = path.to_ascii_lowercase();
    let is_place = ["url", "uri", "endpoint", "issuer"].iter().any(|end| name.ends_with(end));
    let place = Place::of(text);
    // Of other fields only what is a URL; a command that begins with a variable is none.
    if is_place || text.contains("://") || matches!(place, Place::Known { .. }) {
        places.insert(path, place);
    }
}

/// Where a URL goes.
#[derive(Debug, PartialEq, Eq)]
enum Place {
    Known {
        scheme: String,
        host: String,
        port: Option<u16>,
    },
    /// A reference decides it, or it is no URL that we can read: the same text, or another place.
    Text(String),
}

impl Place {
    fn of(text: &str) -> Self {
        let known = || {
            let url = Url::parse(text).ok().filter(|_| !is_decided_by_reference(text))?;
            // A reader may find the host elsewhere than we looked.
            let host = url.host_str().filter(|host| !host.contains(['$', '{', '}']))?.to_owned();
            Some(Self::Known { scheme: url.scheme().to_owned(), host, port: url.port_or_known_default() })
        };
        known().unwrap_or_else(|| Self::Text(text.to_owned()))
    }
}

/// Whether a reference stands in the scheme, the host or the port, or could.
fn is_decided_by_reference(text: &str) -> bool {
    let Some(first) = text.find("${") else { return false };
    let Some((scheme, rest)) = text.split_once("://") else { return true };
    let authority = rest.trim_start_matches(['/', '\\']);
    let start = text.len() - authority.len();
    let end = authority.find(['/', '?', '#', '\\']).map_or(text.len(), |end| start + end);
    first < end || scheme.contains(['/', '\\'])
}

#[cfg(test)]
mod tests;
