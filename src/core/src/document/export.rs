//! From definitions back to text.

use serde_json::{Map, Value, json};

use super::{Document, ExportFormat, ExportSecrets};
use crate::{
    Definition,
    definition::{STARTUP_TIMEOUT_MS, TIMEOUT_MS},
    reference::Template,
    transport::{FieldValue, TransportKind},
};

/// Writes a document: strict JSON, `type` first, fields in the order of their table, two spaces of
/// indentation, a line end at the end.
///
/// A literal value of a secret field becomes `"${keep}"` unless `secrets` says otherwise; references
/// stay as they are written. In an object such as `auth` that goes for its texts except `type`,
/// and not for the lists in it. Writing the same document twice gives the same bytes.
#[must_use]
pub fn export(
    document: &Document,
    kinds: &[&'static TransportKind],
    format: ExportFormat,
    secrets: ExportSecrets,
) -> String {
    let servers: Map<String, Value> = document
        .servers
        .iter()
        .map(|definition| (definition.name().to_owned(), server(definition, kinds, format, secrets)))
        .collect();
    let wrapper = match format {
        ExportFormat::Canonical => "mcpServers",
        ExportFormat::VsCode => "servers",
    };
    let mut root = Map::new();
    root.insert(wrapper.to_owned(), servers.into());
    if !document.inputs.is_empty() {
        root.insert("inputs".to_owned(), json!(document.inputs));
    }
    // `Display` of a value cannot fail, and neither can writing to a `String`.
    format!("{:#}\n", Value::Object(root))
}

fn server(
    definition: &Definition,
    kinds: &[&'static TransportKind],
    format: ExportFormat,
    secrets: ExportSecrets,
) -> Value {
    let kind = kinds.iter().find(|kind| kind.name == definition.kind());
    let shown = match (format, kind) {
        (ExportFormat::VsCode, Some(kind)) => kind.vscode.unwrap_or(kind.name),
        _ => definition.kind(),
    };
    let mut fields = Map::new();
    fields.insert("type".to_owned(), shown.into());
    let table = kind.map_or(&[][..], |kind| kind.fields);
    let named = table.iter().map(|field| field.name).chain([TIMEOUT_MS, STARTUP_TIMEOUT_MS]);
    // What no table names comes last: a definition may be older than its transport.
    let others = definition.fields().keys().map(String::as_str);
    for name in named.chain(others) {
        let Some(value) = definition.fields().get(name).filter(|_| !fields.contains_key(name)) else { continue };
        let field = table.iter().find(|field| field.name == name);
        // An object of a kind that is not linked may hold anything.
        let secret = field.map_or(value.is_object(), |field| field.secret);
        let value = match secrets {
            ExportSecrets::Keep if secret => kept(value, field.is_none_or(|field| field.value == FieldValue::Object)),
            _ => value.clone(),
        };
        fields.insert(name.to_owned(), value);
    }
    fields.into()
}

/// The value with `"${keep}"` for every literal text.
fn kept(value: &Value, object: bool) -> Value {
    match value {
        Value::String(text) if Template::parse(text).is_ok_and(|template| template.is_literal()) => "${keep}".into(),
        Value::Object(members) => {
            let members = members.iter().map(|(name, value)| {
                let plain = object && (name == "type" || value.is_array());
                (name.clone(), if plain { value.clone() } else { kept(value, object) })
            });
            Value::Object(members.collect())
        }
        Value::Array(items) => items.iter().map(|item| kept(item, object)).collect(),
        other => other.clone(),
    }
}
