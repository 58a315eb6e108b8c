//! The client under test of the official conformance suite.
//!
//! A thin host over the public API: a fresh store, the server's address as an ordinary definition,
//! trust, selection and every call through the pipeline, with a person who answers by script. At the
//! end it checks that every call on the wire was approved and written down.
//!
//! `conformance-client [--deny] URL`; `MCP_CONFORMANCE_CONTEXT` may say which tools to call.

#![allow(clippy::print_stderr, reason = "for whoever reads why a scenario failed")]

use std::{error::Error, sync::Arc};

use portcullis::{
    Definition, Fields, GateError,
    approval::Answer,
    async_trait,
    audit::AuditEvent,
    serde_json::{self, Map, Value, json},
    session::{ClientHandler, ListKind, Offers, Refusal, RequestKind, ServerRequest},
    tools::ToolDescriptor,
};
use portcullis_harness::{Harness, Host};

const SERVER: &str = "conformance";
/// More calls than any scenario needs.
const ANSWERS: usize = 64;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments: Vec<String> = std::env::args().skip(1).collect();
    let denies = arguments.first().is_some_and(|argument| argument == "--deny");
    let url = arguments.pop().ok_or("the address of the server is missing")?;
    let context = std::env::var("MCP_CONFORMANCE_CONTEXT").ok().and_then(|text| serde_json::from_str(&text).ok());
    let answer = if denies { Answer::Deny } else { Answer::Once };
    let definition = Definition::new(SERVER, "streamable-http", Fields::from_iter([("url".to_owned(), url.into())]));
    let host = Harness::new()
        .transport(&portcullis_transports::streamable_http::KIND)
        .define(definition)
        .handler(Arc::new(Person))
        .answers(std::iter::repeat_n(answer, ANSWERS))
        .start()
        .await?;
    let done = everything(&host, &context.unwrap_or_default()).await;
    host.gate().close().await;
    let checked = every_call_was_approved(&host, denies);
    eprint!("{}", host.transcript());
    done?;
    Ok(checked?)
}

/// Uses everything that the server offers.
async fn everything(host: &Host, context: &Value) -> Result<(), GateError> {
    host.make_ready(SERVER).await?;
    let (tools, _) = host.gate().tools(SERVER).await?;
    let tools: Vec<_> = tools.into_iter().map(|view| view.descriptor).collect();
    let mut calls = Vec::new();
    for call in context["toolCalls"].as_array().into_iter().flatten() {
        calls.push((call["name"].as_str().unwrap_or_default().to_owned(), call["arguments"].to_string()));
    }
    if calls.is_empty() {
        calls = tools.iter().map(|tool| (tool.name.clone(), arguments(tool, &tools))).collect();
    }
    for (tool, arguments) in &calls {
        report(tool, host.call(SERVER, tool, arguments).await);
    }
    for kind in [ListKind::Resources, ListKind::ResourceTemplates, ListKind::Prompts] {
        let Ok(items) = host.gate().list(SERVER, kind).await else { continue };
        for item in items {
            let member = |name: &str| {
                let item: Map<String, Value> = serde_json::from_str(item.get()).ok()?;
                item.get(name)?.as_str().map(str::to_owned)
            };
            match kind {
                ListKind::Resources => {
                    let uri = member("uri").unwrap_or_default();
                    report(&uri, host.gate().read(SERVER, &uri).await);
                }
                ListKind::Prompts => {
                    let name = member("name").unwrap_or_default();
                    report(&name, host.gate().prompt(SERVER, &name, None).await);
                }
                _ => {}
            }
        }
    }
    Ok(())
}

/// Whether a call that fails matters is the suite's to say.
fn report<T>(what: &str, result: Result<T, GateError>) {
    if let Err(error) = result {
        eprintln!("{what}: {error}");
    }
}

/// Arguments that a schema takes: what is required, and the schema of another tool where one is asked for.
fn arguments(tool: &ToolDescriptor, tools: &[ToolDescriptor]) -> String {
    let schema: Value = serde_json::from_str(tool.input_schema.get()).unwrap_or_default();
    let required = schema["required"].as_array().into_iter().flatten().filter_map(Value::as_str);
    let members = required.map(|name| {
        let other = tools.iter().find(|other| other.name != tool.name);
        let value = match (name, other) {
            ("schema", Some(other)) => other.input_schema.get().to_owned(),
            _ => example(&schema["properties"][name]).to_string(),
        };
        format!("{}:{value}", json!(name))
    });
    format!("{{{}}}", members.collect::<Vec<_>>().join(","))
}

fn example(schema: &Value) -> Value {
    match schema["type"].as_str() {
        Some("number" | "integer") => json!(7),
        Some("boolean") => json!(true),
        Some("array") => json!([]),
        Some("object") => json!({}),
        _ => json!("example"),
    }
}

/// Fills in every form with what it proposes, and visits no page.
#[derive(Debug)]
struct Person;

#[async_trait]
impl ClientHandler for Person {
    fn offers(&self) -> Offers {
        Offers { elicitation_form: true, elicitation_url: false, sampling: true, roots: true }
    }

    async fn answer(&self, request: ServerRequest) -> Result<String, Refusal> {
        let params: Value = serde_json::from_str(&request.params).unwrap_or_default();
        Ok(match request.kind {
            RequestKind::Elicitation => json!({"action": "accept", "content": filled_in(&params["requestedSchema"])}),
            RequestKind::Sampling => json!({
                "role": "assistant", "model": "none", "content": {"type": "text", "text": "an answer"},
            }),
            RequestKind::Roots => json!({"roots": [{"uri": "file:///work", "name": "work"}]}),
            _ => return Err(Refusal::NotOffered),
        }
        .to_string())
    }
}

fn filled_in(schema: &Value) -> Map<String, Value> {
    let required: Vec<_> = schema["required"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
    let mut content = Map::new();
    for (name, property) in schema["properties"].as_object().into_iter().flatten() {
        match property.get("default") {
            Some(default) => drop(content.insert(name.clone(), default.clone())),
            None if required.contains(&name.as_str()) => drop(content.insert(name.clone(), example(property))),
            None => {}
        }
    }
    content
}

/// Every call on the wire has a line of the trail that allowed it; denied ones are not on the wire.
fn every_call_was_approved(host: &Host, denies: bool) -> Result<(), String> {
    let transcript = host.transcript();
    let sent = transcript.lines().filter(|line| line.starts_with('→') && is_call(line)).count();
    let lines = host.audit().lines();
    let answers = lines.iter().filter(|line| line.event == AuditEvent::Answer);
    let approved = answers.filter(|line| line.verdict.as_deref() == Some("allow")).count();
    if denies && sent > 0 {
        return Err(format!("{sent} calls were sent though every one was denied"));
    }
    if sent != approved {
        return Err(format!("{sent} calls were sent, {approved} approved"));
    }
    Ok(())
}

fn is_call(line: &str) -> bool {
    let Some(at) = line.find('{') else { return false };
    let message: Option<Map<String, Value>> = serde_json::from_str(&line[at..]).ok();
    message.is_some_and(|message| message.get("method").and_then(Value::as_str) == Some("tools/call"))
}
