//! What happened, in order, without secrets and without what differs between runs.

use std::{
    fmt::Write,
    sync::{Arc, Mutex, PoisonError},
};

use async_trait::async_trait;
use portcullis::{
    Definition,
    approval::{Answer, Approver, ApproverError, Question},
    audit::{AuditError, AuditLine, AuditMemory, AuditSink},
    reference::Surroundings,
    secret::{Redactor, Secret},
    serde_json::Value,
    testing::{Direction, Observer, ScriptedApprover},
};

/// Collects lines; clones collect into one.
#[derive(Debug, Clone, Default)]
pub struct Transcript {
    lines: Arc<Mutex<Vec<String>>>,
    /// What stands in definitions and in the environment, by name.
    named: Redactor,
    /// What the gate filled in.
    filled_in: Redactor,
}

impl Transcript {
    pub(crate) fn new(definitions: &[Definition], surroundings: &Surroundings, filled_in: Redactor) -> Self {
        let named = Redactor::default();
        let learn = |name: &str, value: &str| {
            if !value.contains("${") {
                named.learn(name, &Secret::new(value));
            }
        };
        for (name, value) in &surroundings.environment {
            learn(&name.to_string_lossy(), &value.to_string_lossy());
        }
        for entries in definitions.iter().flat_map(|definition| definition.fields().values()) {
            // Environment and headers alike: an object of texts.
            let Value::Object(entries) = entries else { continue };
            entries
                .iter()
                .filter_map(|(name, value)| Some((name, value.as_str()?)))
                .for_each(|(name, value)| learn(name, value));
        }
        Self { lines: Arc::default(), named, filled_in }
    }

    pub(crate) fn observer(&self) -> Observer {
        let transcript = self.clone();
        Arc::new(move |server, direction, text| {
            let arrow = if direction == Direction::ToServer { '→' } else { '←' };
            transcript.add(&format!("{arrow} {server} {text}"));
        })
    }

    fn add(&self, line: &str) {
        let version = format!(r#""name":"portcullis","version":"{}""#, env!("CARGO_PKG_VERSION"));
        let line = line.replace(&version, r#""name":"portcullis","version":"…""#);
        let line = self.filled_in.redact(&self.named.redact(&line)).into_owned();
        self.lines.lock().unwrap_or_else(PoisonError::into_inner).push(line);
    }

    pub(crate) fn text(&self) -> String {
        self.lines.lock().unwrap_or_else(PoisonError::into_inner).join("\n")
    }
}

#[derive(Debug)]
pub(crate) struct Asks(pub(crate) Arc<ScriptedApprover>, pub(crate) Transcript);

#[async_trait]
impl Approver for Asks {
    async fn ask(&self, question: &Question) -> Result<Answer, ApproverError> {
        self.1.add(&format!("? {} {} {}", question.server, question.tool, question.arguments));
        let answer = self.0.ask(question).await;
        match &answer {
            Ok(answer) => self.1.add(&format!("! {answer:?}")),
            Err(error) => self.1.add(&format!("! {error}")),
        }
        answer
    }
}

#[derive(Debug)]
pub(crate) struct Writes(pub(crate) Arc<AuditMemory>, pub(crate) Transcript);

impl AuditSink for Writes {
    fn record(&self, line: &AuditLine) -> Result<(), AuditError> {
        let event = portcullis::serde_json::to_value(line.event).unwrap_or_default();
        let mut text = format!("# {}", event.as_str().unwrap_or_default());
        let parts = [&line.server, &line.tool, &line.verdict, &line.rule, &line.outcome, &line.detail];
        for part in parts.into_iter().flatten() {
            let _ = write!(text, " {part}");
        }
        self.1.add(&text);
        self.0.record(line)
    }

    fn record_soon(&self, line: &AuditLine) -> Result<(), AuditError> {
        self.record(line)
    }

    fn flush(&self) -> Result<(), AuditError> {
        Ok(())
    }

    fn newest(&self, limit: usize) -> Result<Vec<AuditLine>, AuditError> {
        self.0.newest(limit)
    }
}
