//! Tools as people see them: the raw id first, the server's words as its words.

use std::sync::Arc;

use portcullis::{
    display::{escape, quote},
    gate::ToolView,
    tools::RefusedTool,
};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use super::their_words;

/// One tool with `--json`; schemas are as the server wrote them.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ToolJson<'a> {
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

impl<'a> From<&'a ToolView> for ToolJson<'a> {
    fn from(view: &'a ToolView) -> Self {
        let tool = &view.descriptor;
        let raw = |value: &'a Option<Arc<RawValue>>| value.as_deref();
        Self {
            server: &tool.server,
            name: &tool.name,
            model_name: &tool.model_name,
            title: tool.title.as_deref(),
            description: tool.description.as_deref(),
            enabled: view.enabled,
            changed: view.changed.is_some(),
            input_schema: &tool.input_schema,
            output_schema: raw(&tool.output_schema),
            annotations: raw(&tool.annotations),
        }
    }
}

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
        lines.extend(view.changed.iter().flatten().map(|change| format!("    ~ {change}")));
    }
    for tool in refused {
        let name = tool.name.as_deref().map_or("(without a name)".to_owned(), quote);
        lines.push(format!("  -  {name} cannot be offered: {}", escape(&tool.reason)));
    }
    lines.join("\n")
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
