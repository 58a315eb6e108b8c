//! JSON with comments, changed in its concrete tree.

use jsonc_parser::{
    ParseOptions,
    cst::{CstInputValue, CstRootNode},
};
use serde_json::Value;

use super::EditError;
use crate::ReadError;

pub(super) fn put(text: &str, root: &str, name: &str, entry: &Value) -> Result<String, EditError> {
    let tree = parse(text)?;
    let servers = tree.object_value_or_create().and_then(|file| file.object_value_or_create(root));
    let servers = servers.ok_or(EditError::Unsafe)?;
    match servers.get(name) {
        Some(old) => old.set_value(input(entry)),
        None => drop(servers.append(name, input(entry))),
    }
    Ok(tree.to_string())
}

pub(super) fn take(text: &str, root: &str, name: &str) -> Result<String, EditError> {
    let tree = parse(text)?;
    let servers = tree.object_value().and_then(|file| file.object_value(root)).ok_or(EditError::Unsafe)?;
    servers.get(name).ok_or(EditError::Unsafe)?.remove();
    Ok(tree.to_string())
}

fn parse(text: &str) -> Result<CstRootNode, EditError> {
    CstRootNode::parse(text, &ParseOptions::default()).map_err(|_| ReadError::Json(Vec::new()).into())
}

fn input(value: &Value) -> CstInputValue {
    match value {
        Value::Null => CstInputValue::Null,
        Value::Bool(value) => CstInputValue::Bool(*value),
        Value::Number(number) => CstInputValue::Number(number.to_string()),
        Value::String(text) => CstInputValue::String(text.clone()),
        Value::Array(items) => CstInputValue::Array(items.iter().map(input).collect()),
        Value::Object(members) => {
            CstInputValue::Object(members.iter().map(|(name, value)| (name.clone(), input(value))).collect())
        }
    }
}
