//! Tools as people see them: the raw id first, the server's words as its words.

use portcullis::{
    display::{escape, quote},
    gate::ToolView,
    tools::RefusedTool,
};
use serde::Deserialize;
use serde_json::{Value, value::RawValue};

use super::their_words;

/// A numbered list of the tools of one server.
#[must_use]
pub fn text(views: &[ToolView], refused: &[RefusedTool]) -> String {
    let mut lines = Vec::new();
    for (at, view) in views.iter().enumerate() {
        let tool = &view.descriptor;
        let state = match (view.enabled, &view.changed) {
            (true, _) => "on",
            (false, Some(_)) => "off, changed since you enabled it",
            (false, None) => "off",
        };
        lines.push(format!("{:>3}. {}  [{state}]", at + 1, quote(&tool.name)));
        if claims_read_only(tool.annotations.as_deref()) {
            lines.push("    the server says that it changes nothing; that is not checked".to_owned());
        }
        let title = tool.title.as_ref().map(|title| format!("title: {title}"));
        let words: Vec<_> = title.into_iter().chain(tool.description.clone()).collect();
        if !words.is_empty() {
            lines.push(their_words(&words.join("\n")));
        }
        let parameters = parameters(tool.input_schema.get());
        if !parameters.is_empty() {
            lines.push("    its parameters, in the same words:".to_owned());
            lines.push(their_words(&parameters.join("\n")));
        }
        if tool.hides_text() {
            lines.push(
                "    ! it holds characters that nobody can see; here and for models they are written out".to_owned(),
            );
        }
        lines.extend(view.changed.iter().flatten().map(|change| format!("    ~ {change}")));
    }
    for tool in refused {
        let name = tool.name.as_deref().map_or("(without a name)".to_owned(), quote);
        lines.push(format!("  -  {name} cannot be offered: {}", escape(&tool.reason)));
    }
    lines.join("\n")
}

/// Every text of a schema that a model reads, with its place: nothing of it is left out.
fn parameters(schema: &str) -> Vec<String> {
    let mut found = Vec::new();
    texts(&serde_json::from_str(schema).unwrap_or_default(), "", &mut found);
    found
}

fn texts(schema: &Value, place: &str, found: &mut Vec<String>) {
    let Some(members) = schema.as_object() else { return };
    for (key, value) in members {
        match (key.as_str(), value) {
            (
                "properties" | "patternProperties" | "$defs" | "definitions" | "dependentSchemas",
                Value::Object(named),
            ) => {
                for (name, inner) in named {
                    let below = if place.is_empty() { name.clone() } else { format!("{place}.{name}") };
                    if key.ends_with("roperties") {
                        found.push(below.clone());
                    }
                    texts(inner, &below, found);
                }
            }
            ("type" | "format" | "$schema" | "$ref" | "$id" | "required", _) => {}
            // A schema, or several of them.
            (
                "items"
                | "anyOf"
                | "oneOf"
                | "allOf"
                | "not"
                | "if"
                | "then"
                | "else"
                | "prefixItems"
                | "additionalProperties"
                | "contains"
                | "propertyNames",
                value,
            ) => match value {
                Value::Array(several) => several.iter().for_each(|one| texts(one, place, found)),
                one => texts(one, place, found),
            },
            (_, value) => words(value, &format!("{place}{}{key}", if place.is_empty() { "" } else { " " }), found),
        }
    }
}

/// Each text in a value that is none of a schema's own.
fn words(value: &Value, place: &str, found: &mut Vec<String>) {
    match value {
        Value::String(text) => found.push(format!("{place}: {text}")),
        Value::Array(items) => items.iter().for_each(|item| words(item, place, found)),
        Value::Object(members) => {
            members.iter().for_each(|(key, value)| words(value, &format!("{place} {key}"), found));
        }
        _ => {}
    }
}

fn claims_read_only(annotations: Option<&RawValue>) -> bool {
    #[derive(Deserialize, Default)]
    #[serde(default, rename_all = "camelCase")]
    struct Hints {
        read_only_hint: bool,
        destructive_hint: Option<bool>,
    }
    annotations
        .and_then(|text| serde_json::from_str::<Hints>(text.get()).ok())
        .is_some_and(|hints| hints.read_only_hint && hints.destructive_hint != Some(true))
}
