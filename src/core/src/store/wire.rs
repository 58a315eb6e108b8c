//! The state as bytes: version 2, every decision under seal, unknown fields kept.
//!
//! ```json
//! {"version": 2, "revision": 7, "id": "…",
//!  "definitions": [{"name": "files", "type": "stdio", "fields": {"command": "npx"}}],
//!  "inputs": [],
//!  "runtime": {"files": {"enabled": true, "mode": "ask", "fingerprint": "…", "seal": "…"}},
//!  "recent": [{"revision": 7, "servers": ["files"]}],
//!  "projects": [], "groups": [], "projectsSeal": "…"}
//! ```
//!
//! The seal of a record is an HMAC under the store's key over the server's name, the fingerprint
//! of its definition, the inputs it refers to, and the whole record. A program that can write this
//! file but not read the key can take decisions away, or bring back a whole older record for the
//! very same definition; it cannot make one.

use serde_json::{Map, Value, json};

use super::{
    StoreError, projects,
    state::{Recent, Runtime, State, Unknown},
};
use crate::{
    canonical::{self, hex, unhex},
    definition::{Definition, Fields, Fingerprint, Input, StoreKey},
    display::escape,
};

const VERSION: u64 = 2;
const FINGERPRINT: &str = "fingerprint";
const SEAL: &str = "seal";
const TOP: [&str; 7] = ["version", "revision", "id", "definitions", "inputs", "runtime", "recent"];
const ENTRY: [&str; 3] = ["name", "type", "fields"];
const INPUT: [&str; 6] = ["id", "type", "description", "default", "password", "options"];

pub(super) fn random_key() -> Result<StoreKey, StoreError> {
    let mut bytes = [0; 32];
    getrandom::fill(&mut bytes).map_err(|_| StoreError::Random)?;
    Ok(StoreKey::new(bytes))
}

/// The id of the store with this key: the same for every host, and nobody can choose it.
pub(super) fn store_id(key: &StoreKey) -> String {
    hex(&key.mac("store id", b"")[..16])
}

pub(super) fn encode(state: &State, key: &StoreKey) -> Vec<u8> {
    let definitions: Vec<Value> = state
        .definitions
        .iter()
        .map(|definition| {
            let entry = json!({"name": definition.name(), "type": definition.kind(), "fields": definition.fields()});
            with(entry, state.unknown.definitions.get(definition.name()))
        })
        .collect();
    let inputs: Vec<Value> =
        state.inputs.iter().map(|input| with(json!(input), state.unknown.inputs.get(&input.id))).collect();
    let mut runtime = Map::new();
    for definition in &state.definitions {
        let Some(decided) = state.runtime.get(definition.name()).filter(|decided| **decided != Runtime::default())
        else {
            continue;
        };
        let fingerprint = definition.fingerprint(key);
        let mut record = json!(decided);
        let seal = key.mac("runtime", &sealed(state, definition, fingerprint, &record));
        record[FINGERPRINT] = json!(fingerprint);
        record[SEAL] = json!(hex(&seal));
        runtime.insert(definition.name().to_owned(), record);
    }
    let whole = json!({
        "version": VERSION,
        "revision": state.revision,
        "id": store_id(key),
        "definitions": definitions,
        "inputs": inputs,
        "runtime": runtime,
        "recent": state.recent,
    });
    let mut whole = whole;
    for (name, value) in projects::encode(state, key).into_iter().flatten() {
        whole[name] = value;
    }
    let mut bytes = serde_json::to_vec_pretty(&with(whole, Some(&state.unknown.top))).unwrap_or_default();
    bytes.push(b'\n');
    bytes
}

fn with(mut value: Value, unknown: Option<&Fields>) -> Value {
    if let (Some(map), Some(unknown)) = (value.as_object_mut(), unknown) {
        for (name, value) in unknown {
            map.entry(name).or_insert_with(|| value.clone());
        }
    }
    value
}

fn sealed(state: &State, definition: &Definition, fingerprint: Fingerprint, record: &Value) -> Vec<u8> {
    let mut bytes = Vec::new();
    let whole = json!([definition.name(), fingerprint, state.inputs_of(definition), record]);
    canonical::value(&whole, &mut bytes);
    bytes
}

/// Reads what [`encode`] wrote. Without a key no record is believed.
pub(super) fn decode(bytes: &[u8], key: Option<&StoreKey>) -> Result<State, String> {
    if bytes.iter().all(u8::is_ascii_whitespace) {
        return Err("it is empty".to_owned());
    }
    let whole: Value = serde_json::from_slice(bytes).map_err(|error| syntax(&error))?;
    let Value::Object(mut whole) = whole else { return Err("it is not a JSON object".to_owned()) };
    match whole.get("version") {
        Some(version) if version.as_u64() == Some(VERSION) => {}
        Some(Value::Number(version)) => {
            return Err(format!("it is of version {version}, and this program reads version {VERSION}"));
        }
        Some(_) => return Err("its `version` is no number".to_owned()),
        None => return Err("it has no `version`".to_owned()),
    }
    let mut state = State { id: key.map(store_id).unwrap_or_default(), ..State::default() };
    state.revision = match whole.get("revision").map(Value::as_u64) {
        // The next one has to fit, too.
        Some(Some(revision)) if revision < u64::MAX => revision,
        _ => return Err("its `revision` is no number".to_owned()),
    };
    for entry in list(&mut whole, "definitions")? {
        definition(entry, &mut state)?;
    }
    for entry in list(&mut whole, "inputs")? {
        input(entry, &mut state)?;
    }
    // Only said in messages, so what is no such list is as good as none.
    state.recent = whole
        .get("recent")
        .and_then(|recent| serde_json::from_value::<Vec<Recent>>(recent.clone()).ok())
        .unwrap_or_default();
    match whole.remove("runtime") {
        Some(Value::Object(records)) => believe(records, &mut state, key),
        None => {}
        Some(_) => return Err("its `runtime` is no object".to_owned()),
    }
    let mut part = |name: &str| whole.remove(name).unwrap_or_default();
    let (projects, groups, seal) = (part("projects"), part("groups"), part("projectsSeal"));
    whole.retain(|name, _| !TOP.contains(&name.as_str()));
    state.unknown.top = whole;
    projects::believe([&projects, &groups, &seal], &mut state, key);
    Ok(state)
}

/// Where the text stops making sense. Never what stands there: it could be a secret.
fn syntax(error: &serde_json::Error) -> String {
    let (line, column) = (error.line(), error.column());
    match error.classify() {
        serde_json::error::Category::Eof => format!("it ends in the middle (line {line}, column {column})"),
        _ => format!("it is not valid JSON (line {line}, column {column})"),
    }
}

fn list(whole: &mut Map<String, Value>, name: &str) -> Result<Vec<Value>, String> {
    match whole.remove(name) {
        Some(Value::Array(items)) => Ok(items),
        None => Ok(Vec::new()),
        Some(_) => Err(format!("its `{name}` is no list")),
    }
}

fn definition(entry: Value, state: &mut State) -> Result<(), String> {
    let number = state.definitions.len() + 1;
    let unusable = || format!("entry {number} of its `definitions` is no definition");
    let Value::Object(mut entry) = entry else { return Err(unusable()) };
    let (Some(Value::String(name)), Some(Value::String(kind)), Some(Value::Object(fields))) =
        (entry.shift_remove("name"), entry.shift_remove("type"), entry.shift_remove("fields"))
    else {
        return Err(unusable());
    };
    if state.definition(&name).is_some() {
        return Err(format!("it defines `{}` twice", escape(&name)));
    }
    entry.retain(|key, _| !ENTRY.contains(&key.as_str()));
    keep_unknown(&mut state.unknown, |unknown| &mut unknown.definitions, &name, entry);
    state.definitions.push(Definition::new(name, kind, fields));
    Ok(())
}

fn input(entry: Value, state: &mut State) -> Result<(), String> {
    let number = state.inputs.len() + 1;
    let input: Input = serde_json::from_value(entry.clone())
        .map_err(|_| format!("entry {number} of its `inputs` is no input that this program knows"))?;
    if let Value::Object(mut entry) = entry {
        entry.retain(|key, _| !INPUT.contains(&key.as_str()));
        keep_unknown(&mut state.unknown, |unknown| &mut unknown.inputs, &input.id, entry);
    }
    state.inputs.push(input);
    Ok(())
}

fn keep_unknown(
    unknown: &mut Unknown,
    place: fn(&mut Unknown) -> &mut std::collections::BTreeMap<String, Fields>,
    name: &str,
    fields: Fields,
) {
    if !fields.is_empty() {
        place(unknown).insert(name.to_owned(), fields);
    }
}

/// Takes over the records whose seal holds; the others are as if nobody had decided anything.
fn believe(records: Map<String, Value>, state: &mut State, key: Option<&StoreKey>) {
    for (name, record) in records {
        match believable(record, &name, state, key) {
            Some(runtime) => {
                state.runtime.insert(name, runtime);
            }
            None => {
                tracing::warn!(server = %escape(&name), "what was decided about this server is not believed: the record or the definition was changed by another program");
                state.distrusted.push(name);
            }
        }
    }
}

fn believable(record: Value, name: &str, state: &State, key: Option<&StoreKey>) -> Option<Runtime> {
    let definition = state.definition(name)?;
    let fingerprint = definition.fingerprint(key?);
    let Value::Object(mut record) = record else { return None };
    let seal = unhex(record.shift_remove(SEAL)?.as_str()?)?;
    if Fingerprint::parse(record.shift_remove(FINGERPRINT)?.as_str()?)? != fingerprint {
        return None;
    }
    let record = Value::Object(record);
    if !key?.verify("runtime", &sealed(state, definition, fingerprint, &record), &seal) {
        return None;
    }
    let runtime: Runtime = serde_json::from_value(record).ok()?;
    if runtime.trust.as_ref().is_some_and(|trust| trust.fingerprint != fingerprint) {
        return None;
    }
    Some(runtime)
}
