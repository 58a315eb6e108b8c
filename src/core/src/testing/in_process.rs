//! A transport whose servers are [`FakeServer`]s that a test registered by name.

use std::{collections::BTreeMap, sync::Arc};

use async_trait::async_trait;

use super::FakeServer;
use crate::{
    Definition, Limits,
    diagnostic::Code,
    link::Link,
    reference::{SecretResolver, Template, expand_secret},
    transport::{Field, FieldValue, OpenContext, Plan, Transport, TransportError, TransportKind},
    trust::{Consent, TrustView, ViewName},
};

/// Its kind: `"type": "in-process"` with the server's registered name, and arguments and variables
/// that the server does not look at.
pub static IN_PROCESS: TransportKind = TransportKind {
    name: "in-process",
    summary: "a server of the test",
    implied_by: Some("server"),
    spellings: &[],
    vscode: None,
    fields: &[
        Field { name: "server", value: FieldValue::Text, required: true, secret: false, doc: "its name in the test" },
        Field { name: "args", value: FieldValue::Texts, required: false, secret: false, doc: "anything" },
        Field { name: "env", value: FieldValue::Environment, required: false, secret: true, doc: "anything" },
    ],
    foreign: Code::FieldStdioOnly,
    refusal: None,
    check: |_, _| {},
    build: || Arc::new(InProcess::default()),
};

/// The servers of one test.
#[derive(Debug, Clone, Default)]
pub struct InProcess(BTreeMap<String, FakeServer>);

impl InProcess {
    /// Adds a server.
    #[must_use]
    pub fn with(mut self, name: &str, server: &FakeServer) -> Self {
        self.0.insert(name.to_owned(), server.clone());
        self
    }
}

impl Transport for InProcess {
    fn plan(&self, definition: &Definition, context: &OpenContext) -> Result<Box<dyn Plan>, TransportError> {
        let surroundings = &context.surroundings;
        let expand = |field: String, value: &str| {
            surroundings.expand(value).map_err(|source| TransportError::Reference { field, source })
        };
        let target = expand("server".to_owned(), definition.text("server").unwrap_or_default())?;
        let Some(server) = self.0.get(&target).cloned() else {
            return Err(TransportError::ProgramNotFound { program: target, searched: Vec::new() });
        };
        let arguments = definition.texts("args").enumerate();
        let arguments = arguments.map(|(at, value)| expand(format!("args[{at}]"), value)).collect::<Result<_, _>>()?;
        let declared: Vec<_> =
            definition.entries("env").map(|(name, value)| (name.to_owned(), value.to_owned())).collect();
        let literal = |value: &str| Template::parse(value).is_ok_and(|template| template.is_literal());
        let names = declared.iter();
        let names = names.map(|(name, value)| ViewName { name: name.clone(), literal: literal(value), warning: None });
        let view = TrustView {
            server: definition.name().to_owned(),
            kind: IN_PROCESS.name.to_owned(),
            target,
            target_label: "program",
            written: None,
            arguments,
            directory: None,
            names: names.collect(),
            names_label: "environment",
            reads: Vec::new(),
            warnings: Vec::new(),
        };
        Ok(Box::new(InProcessPlan { view, server, declared, limits: context.limits.clone() }))
    }
}

struct InProcessPlan {
    view: TrustView,
    server: FakeServer,
    declared: Vec<(String, String)>,
    limits: Limits,
}

impl std::fmt::Debug for InProcessPlan {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("InProcessPlan").field("view", &self.view).finish_non_exhaustive()
    }
}

#[async_trait]
impl Plan for InProcessPlan {
    fn view(&self) -> &TrustView {
        &self.view
    }

    async fn open(self: Box<Self>, consent: Consent, secrets: &dyn SecretResolver) -> Result<Link, TransportError> {
        if !consent.covers(&self.view) {
            return Err(TransportError::Consent);
        }
        for (name, value) in &self.declared {
            let field = || format!("env.{name}");
            expand_secret(value, secrets)
                .await
                .map_err(|source| TransportError::Reference { field: field(), source })?;
        }
        Ok(self.server.connect(&self.limits))
    }
}
