//! What waits at the endpoint.

use portcullis::approval::Question;
use serde_json::{Value, json};

use crate::{app::App, error::CliError, remote::Remote, render};

/// List the calls that wait for your answer at the endpoint.
#[derive(Debug, clap::Args)]
pub struct Args {}

/// Runs the command.
///
/// # Errors
///
/// No endpoint runs, or it does not answer.
pub async fn run(_: &Args, app: &App) -> Result<u8, CliError> {
    let questions = Remote::needed(app)?.run("approvals.list", json!({})).await?;
    if app.output.json {
        app.output.data(&portcullis::display::escape_json(&questions));
        return Ok(0);
    }
    let questions: Vec<Question> =
        serde_json::from_str(&questions).map_err(|error| CliError::internal(error.to_string()))?;
    if questions.is_empty() {
        app.output.data("nothing waits for you");
    }
    for question in &questions {
        app.output.data(&render::question::text(question));
        app.output.data(&format!("answer it: portcullis approve {} (or deny)\n", question.id));
    }
    Ok(0)
}

/// Answers a question at the endpoint.
pub(crate) async fn answer(app: &App, id: &str, answer: &Value) -> Result<u8, CliError> {
    let done = Remote::needed(app)?.run("approvals.answer", json!({"id": id, "answer": answer})).await?;
    if app.output.json {
        app.output.data(&done);
    } else {
        app.output.data(&format!("{id}: {}", answer.as_str().unwrap_or_default()));
    }
    Ok(0)
}
