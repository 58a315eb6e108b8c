//! Who answers when a call is to be decided: the person at the terminal, or nobody.

use std::sync::atomic::{AtomicBool, Ordering};

use portcullis::{
    approval::{Answer, Approver, ApproverError, Question},
    async_trait,
};

use crate::{output::Output, render, terminal::Terminal};

/// Asks at the terminal.
#[derive(Debug)]
pub struct AtTerminal(pub Terminal, pub Output);

#[async_trait]
impl Approver for AtTerminal {
    async fn ask(&self, question: &Question) -> Result<Answer, ApproverError> {
        self.1.note(&render::question::text(question));
        let answer = self
            .0
            .ask(&render::question::prompt(question))
            .await
            .map_err(|error| ApproverError::Failed(error.to_string()))?;
        Ok(match answer.to_lowercase().as_str() {
            "y" | "yes" => Answer::Once,
            "s" => Answer::UntilHostEnds,
            "a" | "always" => Answer::Always,
            _ => Answer::Deny,
        })
    }
}

/// Asks at the terminal of an endpoint, one question after the other; without one they wait for an answer by id.
#[derive(Debug)]
pub struct AtEndpoint {
    terminal: Option<AtTerminal>,
    turn: tokio::sync::Mutex<()>,
}

impl AtEndpoint {
    /// At this terminal, if there is one.
    #[must_use]
    pub fn new(terminal: Option<AtTerminal>) -> Self {
        Self { terminal, turn: tokio::sync::Mutex::default() }
    }
}

#[async_trait]
impl Approver for AtEndpoint {
    async fn ask(&self, question: &Question) -> Result<Answer, ApproverError> {
        let Some(terminal) = &self.terminal else { return std::future::pending().await };
        let _turn = self.turn.lock().await;
        let mut shown = Shown { output: terminal.1, id: &question.id, answered: false };
        let answer = terminal.ask(question).await;
        shown.answered = true;
        answer
    }
}

/// Says that a question is no longer one, where its answer came from elsewhere.
struct Shown<'a> {
    output: Output,
    id: &'a str,
    answered: bool,
}

impl Drop for Shown<'_> {
    fn drop(&mut self) {
        if !self.answered {
            self.output.note(&format!("\n(no answer is needed here any more: {})", self.id));
        }
    }
}

/// There is no terminal.
#[derive(Debug)]
pub struct NobodyThere;

#[async_trait]
impl Approver for NobodyThere {
    async fn ask(&self, _: &Question) -> Result<Answer, ApproverError> {
        Err(ApproverError::Nobody("standard input and standard error are not both a terminal".to_owned()))
    }
}

/// Says yes to one question, which the person already answered with `--yes`.
#[derive(Debug, Default)]
pub struct OneYes(AtomicBool);

#[async_trait]
impl Approver for OneYes {
    async fn ask(&self, _: &Question) -> Result<Answer, ApproverError> {
        if self.0.swap(true, Ordering::SeqCst) {
            return Err(ApproverError::Nobody("--yes answers one question".to_owned()));
        }
        Ok(Answer::Once)
    }
}

/// The demo without a person: shows each question and says yes to its own built-in server.
#[derive(Debug)]
pub struct Demonstration(pub Output);

#[async_trait]
impl Approver for Demonstration {
    async fn ask(&self, question: &Question) -> Result<Answer, ApproverError> {
        self.0.say(&render::question::text(question));
        self.0.say(&format!("{}y   (answered by the demo)", render::question::prompt(question)));
        Ok(Answer::Once)
    }
}
