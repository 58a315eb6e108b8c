//! The OpenAPI document, made from the table of operations.

use serde_json::{Map, Value, json};

use super::{Operation, ROOT, Verb, operations};

/// The document (OpenAPI 3.1).
#[must_use]
pub fn document() -> Value {
    let mut paths = Map::new();
    for operation in operations() {
        let path = paths.entry(format!("{ROOT}{}", operation.path)).or_insert_with(|| json!({}));
        path[operation.verb.name()] = described(operation);
    }
    json!({
        "openapi": "3.1.0",
        "info": {
            "title": "Portcullis management API",
            "version": env!("CARGO_PKG_VERSION"),
            "description": "What a person does with servers, tools, questions and the trail. Every request holds the \
                management token; that of the MCP endpoint opens nothing here.",
        },
        "security": [{"management": []}],
        "paths": paths,
        "components": {
            "securitySchemes": {"management": {"type": "http", "scheme": "bearer"}},
            "schemas": {"Error": {
                "type": "object",
                "required": ["error"],
                "properties": {"error": {
                    "type": "object",
                    "required": ["class", "code", "message", "help"],
                    "properties": {
                        "class": {"enum": ["internal", "usage", "authorization", "unreachable", "blocked", "unknown"]},
                        "code": {"type": "string"},
                        "message": {"type": "string"},
                        "help": {"type": ["string", "null"]},
                    },
                }},
            }},
        },
    })
}

fn described(operation: &Operation) -> Value {
    let mut schema = (operation.input)();
    let in_path: Vec<&str> =
        operation.path.split('/').filter_map(|part| part.strip_prefix('{')?.strip_suffix('}')).collect();
    let mut properties = schema["properties"].as_object().cloned().unwrap_or_default();
    let required: Vec<Value> = schema["required"].as_array().cloned().unwrap_or_default();
    let is_required = |name: &str| required.iter().any(|other| other == name);
    let mut parameters: Vec<Value> = in_path
        .iter()
        .map(|name| json!({"name": name, "in": "path", "required": true, "schema": properties.remove(*name).unwrap_or(json!({"type": "string"}))}))
        .collect();
    let mut described = json!({
        "operationId": operation.id,
        "summary": operation.summary,
        "x-grade": operation.grade.name(),
        "responses": {
            "200": {"description": "Done", "content": {"application/json": {"schema": {}}}},
            "401": {"description": "No management token, or a wrong one"},
            "default": {
                "description": "Not done",
                "content": {"application/json": {"schema": {"$ref": "#/components/schemas/Error"}}},
            },
        },
    });
    if operation.verb == Verb::Post && !properties.is_empty() {
        schema["required"] =
            required.iter().filter(|name| !in_path.iter().any(|other| *name == other)).cloned().collect();
        schema["properties"] = properties.into();
        described["requestBody"] = json!({"required": true, "content": {"application/json": {"schema": schema}}});
    } else {
        parameters.extend(properties.into_iter().map(
            |(name, schema)| json!({"required": is_required(&name), "name": name, "in": "query", "schema": schema}),
        ));
    }
    if !parameters.is_empty() {
        described["parameters"] = parameters.into();
    }
    described
}
