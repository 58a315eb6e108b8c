//! One tool, each part as the server wrote it, and the list of a server's tools.

use std::{borrow::Cow, collections::BTreeMap, sync::Arc};

use serde::Deserialize;
use serde_json::value::RawValue;

use super::{
    Pin,
    headers::{self, HeaderParameter},
    output::{self, Misfit, OutputCheck},
};
use crate::display;

/// One tool of one server. Nothing of the definition is lost or written anew.
#[derive(Debug, Clone)]
pub struct Tool {
    name: String,
    title: Option<String>,
    description: Option<String>,
    definition: Arc<RawValue>,
    input_schema: Arc<RawValue>,
    output_schema: Option<Arc<RawValue>>,
    annotations: Option<Arc<RawValue>>,
    read_only: bool,
    headers: Result<Vec<HeaderParameter>, String>,
    output: OutputCheck,
    pin: Pin,
}

/// A tool that cannot be offered; the others of its server can.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RefusedTool {
    /// Its name, where it has one.
    pub name: Option<String>,
    /// Why.
    pub reason: String,
}

#[derive(Deserialize)]
struct Parts<'a> {
    name: String,
    title: Option<String>,
    description: Option<String>,
    #[serde(rename = "inputSchema", borrow)]
    input_schema: &'a RawValue,
    #[serde(rename = "outputSchema", borrow, default)]
    output_schema: Option<&'a RawValue>,
    #[serde(borrow, default)]
    annotations: Option<&'a RawValue>,
}

#[derive(Deserialize, Default)]
#[serde(default, rename_all = "camelCase")]
struct Hints {
    title: Option<String>,
    read_only_hint: bool,
    destructive_hint: Option<bool>,
}

impl Tool {
    /// Reads one definition.
    ///
    /// # Errors
    ///
    /// [`RefusedTool`] where it lacks what a tool must have, or where readers could differ in what
    /// it says.
    pub fn parse(definition: &RawValue) -> Result<Self, RefusedTool> {
        let text = definition.get();
        let refuse = |name: Option<String>, reason: String| RefusedTool { name, reason };
        let parts: Parts<'_> =
            serde_json::from_str(text).map_err(|error| refuse(name_of(text), plain_words(&error)))?;
        if parts.name.is_empty() {
            return Err(refuse(Some(parts.name), "its name is empty".to_owned()));
        }
        if !parts.input_schema.get().starts_with('{') {
            return Err(refuse(Some(parts.name), "its `inputSchema` is no object".to_owned()));
        }
        for (field, schema) in [("inputSchema", Some(parts.input_schema)), ("outputSchema", parts.output_schema)] {
            if let Some(schema) = schema {
                output::look(field, schema.get()).map_err(|reason| refuse(Some(parts.name.clone()), reason))?;
            }
        }
        let pin = Pin::of(text).map_err(|error| refuse(Some(parts.name.clone()), error.to_string()))?;
        let hints: Hints = parts.annotations.and_then(|text| serde_json::from_str(text.get()).ok()).unwrap_or_default();
        Ok(Self {
            title: parts.title.or(hints.title),
            name: parts.name,
            description: parts.description,
            input_schema: parts.input_schema.to_owned().into(),
            output_schema: parts.output_schema.map(|schema| schema.to_owned().into()),
            annotations: parts.annotations.map(|annotations| annotations.to_owned().into()),
            read_only: hints.read_only_hint && hints.destructive_hint != Some(true),
            definition: definition.to_owned().into(),
            headers: headers::marked(parts.input_schema.get()),
            output: OutputCheck::default(),
            pin,
        })
    }

    /// The name that goes over the wire.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The server's name for people. Never shown instead of [`name`](Self::name).
    #[must_use]
    pub fn title(&self) -> Option<&str> {
        self.title.as_deref()
    }

    /// The server's words on what it does.
    #[must_use]
    pub fn description(&self) -> Option<&str> {
        self.description.as_deref()
    }

    /// The whole definition as the server wrote it.
    #[must_use]
    pub fn definition(&self) -> &Arc<RawValue> {
        &self.definition
    }

    /// The schema of its arguments, untouched.
    #[must_use]
    pub fn input_schema(&self) -> &Arc<RawValue> {
        &self.input_schema
    }

    /// The schema of its structured result, untouched.
    #[must_use]
    pub fn output_schema(&self) -> Option<&Arc<RawValue>> {
        self.output_schema.as_ref()
    }

    /// Its annotations, untouched.
    #[must_use]
    pub fn annotations(&self) -> Option<&Arc<RawValue>> {
        self.annotations.as_ref()
    }

    /// Whether the server says that it changes nothing. A hint: it counts only for a server whose
    /// hints a person chose to believe.
    #[must_use]
    pub fn claims_read_only(&self) -> bool {
        self.read_only
    }

    /// The headers in which arguments travel too (SEP-2243), without `Mcp-Param-`.
    pub fn header_names(&self) -> impl Iterator<Item = &str> {
        self.headers.iter().flatten().map(HeaderParameter::name)
    }

    /// The arguments that travel as headers too, by name without `Mcp-Param-`, where they travel over
    /// HTTP. One that is absent or null has none.
    #[must_use]
    pub fn header_values(&self, arguments: &RawValue) -> Vec<(String, String)> {
        self.headers.as_ref().map(|parameters| headers::values(parameters, arguments)).unwrap_or_default()
    }

    /// Makes ready to check results, where the server promised something of them.
    ///
    /// # Errors
    ///
    /// Why none could be checked.
    pub(crate) async fn prepare_output(&self) -> Result<(), String> {
        match &self.output_schema {
            Some(schema) => self.output.prepare(schema).await,
            None => Ok(()),
        }
    }

    /// Whether a result is what the server promised of this tool's results.
    pub(crate) async fn judge_output(&self, result: &str) -> Result<(), Misfit> {
        match &self.output_schema {
            Some(schema) => self.output.judge(schema, result).await,
            None => Ok(()),
        }
    }

    /// The pin of its definition.
    #[must_use]
    pub fn pin(&self) -> Pin {
        self.pin
    }
}

fn name_of(text: &str) -> Option<String> {
    #[derive(Deserialize)]
    struct Named<'a> {
        #[serde(borrow)]
        name: Cow<'a, str>,
    }
    serde_json::from_str::<Named<'_>>(text).ok().map(|named| named.name.into_owned())
}

/// What serde says, without the position in a text that the person never saw.
fn plain_words(error: &serde_json::Error) -> String {
    let text = error.to_string();
    let text = text.split(" at line ").next().unwrap_or(&text);
    display::escape(text).into_owned()
}

/// The tools of one server, in its order.
#[derive(Debug, Clone, Default)]
pub struct ToolList {
    tools: Vec<Arc<Tool>>,
    by_name: BTreeMap<String, usize>,
    refused: Vec<RefusedTool>,
    listed: Vec<Arc<RawValue>>,
}

impl ToolList {
    /// Reads definitions one by one: keeps the good, names the bad. Two of one name are both
    /// refused, since only the server knows which one a call would reach.
    pub fn parse<'a>(definitions: impl IntoIterator<Item = &'a RawValue>) -> Self {
        Self::read(definitions, false)
    }

    /// The same over HTTP, where a tool whose schema marks headers that there cannot be must not be
    /// offered (SEP-2243).
    pub(crate) fn parse_over_http<'a>(definitions: impl IntoIterator<Item = &'a RawValue>) -> Self {
        Self::read(definitions, true)
    }

    fn read<'a>(definitions: impl IntoIterator<Item = &'a RawValue>, over_http: bool) -> Self {
        let mut reading = Reading::new(over_http);
        definitions.into_iter().for_each(|definition| reading.add(definition));
        reading.done()
    }

    /// The tool of this name.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<&Arc<Tool>> {
        self.by_name.get(name).map(|at| &self.tools[*at])
    }

    /// All, in the server's order.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = &Arc<Tool>> {
        self.tools.iter()
    }

    /// Every definition as it was listed, also of those that cannot be offered.
    pub fn listed(&self) -> impl ExactSizeIterator<Item = &RawValue> {
        self.listed.iter().map(AsRef::as_ref)
    }

    /// How many can be offered.
    #[must_use]
    pub fn len(&self) -> usize {
        self.tools.len()
    }

    /// Whether none can be offered.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.tools.is_empty()
    }

    /// Those that cannot.
    #[must_use]
    pub fn refused(&self) -> &[RefusedTool] {
        &self.refused
    }
}

/// A list of tools that is being read, definition by definition.
#[derive(Debug)]
pub(crate) struct Reading {
    over_http: bool,
    list: ToolList,
    tools: Vec<Arc<Tool>>,
    seen: BTreeMap<String, usize>,
}

impl Reading {
    pub(crate) fn new(over_http: bool) -> Self {
        Self { over_http, list: ToolList::default(), tools: Vec::new(), seen: BTreeMap::new() }
    }

    /// One more definition.
    pub(crate) fn add(&mut self, definition: &RawValue) {
        let parsed = Tool::parse(definition).and_then(|tool| match &tool.headers {
            Err(reason) if self.over_http => Err(RefusedTool { name: Some(tool.name.clone()), reason: reason.clone() }),
            _ => Ok(tool),
        });
        match parsed {
            Ok(tool) => {
                self.list.listed.push(tool.definition.clone());
                *self.seen.entry(tool.name.clone()).or_default() += 1;
                self.tools.push(Arc::new(tool));
            }
            Err(refused) => {
                self.list.listed.push(definition.to_owned().into());
                self.list.refused.push(refused);
            }
        }
    }

    pub(crate) fn done(self) -> ToolList {
        let Self { mut list, tools, seen, .. } = self;
        for (name, count) in seen.iter().filter(|(_, count)| **count > 1) {
            let reason = format!("the server lists {count} tools of this name");
            list.refused.push(RefusedTool { name: Some(name.clone()), reason });
        }
        list.tools = tools.into_iter().filter(|tool| seen.get(&tool.name) == Some(&1)).collect();
        list.by_name = list.tools.iter().enumerate().map(|(at, tool)| (tool.name.clone(), at)).collect();
        list
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn list(definitions: &[&str]) -> ToolList {
        let raw: Vec<_> = definitions.iter().map(|text| RawValue::from_string((*text).to_owned()).unwrap()).collect();
        ToolList::parse(raw.iter().map(AsRef::as_ref))
    }

    #[test]
    fn one_bad_tool_hides_no_good_one() {
        let list = list(&[
            r#"{"name":"good","inputSchema":{"type":"object","x":1e400},"futureField":1}"#,
            r#"{"name":"bad","inputSchema":"no object"}"#,
            r#"{"name":"bare"}"#,
            r#"{"name":7,"inputSchema":{}}"#,
            r#"{"name":"","inputSchema":{}}"#,
            r#"{"name":"twice","name":"other","inputSchema":{}}"#,
            r#"{"name":"inner","inputSchema":{"a":1,"a":2}}"#,
        ]);
        assert_eq!(list.iter().map(|tool| tool.name()).collect::<Vec<_>>(), ["good"]);
        assert_eq!(list.get("good").unwrap().input_schema().get(), r#"{"type":"object","x":1e400}"#);
        let refused: Vec<_> =
            list.refused().iter().map(|r| format!("{}: {}", r.name.as_deref().unwrap_or("?"), r.reason)).collect();
        insta::assert_snapshot!(refused.join("\n"), @r"
        bad: its `inputSchema` is no object
        bare: missing field `inputSchema`
        ?: invalid type: integer `7`, expected a string
        : its name is empty
        ?: duplicate field `name`
        inner: the key `a` appears twice in one object
        ");
    }

    #[test]
    fn s29_two_tools_of_one_name_are_both_refused() {
        let list = list(&[
            r#"{"name":"a","inputSchema":{}}"#,
            r#"{"name":"b","inputSchema":{}}"#,
            r#"{"name":"a","inputSchema":{"x":1}}"#,
        ]);
        assert!(list.get("a").is_none());
        assert_eq!(list.len(), 1);
        assert_eq!(list.refused()[0].reason, "the server lists 2 tools of this name");
    }

    #[test]
    fn s19_a_destructive_tool_does_not_pass_as_read_only() {
        let list = list(&[
            r#"{"name":"a","inputSchema":{},"annotations":{"readOnlyHint":true,"destructiveHint":true}}"#,
            r#"{"name":"b","inputSchema":{},"annotations":{"readOnlyHint":"yes"}}"#,
            r#"{"name":"c","inputSchema":{},"annotations":{"readOnlyHint":true}}"#,
        ]);
        assert_eq!(list.iter().map(|tool| tool.claims_read_only()).collect::<Vec<_>>(), [false, false, true]);
    }
}
