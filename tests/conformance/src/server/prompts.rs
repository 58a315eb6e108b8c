//! Prompts.

use std::sync::atomic::Ordering;

use serde_json::{Value, json};

use crate::{Failure, Request, Server, content};

pub(crate) fn list(server: &Server) -> Value {
    let prompt = |name: &str, arguments: &[&str]| {
        let arguments: Vec<_> = arguments
            .iter()
            .map(|name| json!({"name": name, "description": "An argument of the suite", "required": true}))
            .collect();
        json!({"name": name, "description": format!("{name} of the suite"), "arguments": arguments})
    };
    let mut prompts = vec![
        prompt("test_simple_prompt", &[]),
        prompt("test_prompt_with_arguments", &["arg1", "arg2"]),
        prompt("test_prompt_with_embedded_resource", &["resourceUri"]),
        prompt("test_prompt_with_image", &[]),
        prompt("test_input_required_result_prompt", &[]),
    ];
    if !server.prompt_away.load(Ordering::Relaxed) {
        prompts.push(prompt("test_prompt_that_goes", &[]));
    }
    prompts.into()
}

pub(crate) fn get(request: Request<'_>) -> Result<Value, Failure> {
    let params = request.params;
    let argument = |name: &str| params["arguments"][name].as_str().unwrap_or_default();
    let messages = match params["name"].as_str().unwrap_or_default() {
        "test_simple_prompt" => vec![content::text("This is a simple prompt for testing.")],
        "test_prompt_with_arguments" => {
            let (one, two) = (argument("arg1"), argument("arg2"));
            vec![content::text(format!("Prompt with arguments: arg1='{one}', arg2='{two}'"))]
        }
        "test_prompt_with_embedded_resource" => vec![
            content::embedded(argument("resourceUri"), "text/plain", "Embedded resource content for testing."),
            content::text("Please process the embedded resource above."),
        ],
        "test_prompt_with_image" => vec![content::image(), content::text("Please analyze the image above.")],
        "test_input_required_result_prompt" => {
            let form = content::form("What context should the prompt use?", "context", "string");
            let answer = request.ask("user_context", "elicitation/create", &form)?;
            vec![content::text(format!("Use this context: {}", answer["content"]["context"]))]
        }
        name => return Err(Failure::Rpc(-32_602, format!("no prompt `{name}`"))),
    };
    let messages: Vec<_> = messages.into_iter().map(|content| json!({"role": "user", "content": content})).collect();
    Ok(json!({"messages": messages}))
}
