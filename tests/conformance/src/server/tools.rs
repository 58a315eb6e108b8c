//! Tools.

use std::{sync::atomic::Ordering, thread, time::Duration};

use serde_json::{Value, json};

use crate::{
    Failure, Request, Server,
    content::{audio, embedded, form, image, sampling, text},
    tasks,
};

/// What the suite gives a tool that works for a while.
const PAUSE: Duration = Duration::from_millis(50);

/// Tools without arguments.
const PLAIN: &[&str] = &[
    "test_simple_text",
    "test_image_content",
    "test_audio_content",
    "test_embedded_resource",
    "test_multiple_content_types",
    "test_tool_with_logging",
    "test_logging_tool",
    "test_error_handling",
    "test_tool_with_progress",
    "test_elicitation_sep1034_defaults",
    "test_elicitation_sep1330_enums",
    "test_reconnection",
    "test_missing_capability",
    "test_streaming_elicitation",
    "test_trigger_tool_change",
    "test_trigger_prompt_change",
    "test_input_required_result_elicitation",
    "test_input_required_result_sampling",
    "test_input_required_result_list_roots",
    "test_input_required_result_request_state",
    "test_input_required_result_multiple_inputs",
    "test_input_required_result_multi_round",
    "test_input_required_result_tampered_state",
    "test_input_required_result_capabilities",
];

/// One that comes and goes.
const GOES: &str = "test_tool_that_goes";

pub(crate) fn list(server: &Server) -> Value {
    let tool = |name: &str, schema: Value| json!({"name": name, "description": format!("{name} of the suite"), "inputSchema": schema});
    let one =
        |member: &str| json!({"type": "object", "properties": {member: {"type": "string"}}, "required": [member]});
    let mut tools: Vec<_> = PLAIN.iter().map(|name| tool(name, json!({"type": "object"}))).collect();
    tools.push(tool("test_sampling", one("prompt")));
    tools.push(tool("test_elicitation", one("message")));
    tools.push(tool("json_schema_2020_12_tool", schema_2020_12()));
    let mut headers = one("region");
    headers["properties"]["region"]["x-mcp-header"] = "Region".into();
    tools.push(tool("test_x_mcp_header", headers));
    if !server.tool_away.load(Ordering::Relaxed) {
        tools.push(tool(GOES, json!({"type": "object"})));
    }
    if server.newer {
        tools.extend(tasks::tools());
    }
    tools.into()
}

fn schema_2020_12() -> Value {
    json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "type": "object",
        "$defs": {"address": {
            "$anchor": "addressDef", "type": "object",
            "properties": {"street": {"type": "string"}, "city": {"type": "string"}},
        }},
        "properties": {
            "name": {"type": "string"},
            "address": {"$ref": "#/$defs/address"},
            "contactMethod": {"type": "string", "enum": ["phone", "email"]},
            "phone": {"type": "string"},
            "email": {"type": "string"},
        },
        "allOf": [{"anyOf": [{"required": ["phone"]}, {"required": ["email"]}]}],
        "if": {"properties": {"contactMethod": {"const": "phone"}}, "required": ["contactMethod"]},
        "then": {"required": ["phone"]},
        "else": {"required": ["email"]},
        "additionalProperties": false,
    })
}

pub(crate) fn call(request: Request<'_>) -> Result<Value, Failure> {
    let Request { server, params } = request;
    let name = params["name"].as_str().unwrap_or_default();
    if server.newer
        && let Some(called) = tasks::call(request, name)
    {
        return called;
    }
    let argument = |name: &str| params["arguments"][name].as_str().unwrap_or_default();
    let content = match name {
        "test_simple_text" | "json_schema_2020_12_tool" | "test_x_mcp_header" | GOES => {
            vec![text("This is a simple text response for testing.")]
        }
        "test_image_content" => vec![image()],
        "test_audio_content" => vec![audio()],
        "test_embedded_resource" => {
            vec![embedded("test://embedded-resource", "text/plain", "This is an embedded resource content.")]
        }
        "test_multiple_content_types" => vec![
            text("Multiple content types test:"),
            image(),
            embedded("test://mixed-content-resource", "application/json", r#"{"test":"data","value":123}"#),
        ],
        "test_error_handling" => {
            let content = [text("This tool intentionally returns an error for testing")];
            return Ok(json!({"content": content, "isError": true}));
        }
        "test_tool_with_logging" | "test_logging_tool" => logs(),
        "test_reconnection" => {
            // Long enough for its stream to be begun.
            thread::sleep(Duration::from_millis(1500));
            vec![text("Still here")]
        }
        "test_tool_with_progress" => progress(&params["_meta"]["progressToken"]),
        "test_trigger_tool_change" => {
            server.tool_away.fetch_xor(true, Ordering::Relaxed);
            Server::notify("notifications/tools/list_changed", &json!({}));
            vec![text("The list of tools changed.")]
        }
        "test_trigger_prompt_change" => {
            server.prompt_away.fetch_xor(true, Ordering::Relaxed);
            Server::notify("notifications/prompts/list_changed", &json!({}));
            vec![text("The list of prompts changed.")]
        }
        _ => asks(request, name, argument)?,
    };
    Ok(json!({"content": content}))
}

fn logs() -> Vec<Value> {
    for (count, words) in
        ["Tool execution started", "Tool processing data", "Tool execution completed"].into_iter().enumerate()
    {
        if count > 0 {
            thread::sleep(PAUSE);
        }
        Server::notify("notifications/message", &json!({"level": "info", "logger": "suite", "data": words}));
    }
    vec![text("Tool with logging executed")]
}

fn progress(token: &Value) -> Vec<Value> {
    for progress in [0, 50, 100] {
        if progress > 0 {
            thread::sleep(PAUSE);
        }
        if !token.is_null() {
            let params = json!({"progressToken": token, "progress": progress, "total": 100});
            Server::notify("notifications/progress", &params);
        }
    }
    vec![text("Tool with progress executed")]
}

/// Tools that ask the client for something first.
fn asks<'a>(request: Request<'_>, name: &str, argument: impl Fn(&str) -> &'a str) -> Result<Vec<Value>, Failure> {
    let elicit = |key, params: Value| request.ask(key, "elicitation/create", &params);
    let sample = |key, prompt: &str, tokens| request.ask(key, "sampling/createMessage", &sampling(prompt, tokens));
    let completed = |answer: &Value| {
        let (action, content) = (answer["action"].as_str().unwrap_or_default(), &answer["content"]);
        vec![text(format!("Elicitation completed: action={action}, content={content}"))]
    };
    let said = |answer: &Value| answer["content"]["text"].as_str().unwrap_or_default().to_owned();
    Ok(match name {
        "test_sampling" => {
            let answer = sample("answer", argument("prompt"), 100)?;
            vec![text(format!("LLM response: {}", said(&answer)))]
        }
        "test_elicitation" => {
            let schema = json!({
                "type": "object",
                "properties": {
                    "username": {"type": "string", "description": "User's response"},
                    "email": {"type": "string", "description": "User's email address"},
                },
                "required": ["username", "email"],
            });
            let answer = elicit("user", json!({"message": argument("message"), "requestedSchema": schema}))?;
            vec![text(format!("User response: {answer}"))]
        }
        "test_elicitation_sep1034_defaults" => completed(&elicit("defaults", defaults())?),
        "test_elicitation_sep1330_enums" => completed(&elicit("enums", enums())?),
        "test_missing_capability" => {
            let answer = sample("leave", "May I?", 10)?;
            vec![text(said(&answer))]
        }
        "test_streaming_elicitation" => completed(&elicit("ok", form("Go on?", "ok", "boolean"))?),
        "test_input_required_result_elicitation" => {
            let answer = elicit("user_name", form("What is your name?", "name", "string"))?;
            vec![text(format!("Hello, {}!", answer["content"]["name"].as_str().unwrap_or("nobody")))]
        }
        "test_input_required_result_sampling" => {
            vec![text(said(&sample("capital_question", "What is the capital of France?", 100)?))]
        }
        "test_input_required_result_list_roots" => {
            vec![text(format!("Roots: {}", request.ask("client_roots", "roots/list", &json!({}))?["roots"]))]
        }
        "test_input_required_result_request_state" | "test_input_required_result_tampered_state" => {
            elicit("confirm", form("Please confirm", "ok", "boolean"))?;
            vec![text("state-ok")]
        }
        "test_input_required_result_multi_round" => {
            // Each round knows the answer to its own question alone.
            let second = request.params["requestState"] == "2";
            if !second {
                elicit("step1", form("Step 1: What is your name?", "name", "string"))?;
            }
            let color = elicit("step2", form("Step 2: What is your favorite color?", "color", "string"))?;
            vec![text(format!("You like {}", color["content"]["color"]))]
        }
        "test_input_required_result_multiple_inputs" => all_at_once(request)?,
        "test_input_required_result_capabilities" => {
            let words = match request.offers("sampling") {
                true => sample("words", "Say something", 50)?,
                false => elicit("words", form("Say something", "words", "string"))?,
            };
            vec![text(words.to_string())]
        }
        name => return Err(Failure::Rpc(-32_602, format!("no tool `{name}`"))),
    })
}

fn all_at_once(request: Request<'_>) -> Result<Vec<Value>, Failure> {
    let asked = [
        ("user_name", "elicitation/create", form("What is your name?", "name", "string")),
        ("greeting", "sampling/createMessage", sampling("Generate a greeting", 50)),
        ("client_roots", "roots/list", json!({})),
    ];
    let answers = thread::scope(|scope| {
        let asked = asked.map(|(key, method, params)| scope.spawn(move || request.ask(key, method, &params)));
        asked.map(|answer| answer.join().unwrap_or_else(|_| Err(Failure::Rpc(-32_603, "no answer".to_owned()))))
    });
    let (mut said, mut open) = (Vec::new(), Vec::new());
    for answer in answers {
        match answer {
            Ok(answer) => said.push(text(answer.to_string())),
            Err(Failure::Asks(more)) => open.extend(more),
            Err(failure) => return Err(failure),
        }
    }
    if open.is_empty() { Ok(said) } else { Err(Failure::Asks(open)) }
}

/// SEP-1034.
fn defaults() -> Value {
    json!({
        "message": "Please review and update the form fields with defaults",
        "requestedSchema": {"type": "object", "required": [], "properties": {
            "name": {"type": "string", "description": "User name", "default": "John Doe"},
            "age": {"type": "integer", "description": "User age", "default": 30},
            "score": {"type": "number", "description": "User score", "default": 95.5},
            "status": {
                "type": "string", "description": "User status", "enum": ["active", "inactive", "pending"],
                "default": "active",
            },
            "verified": {"type": "boolean", "description": "Verification status", "default": true},
        }},
    })
}

/// SEP-1330.
fn enums() -> Value {
    let titled = |values: [(&str, &str); 3]| values.map(|(value, title)| json!({"const": value, "title": title}));
    let options = ["option1", "option2", "option3"];
    json!({
        "message": "Please select options from the enum fields",
        "requestedSchema": {"type": "object", "required": [], "properties": {
            "untitledSingle": {"type": "string", "description": "One", "enum": options},
            "titledSingle": {
                "type": "string", "description": "One with a title",
                "oneOf": titled([("value1", "First Option"), ("value2", "Second Option"), ("value3", "Third Option")]),
            },
            "legacyEnum": {
                "type": "string", "description": "One as it was", "enum": ["opt1", "opt2", "opt3"],
                "enumNames": ["Option One", "Option Two", "Option Three"],
            },
            "untitledMulti": {
                "type": "array", "description": "Some", "minItems": 1, "maxItems": 3,
                "items": {"type": "string", "enum": options},
            },
            "titledMulti": {
                "type": "array", "description": "Some with titles", "minItems": 1, "maxItems": 3,
                "items": {"anyOf": titled([("value1", "First Choice"), ("value2", "Second Choice"), ("value3", "Third Choice")])},
            },
        }},
    })
}
