//! TOML, changed in its own form.

use serde_json::Value;
use toml_edit::{Array, DocumentMut, InlineTable, Item, Table, TableLike};

use super::EditError;
use crate::ReadError;

pub(super) fn put(text: &str, root: &'static str, name: &str, entry: &Value) -> Result<String, EditError> {
    let mut document = parse(text)?;
    if !document.contains_key(root) {
        let mut servers = Table::new();
        servers.set_implicit(true);
        document.insert(root, Item::Table(servers));
    }
    let servers = document[root].as_table_like_mut().ok_or(EditError::Shape(root))?;
    let inline = servers.get(name).is_some_and(Item::is_inline_table);
    let mut server = Table::new();
    for (field, value) in entry.as_object().into_iter().flatten() {
        server.insert(field, Item::Value(self::value(value)));
    }
    match servers.get_mut(name) {
        // What stands before it, a comment for example, stays there.
        Some(Item::Table(old)) => {
            *server.decor_mut() = old.decor().clone();
            server.set_position(old.position());
            *old = server;
        }
        _ if inline => drop(servers.insert(name, Item::Value(server.into_inline_table().into()))),
        _ => drop(servers.insert(name, Item::Table(server))),
    }
    Ok(document.to_string())
}

pub(super) fn take(text: &str, root: &'static str, name: &str) -> Result<String, EditError> {
    let mut document = parse(text)?;
    let servers: &mut dyn TableLike = document[root].as_table_like_mut().ok_or(EditError::Shape(root))?;
    servers.remove(name);
    Ok(document.to_string())
}

fn parse(text: &str) -> Result<DocumentMut, EditError> {
    text.parse().map_err(|_| ReadError::Toml { line: 1 }.into())
}

fn value(value: &Value) -> toml_edit::Value {
    match value {
        Value::Bool(value) => (*value).into(),
        Value::Number(number) => number.as_i64().unwrap_or_default().into(),
        Value::Array(items) => items.iter().map(self::value).collect::<Array>().into(),
        Value::Object(members) => {
            members.iter().map(|(name, value)| (name.as_str(), self::value(value))).collect::<InlineTable>().into()
        }
        // TOML has no null, and no entry has one.
        other => other.as_str().unwrap_or_default().into(),
    }
}
