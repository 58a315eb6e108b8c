//! The server of the demo: MCP over standard input and output, by hand.

use std::io::{self, BufRead};

use serde_json::{Value, json};

use crate::{app::App, error::CliError};

/// The server of the demo.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Where it would keep its notes; it keeps them in memory.
    #[arg(long)]
    pub folder: Option<String>,
}

/// Runs the command.
///
/// # Errors
///
/// None: it ends with its input.
pub async fn run(_: &Args, app: &App) -> Result<u8, CliError> {
    let mut notes: Vec<String> = Vec::new();
    for line in io::stdin().lock().lines() {
        let Ok(line) = line else { break };
        let Ok(message) = serde_json::from_str::<Value>(&line) else { continue };
        let (Some(id), Some(method)) = (message.get("id"), message["method"].as_str()) else { continue };
        let answer = match method {
            "initialize" => Ok(json!({
                "protocolVersion": "2025-11-25",
                "capabilities": {"tools": {}},
                "serverInfo": {"name": "notes", "version": env!("CARGO_PKG_VERSION")},
            })),
            "ping" => Ok(json!({})),
            "tools/list" => Ok(json!({"tools": tools()})),
            "tools/call" => Ok(call(&mut notes, &message["params"])),
            _ => Err(json!({"code": -32601, "message": "no such method"})),
        };
        app.output.data(&match answer {
            Ok(result) => json!({"jsonrpc": "2.0", "id": id, "result": result}).to_string(),
            Err(error) => json!({"jsonrpc": "2.0", "id": id, "error": error}).to_string(),
        });
    }
    Ok(0)
}

fn tools() -> Value {
    json!([
        {
            "name": "add_note",
            "description": "Keeps a note.",
            "inputSchema": {
                "type": "object",
                "properties": {"text": {"type": "string"}},
                "required": ["text"],
            },
        },
        {
            "name": "list_notes",
            "description": "Lists all notes.",
            "inputSchema": {"type": "object"},
            "annotations": {"readOnlyHint": true},
        },
    ])
}

fn call(notes: &mut Vec<String>, params: &Value) -> Value {
    let text = match (params["name"].as_str(), params["arguments"]["text"].as_str()) {
        (Some("add_note"), Some(text)) => {
            notes.push(text.to_owned());
            format!("kept note {}", notes.len())
        }
        (Some("list_notes"), _) => notes.join("\n"),
        _ => return json!({"content": [{"type": "text", "text": "there is nothing to keep"}], "isError": true}),
    };
    json!({"content": [{"type": "text", "text": text}]})
}
