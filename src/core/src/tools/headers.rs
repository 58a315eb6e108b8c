//! Arguments that travel as HTTP headers too, as a tool's schema marks them (`x-mcp-header`, SEP-2243).

use std::{
    borrow::Cow,
    collections::{HashMap, HashSet},
};

use serde_json::{Map, Value, value::RawValue};

const MARK: &str = "x-mcp-header";
/// Members of a schema that hold no schemas.
const DATA: &[&str] = &["default", "const", "enum", "examples", "dependentRequired"];
/// Members of a schema that hold schemas by name.
const BY_NAME: &[&str] = &["$defs", "definitions", "dependencies", "dependentSchemas", "patternProperties"];

/// One argument: where it stands, and its header's name without `Mcp-Param-`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct HeaderParameter {
    path: Vec<String>,
    header: String,
}

impl HeaderParameter {
    pub(crate) fn name(&self) -> &str {
        &self.header
    }
}

/// The marked arguments of an input schema.
///
/// # Errors
///
/// Why a client must not offer the tool over HTTP.
pub(crate) fn marked(schema: &str) -> Result<Vec<HeaderParameter>, String> {
    if memchr::memmem::find(schema.as_bytes(), MARK.as_bytes()).is_none() {
        return Ok(Vec::new());
    }
    let schema: Map<String, Value> =
        serde_json::from_str(schema).map_err(|_| "its `inputSchema` cannot be searched for headers".to_owned())?;
    let mut found = Vec::new();
    walk(&schema, &mut Vec::new(), true, &mut found)?;
    let mut seen = HashSet::new();
    for parameter in &found {
        if !seen.insert(parameter.header.to_ascii_lowercase()) {
            return Err(format!("two arguments want the header `{}`", parameter.header));
        }
    }
    Ok(found)
}

/// `on_chain`: whether it is the root, or a property reached from it through `properties` alone.
fn walk(
    schema: &Map<String, Value>,
    path: &mut Vec<String>,
    on_chain: bool,
    found: &mut Vec<HeaderParameter>,
) -> Result<(), String> {
    for (key, value) in schema {
        match key.as_str() {
            MARK if !on_chain || path.is_empty() => {
                return Err(format!("`{MARK}` stands where no argument is"));
            }
            MARK => found.push(parameter(schema, value, path)?),
            "properties" => {
                for (name, value) in value.as_object().into_iter().flatten() {
                    path.push(name.clone());
                    if let Some(schema) = value.as_object() {
                        walk(schema, path, on_chain, found)?;
                    }
                    path.pop();
                }
            }
            key if DATA.contains(&key) => {}
            key if BY_NAME.contains(&key) => {
                for value in value.as_object().into_iter().flat_map(Map::values) {
                    below(value, path, found)?;
                }
            }
            _ => below(value, path, found)?,
        }
    }
    Ok(())
}

fn below(value: &Value, path: &mut Vec<String>, found: &mut Vec<HeaderParameter>) -> Result<(), String> {
    match value {
        Value::Object(schema) => walk(schema, path, false, found),
        Value::Array(items) => items.iter().try_for_each(|item| below(item, path, found)),
        _ => Ok(()),
    }
}

fn parameter(schema: &Map<String, Value>, mark: &Value, path: &[String]) -> Result<HeaderParameter, String> {
    let name = path.join(".");
    let header = mark.as_str().filter(|header| !header.is_empty() && header.bytes().all(is_token));
    let Some(header) = header else { return Err(format!("`{MARK}` of the argument `{name}` names no header")) };
    if !matches!(schema.get("type").and_then(Value::as_str), Some("string" | "integer" | "boolean")) {
        return Err(format!("the argument `{name}` is to be a header and is no string, integer or boolean"));
    }
    Ok(HeaderParameter { path: path.to_vec(), header: header.to_owned() })
}

/// RFC 9110, section 5.6.2.
fn is_token(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte)
}

/// Name and value of each header for these arguments; one that is absent or null has none.
pub(crate) fn values(parameters: &[HeaderParameter], arguments: &RawValue) -> Vec<(String, String)> {
    parameters
        .iter()
        .filter_map(|parameter| Some((parameter.header.clone(), value(&parameter.path, arguments)?)))
        .collect()
}

fn value(path: &[String], arguments: &RawValue) -> Option<String> {
    let Some((key, rest)) = path.split_first() else {
        let text = arguments.get();
        return match text.as_bytes().first()? {
            b'"' => serde_json::from_str(text).ok(),
            b'{' | b'[' | b'n' => None,
            // As it was written, digit by digit.
            _ => Some(text.to_owned()),
        };
    };
    let members: HashMap<Cow<'_, str>, &RawValue> = serde_json::from_str(arguments.get()).ok()?;
    value(rest, members.get(key.as_str())?)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn of(properties: &Value) -> Result<Vec<String>, String> {
        let schema = json!({"type": "object", "properties": properties}).to_string();
        Ok(marked(&schema)?.into_iter().map(|found| format!("{}={}", found.path.join("."), found.header)).collect())
    }

    #[test]
    fn marked_arguments_are_found_wherever_properties_lead() {
        let mark = |header: &str| json!({"type": "string", "x-mcp-header": header});
        assert_eq!(
            of(&json!({"a": mark("A"), "b": {"properties": {"c": mark("B-C")}}, "d": {}})).unwrap(),
            ["a=A", "b.c=B-C"]
        );
        assert_eq!(of(&json!({"a": {"type": "string"}})).unwrap(), [""; 0]);
        // A property of that name is no mark.
        assert_eq!(of(&json!({"x-mcp-header": {"type": "string"}})).unwrap(), [""; 0]);
        assert_eq!(of(&json!({"a": {"default": {"x-mcp-header": 1}}})).unwrap(), [""; 0]);
    }

    #[test]
    fn a_tool_whose_marks_are_wrong_is_not_offered() {
        for (properties, why) in [
            (json!({"a": {"type": "string", "x-mcp-header": ""}}), "names no header"),
            (json!({"a": {"type": "string", "x-mcp-header": 1}}), "names no header"),
            (json!({"a": {"type": "string", "x-mcp-header": "a b"}}), "names no header"),
            (json!({"a": {"type": "string", "x-mcp-header": "a\r\nb"}}), "names no header"),
            (json!({"a": {"type": "number", "x-mcp-header": "A"}}), "no string"),
            (json!({"a": {"x-mcp-header": "A"}}), "no string"),
            (
                json!({"a": {"type": "string", "x-mcp-header": "A"}, "b": {"type": "string", "x-mcp-header": "a"}}),
                "two arguments",
            ),
            (json!({"a": {"items": {"type": "string", "x-mcp-header": "A"}}}), "no argument"),
            (json!({"a": {"oneOf": [{"type": "string", "x-mcp-header": "A"}]}}), "no argument"),
        ] {
            let error = of(&properties).unwrap_err();
            assert!(error.contains(why), "{properties}: {error}");
        }
        assert!(marked(r#"{"x-mcp-header":"A"}"#).is_err());
        assert!(marked(r#"{"$defs":{"a":{"type":"string","x-mcp-header":"A"}}}"#).is_err());
    }

    #[test]
    fn values_are_taken_as_they_were_written() {
        let parameters = ["s", "i", "b", "o.n", "gone", "null"].map(|path| HeaderParameter {
            path: path.split('.').map(str::to_owned).collect(),
            header: path.to_owned(),
        });
        let arguments = r#"{"s":"a\u00e9","i":123456789012345678901,"b":true,"o":{"n":-0},"null":null}"#;
        let arguments = RawValue::from_string(arguments.to_owned()).unwrap();
        let values: Vec<_> =
            values(&parameters, &arguments).into_iter().map(|(name, value)| format!("{name}={value}")).collect();
        assert_eq!(values, ["s=aé", "i=123456789012345678901", "b=true", "o.n=-0"]);
    }
}
