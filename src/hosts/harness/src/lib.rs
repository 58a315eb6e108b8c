//! A host for tests: everything in memory, a person who answers by script, servers inside the test.
//!
//! The test of a plugin's author:
//!
//! ```
//! use portcullis::{approval::Answer, testing::FakeServer};
//! use portcullis_harness::Harness;
//!
//! # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), portcullis::GateError> {
//! let server = FakeServer::new();
//! let host = Harness::new().server("files", &server).answers([Answer::Once]).start().await?;
//! host.make_ready("files").await?;
//!
//! host.call("files", "echo", r#"{"text":"hello"}"#).await?;
//!
//! assert_eq!(server.calls(), [r#"{"text":"hello"}"#]);
//! assert!(host.transcript().contains(r#"? files echo {"text":"hello"}"#));
//! host.gate().close().await;
//! # Ok(()) }
//! ```
//!
//! A transport of one's own comes in with [`Harness::transport`] and [`Harness::define`], a policy
//! with [`Harness::policy`].

mod canary;
mod transcript;

use std::sync::Arc;

use portcullis::{
    Definition, Fields, Gate, GateError, GateParts, Input, Limits, Registry,
    approval::{Answer, ApprovalPolicy, Arguments, Call, Grants, ServerMode},
    audit::AuditMemory,
    definition::StoreKey,
    document::Document,
    gate::Choice,
    names::NameStyle,
    raw::RawResult,
    reference::Surroundings,
    secret::Secrets,
    session::{ClientHandler, Lifecycle, Refusing},
    store::{How, MemoryStore},
    testing::{FakeServer, IN_PROCESS, InProcess, Observed, ScriptedApprover},
    transport::{OpenContext, TransportKind},
};

pub use canary::Canary;
pub use transcript::Transcript;

/// Puts a host together.
#[derive(Debug, Default)]
#[must_use]
pub struct Harness {
    servers: InProcess,
    definitions: Vec<Definition>,
    kinds: Vec<&'static TransportKind>,
    policies: Vec<(&'static str, u16, Arc<dyn ApprovalPolicy>)>,
    answers: Vec<Answer>,
    waits: bool,
    limits: Limits,
    surroundings: Surroundings,
    handler: Option<Arc<dyn ClientHandler>>,
    lifecycle: Lifecycle,
    secrets: Secrets,
    inputs: Vec<Input>,
}

impl Harness {
    /// Without servers, and with nobody who answers.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a server inside the test.
    pub fn server(mut self, name: &str, server: &FakeServer) -> Self {
        self.servers = self.servers.with(name, server);
        let fields = Fields::from_iter([("server".to_owned(), name.into())]);
        self.define(Definition::new(name, IN_PROCESS.name, fields))
    }

    /// Adds a server of any transport.
    pub fn define(mut self, definition: Definition) -> Self {
        self.definitions.push(definition);
        self
    }

    /// Adds a transport.
    pub fn transport(mut self, kind: &'static TransportKind) -> Self {
        self.kinds.push(kind);
        self
    }

    /// Adds a policy to those that every gate has.
    pub fn policy(mut self, name: &'static str, order: u16, policy: Arc<dyn ApprovalPolicy>) -> Self {
        self.policies.push((name, order, policy));
        self
    }

    /// What the person says, in order.
    pub fn answers(mut self, answers: impl IntoIterator<Item = Answer>) -> Self {
        self.answers.extend(answers);
        self
    }

    /// Once no answer is left, questions wait to be answered by their id.
    pub fn waits(mut self) -> Self {
        self.waits = true;
        self
    }

    /// Other limits than the usual ones.
    pub fn limits(mut self, limits: Limits) -> Self {
        self.limits = limits;
        self
    }

    /// Answers what servers ask; refused otherwise.
    pub fn handler(mut self, handler: Arc<dyn ClientHandler>) -> Self {
        self.handler = Some(handler);
        self
    }

    /// Another beginning of conversations than the usual one.
    pub fn lifecycle(mut self, lifecycle: Lifecycle) -> Self {
        self.lifecycle = lifecycle;
        self
    }

    /// Environment and folders; none otherwise.
    pub fn surroundings(mut self, surroundings: Surroundings) -> Self {
        self.surroundings = surroundings;
        self
    }

    /// Where secrets are kept, and who is asked for inputs; in memory and nobody otherwise.
    pub fn secrets(mut self, secrets: Secrets) -> Self {
        self.secrets = secrets;
        self
    }

    /// Declares an input, as a document does.
    pub fn input(mut self, input: Input) -> Self {
        self.inputs.push(input);
        self
    }

    /// Saves the definitions. Trusts nothing, starts nothing.
    ///
    /// # Errors
    ///
    /// [`GateError`] where the definitions cannot be saved.
    pub async fn start(self) -> Result<Host, GateError> {
        let store = Arc::new(MemoryStore::with_key(StoreKey::new([7; 32])));
        let transcript = Transcript::new(&self.definitions, &self.surroundings, self.secrets.redactor.clone());
        let mut registry = Registry::default().with_policy("server-mode", 10, Arc::new(ServerMode)).with_policy(
            "grant",
            20,
            Arc::new(Grants),
        );
        for (name, order, policy) in self.policies {
            registry = registry.with_policy(name, order, policy);
        }
        let in_process = Observed::new(Arc::new(self.servers), transcript.observer());
        registry = registry.with(&IN_PROCESS, Arc::new(in_process));
        for kind in self.kinds {
            registry = registry.with(kind, Arc::new(Observed::new((kind.build)(), transcript.observer())));
        }
        let host = Host::new(Shared {
            registry,
            store,
            approver: Arc::new(match ScriptedApprover::new(self.answers) {
                approver if self.waits => approver.and_waits(),
                approver => approver,
            }),
            audit: Arc::default(),
            context: OpenContext { surroundings: self.surroundings, limits: self.limits },
            secrets: self.secrets,
            transcript,
            handler: self.handler.unwrap_or_else(|| Arc::new(Refusing)),
            lifecycle: self.lifecycle,
        });
        let document = Document { servers: self.definitions, inputs: self.inputs };
        host.gate.import(document, How::Merge, None).await?;
        Ok(host)
    }
}

#[derive(Debug, Clone)]
struct Shared {
    registry: Registry,
    store: Arc<MemoryStore>,
    approver: Arc<ScriptedApprover>,
    audit: Arc<AuditMemory>,
    context: OpenContext,
    secrets: Secrets,
    transcript: Transcript,
    handler: Arc<dyn ClientHandler>,
    lifecycle: Lifecycle,
}

/// A gate and everything a test looks at.
#[derive(Debug)]
pub struct Host {
    gate: Gate,
    shared: Shared,
}

impl Host {
    fn new(shared: Shared) -> Self {
        let gate = Gate::new(GateParts {
            registry: shared.registry.clone(),
            store: shared.store.clone(),
            cache: shared.store.clone(),
            approver: Arc::new(transcript::Asks(shared.approver.clone(), shared.transcript.clone())),
            audit: Arc::new(transcript::Writes(shared.audit.clone(), shared.transcript.clone())),
            secrets: shared.secrets.clone(),
            context: shared.context.clone(),
            host: "harness".to_owned(),
            name_style: NameStyle::default(),
            handler: shared.handler.clone(),
            lifecycle: shared.lifecycle,
        });
        Self { gate, shared }
    }

    /// Another host on the same store, as another window would be.
    #[must_use]
    pub fn another(&self) -> Self {
        Self::new(self.shared.clone())
    }

    /// The gate.
    #[must_use]
    pub fn gate(&self) -> &Gate {
        &self.gate
    }

    /// Who is asked.
    #[must_use]
    pub fn approver(&self) -> &ScriptedApprover {
        &self.shared.approver
    }

    /// What is written down.
    #[must_use]
    pub fn audit(&self) -> &AuditMemory {
        &self.shared.audit
    }

    /// What is kept.
    #[must_use]
    pub fn store(&self) -> &MemoryStore {
        &self.shared.store
    }

    /// Saves definitions, merged by name.
    ///
    /// # Errors
    ///
    /// What the gate says.
    pub async fn import(&self, servers: Vec<Definition>) -> Result<(), GateError> {
        self.gate.import(Document { servers, inputs: Vec::new() }, How::Merge, None).await?;
        Ok(())
    }

    /// Trusts a server as it is now.
    ///
    /// # Errors
    ///
    /// What the gate says.
    pub async fn trust(&self, server: &str) -> Result<(), GateError> {
        let question = self.gate.trust_question(server).await?;
        self.gate.trust(question).await
    }

    /// The whole way of a person who wants all of a server: trust, list, choose every tool, enable.
    ///
    /// # Errors
    ///
    /// What the gate says.
    pub async fn make_ready(&self, server: &str) -> Result<(), GateError> {
        self.trust(server).await?;
        self.gate.refresh(server).await?;
        self.gate.select(server, Some(Choice::All), None).await?;
        self.gate.enable(server).await
    }

    /// One call through the gate, by the caller `test`.
    ///
    /// # Errors
    ///
    /// What the gate says; arguments that are none as it would.
    pub async fn call(&self, server: &str, tool: &str, arguments: &str) -> Result<RawResult, GateError> {
        self.gate.call(call(server, tool, arguments)?).await
    }

    /// Everything so far, a line each, without values of secrets: `→` to a server, `←` from it, `?` a
    /// question, `!` its answer, `#` a line of the audit trail.
    #[must_use]
    pub fn transcript(&self) -> String {
        self.shared.transcript.text()
    }
}

/// A call by the caller `test`.
///
/// # Errors
///
/// [`GateError::Arguments`].
pub fn call(server: &str, tool: &str, arguments: &str) -> Result<Call, GateError> {
    let arguments = Arguments::parse(arguments.to_owned())
        .map_err(|source| GateError::Arguments { tool: tool.to_owned(), source })?;
    Ok(Call { server: server.to_owned(), tool: tool.to_owned(), arguments, caller: "test".to_owned() })
}
