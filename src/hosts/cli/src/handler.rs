//! What servers ask of the person at the terminal.
//!
//! Every question says which server asks, and its words are shown as its words. A page is shown and never
//! opened. Nobody has to answer: an empty answer to something that is needed declines.

use std::time::Duration;

use portcullis::{
    async_trait,
    display::{escape, quote},
    session::{ClientHandler, Offers, Pace, Refusal, RequestKind, ServerRequest},
};
use serde_json::{Map, Value, json};

use crate::{output::Output, render::their_words, terminal::Terminal};

/// Questions that one server may ask in [`WINDOW`].
const QUESTIONS: usize = 10;
const WINDOW: Duration = Duration::from_secs(60);
/// Fields of one form.
const FIELDS: usize = 32;

/// Asks at the terminal.
#[derive(Debug)]
pub struct AsksForms {
    terminal: Terminal,
    output: Output,
    pace: Pace,
}

impl AsksForms {
    /// At this terminal.
    #[must_use]
    pub fn new(terminal: Terminal, output: Output) -> Self {
        Self { terminal, output, pace: Pace::new(QUESTIONS, WINDOW) }
    }

    async fn ask(&self, prompt: &str) -> Result<String, Refusal> {
        self.terminal.ask(prompt).await.map_err(|error| Refusal::Denied(error.to_string()))
    }

    async fn form(&self, schema: &Value) -> Result<Option<Map<String, Value>>, Refusal> {
        let required: Vec<_> = schema["required"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
        let mut content = Map::new();
        for (name, property) in schema["properties"].as_object().into_iter().flatten().take(FIELDS) {
            let needed = required.contains(&name.as_str());
            match self.field(name, property, needed).await? {
                Some(value) => drop(content.insert(name.clone(), value)),
                None if needed => return Ok(None),
                None => {}
            }
        }
        Ok(Some(content))
    }

    async fn field(&self, name: &str, property: &Value, needed: bool) -> Result<Option<Value>, Refusal> {
        for words in [&property["title"], &property["description"]].into_iter().filter_map(Value::as_str) {
            self.output.note(&their_words(words));
        }
        let default = property.get("default");
        let hint = match (default, needed) {
            (Some(default), _) => format!("Enter for {}", escape(&default.to_string())),
            (None, true) => "Enter declines".to_owned(),
            (None, false) => "Enter leaves it out".to_owned(),
        };
        loop {
            let answer = self.ask(&format!("{} ({}; {hint}): ", quote(name), kind(property))).await?;
            if answer.is_empty() {
                return Ok(default.cloned());
            }
            match value(property, &answer) {
                Some(value) => return Ok(Some(value)),
                None => self.output.note(&format!("that is no {}", kind(property))),
            }
        }
    }
}

/// What a field takes, in words.
fn kind(property: &Value) -> String {
    if let Some(choices) = property["enum"].as_array() {
        let choices: Vec<_> =
            choices.iter().filter_map(Value::as_str).map(|choice| escape(choice).into_owned()).collect();
        return format!("one of {}", choices.join(", "));
    }
    match property["type"].as_str() {
        Some("boolean") => "yes or no",
        Some("integer") => "whole number",
        Some("number") => "number",
        _ => "text",
    }
    .to_owned()
}

/// The answer as the field takes it.
fn value(property: &Value, answer: &str) -> Option<Value> {
    if let Some(choices) = property["enum"].as_array() {
        return choices.iter().find(|choice| choice.as_str() == Some(answer)).cloned();
    }
    match property["type"].as_str() {
        Some("boolean") => match answer.to_lowercase().as_str() {
            "y" | "yes" | "true" => Some(true.into()),
            "n" | "no" | "false" => Some(false.into()),
            _ => None,
        },
        Some("integer") => answer.parse::<i64>().ok().map(Value::from),
        Some("number") => answer.parse::<f64>().ok().filter(|number| number.is_finite()).map(Value::from),
        _ => Some(answer.into()),
    }
}

#[async_trait]
impl ClientHandler for AsksForms {
    fn offers(&self) -> Offers {
        Offers { elicitation_form: true, elicitation_url: true, ..Offers::default() }
    }

    async fn answer(&self, request: ServerRequest) -> Result<String, Refusal> {
        if request.kind != RequestKind::Elicitation {
            return Err(Refusal::NotOffered);
        }
        self.pace.ask(&request.server)?;
        let params: Value = serde_json::from_str(&request.params).unwrap_or_default();
        self.output.note(&format!("\nthe server {} asks you:", quote(&request.server)));
        self.output.note(&their_words(params["message"].as_str().unwrap_or_default()));
        let decline = json!({"action": "decline"}).to_string();
        if params["mode"] == "url" {
            let url = params["url"].as_str().unwrap_or_default();
            self.output
                .note(&format!("it wants you to visit a page, which is not opened for you:\n    {}", escape(url)));
            let visited = self.terminal.confirm("have you been there?").await;
            let accepted = visited.map_err(|error| Refusal::Denied(error.to_string()))?;
            return Ok(if accepted { json!({"action": "accept"}).to_string() } else { decline });
        }
        Ok(match self.form(&params["requestedSchema"]).await? {
            Some(content) => json!({"action": "accept", "content": content}).to_string(),
            None => decline,
        })
    }
}

/// What an endpoint tells servers that its clients may take. Each client answers for itself; the endpoint has no
/// answers of its own.
#[derive(Debug, Clone, Copy, Default)]
pub struct OnlyClients;

#[async_trait]
impl ClientHandler for OnlyClients {
    fn offers(&self) -> Offers {
        Offers { elicitation_form: true, elicitation_url: true, sampling: true, roots: true }
    }

    async fn answer(&self, _: ServerRequest) -> Result<String, Refusal> {
        Err(Refusal::NotOffered)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_has_to_be_what_the_field_takes() {
        for (property, answer, expected) in [
            (json!({"type": "boolean"}), "yes", Some(json!(true))),
            (json!({"type": "boolean"}), "maybe", None),
            (json!({"type": "integer"}), "7", Some(json!(7))),
            (json!({"type": "integer"}), "7.5", None),
            (json!({"type": "number"}), "7.5", Some(json!(7.5))),
            (json!({"type": "number"}), "inf", None),
            (json!({"type": "string", "enum": ["a", "b"]}), "b", Some(json!("b"))),
            (json!({"type": "string", "enum": ["a", "b"]}), "c", None),
            (json!({}), "text", Some(json!("text"))),
        ] {
            assert_eq!(value(&property, answer), expected, "{property} {answer}");
        }
    }
}
