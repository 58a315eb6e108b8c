//! A call on its way: known, trusted, enabled, as last seen, approved, sent once, written down.

use std::{sync::Arc, time::Duration};

use tokio::time::{Instant, timeout};

use super::{CallContext, Gate, GateError, find, nearest, sessions::Purpose};
use crate::{
    approval::{
        Answer, Approver, ApproverError, Call, Decision, PendingCall, Question, Ticket, TicketError, Verdict, allowed,
        question::Asked,
    },
    audit::{AuditEvent, AuditLine},
    limits,
    raw::RawResult,
    session::{CallOutcome, Continuation, Session, SessionError},
    store::State,
};

/// What a request came to.
#[derive(Debug)]
pub enum Requested {
    /// The policies allow it.
    Allowed(Ticket),
    /// A person has to be asked.
    Asked(Waiting),
}

/// A call that waits for a person. Dropping it withdraws the question.
#[derive(Debug)]
pub struct Waiting(Box<Parts>);

#[derive(Debug)]
struct Parts {
    asked: Asked,
    call: PendingCall,
    limit: Duration,
    own: bool,
}

impl Waiting {
    /// What the person is asked.
    #[must_use]
    pub fn question(&self) -> &Question {
        &self.0.asked.question
    }
}

impl Gate {
    /// Brings a call before the pipeline. Starts its server if it does not run.
    ///
    /// # Errors
    ///
    /// [`GateError`], in this order: unknown server, not trusted, not enabled, did not start, unknown
    /// tool, tool not enabled or changed, denied.
    pub async fn request(&self, call: Call) -> Result<Requested, GateError> {
        self.request_again(call, None, &CallContext::default()).await
    }

    /// The same for somebody else, who says more of itself.
    ///
    /// # Errors
    ///
    /// As [`request`](Self::request).
    pub async fn request_for(&self, call: Call, context: &CallContext) -> Result<Requested, GateError> {
        self.request_again(call, None, context).await
    }

    /// The same for another attempt at a call, with what the server wanted to know.
    async fn request_again(
        &self,
        call: Call,
        continuation: Option<Arc<Continuation>>,
        context: &CallContext,
    ) -> Result<Requested, GateError> {
        if self.0.sessions.is_closed() {
            return Err(self.refused(&call, GateError::Closed));
        }
        let state = self.state().await?;
        let name = call.server.clone();
        find(&state, &name)?;
        let runtime = state.runtime(&name);
        if runtime.trust.is_none() {
            return Err(self.refused(&call, GateError::NotTrusted { server: name }));
        }
        if !runtime.enabled {
            return Err(self.refused(&call, GateError::NotEnabled { server: name }));
        }
        if let Err(error) = self.held(find(&state, &name)?) {
            return Err(self.refused(&call, error));
        }
        let pending = self.pending(&state, call).await?.continuing(continuation);
        self.judged(pending, false, context).await
    }

    /// What the policies say of a call; `own` where its tool is the host's.
    pub(super) async fn judged(
        &self,
        pending: PendingCall,
        own: bool,
        context: &CallContext,
    ) -> Result<Requested, GateError> {
        let Decision { verdict, rule } = self.0.pipeline.judge(&pending).await;
        let mut line = Self::call_line(AuditEvent::Verdict, &pending);
        line.verdict = Some(verdict.name().to_owned());
        line.rule = Some(rule.clone());
        if let Verdict::Deny(reason) = &verdict {
            line.outcome = Some("denied".to_owned());
            line.detail = Some(reason.clone());
        }
        self.record(&line)?;
        match verdict {
            Verdict::Deny(reason) => Err(denied(pending.call(), reason)),
            Verdict::Allow => Ok(Requested::Allowed(allowed(pending))),
            Verdict::Ask | Verdict::Abstain => Ok(Requested::Asked(Waiting(Box::new(Parts {
                asked: self.0.questions.ask(
                    pending.clone(),
                    own,
                    rule,
                    context.client.clone(),
                    self.0.parts.context.limits.question,
                )?,
                call: pending,
                limit: self.0.parts.context.limits.question,
                own,
            })))),
        }
    }

    /// Binds a call to its server and tool as they are now.
    async fn pending(&self, state: &Arc<State>, call: Call) -> Result<PendingCall, GateError> {
        let name = call.server.clone();
        // Nothing to wait for: the state is the one that the running server was compared with.
        let ready =
            self.ready(state, &name).filter(|session| !session.is_stale() && session.is_noted(&session.tools()));
        let compared = ready.is_some();
        let (state, session) = match ready {
            Some(session) => (state.clone(), session),
            None => {
                let session = self.listed(&name).await?;
                // Starting and listing take their time: what a person decided meanwhile counts.
                (self.state().await?, session)
            }
        };
        let list = session.tools();
        let runtime = state.runtime(&name);
        let key = self.key_of(&state).await?;
        let same = compared || find(&state, &name)?.fingerprint(&key) == session.fingerprint();
        if runtime.trust.is_none() || !same {
            return Err(self.refused(&call, GateError::NotTrusted { server: name }));
        }
        if !runtime.enabled {
            return Err(self.refused(&call, GateError::NotEnabled { server: name }));
        }
        let Some(tool) = list.get(&call.tool).cloned() else {
            let near = nearest(&call.tool, list.iter().map(|tool| tool.name()));
            return Err(GateError::UnknownTool { server: name, tool: call.tool, near });
        };
        match runtime.enabled_tools.get(&call.tool) {
            None => {
                let error = GateError::ToolNotEnabled { server: name, tool: call.tool.clone() };
                return Err(self.refused(&call, error));
            }
            Some(pin) if *pin != tool.pin() => {
                let changes = self.changes_of(session.fingerprint(), &tool).await;
                let error = GateError::ToolChanged { server: name, tool: call.tool.clone(), changes };
                return Err(self.refused(&call, error));
            }
            Some(pin) => {
                let called = [(call.tool.clone(), *pin)].into();
                self.held_tools(&name, &called).map_err(|error| self.refused(&call, error))?;
            }
        }
        let here = (session.fingerprint(), tool.name().to_owned(), tool.pin(), call.caller.clone());
        let granted = self.granted().contains(&here);
        Ok(PendingCall::new(call, session.id(), session.fingerprint(), tool, state.clone(), granted, &key))
    }

    /// The session of a server that is enabled, its tools listed and taken note of.
    async fn listed(&self, name: &str) -> Result<Arc<Session>, GateError> {
        let lease = self.session(name, Purpose::Call).await?;
        let session = lease.session.clone();
        let list = session.refresh_if_stale().await.map_err(|error| self.failed(name, None, error))?;
        self.remember(&session, &list).await?;
        Ok(session)
    }

    /// Waits until the question of `waiting` is answered, here or elsewhere by its id.
    ///
    /// # Errors
    ///
    /// [`GateError::Denied`]: a person said no, nobody answered in time, nobody can be asked.
    pub async fn answered(&self, waiting: Waiting) -> Result<Ticket, GateError> {
        self.wait(waiting, std::future::pending()).await
    }

    async fn wait(
        &self,
        Waiting(mut waiting): Waiting,
        asking: impl Future<Output = ApproverError>,
    ) -> Result<Ticket, GateError> {
        let answer = timeout(waiting.limit, async {
            tokio::select! {
                biased;
                answer = &mut waiting.asked.answer => answer.map_err(|_| "the question was withdrawn".to_owned()),
                error = asking => Err(error.to_string()),
            }
        })
        .await;
        let answer = answer.unwrap_or_else(|_| Err("nobody answered in time".to_owned()));
        let mut line = Self::call_line(AuditEvent::Answer, &waiting.call);
        let (verdict, rule) = match &answer {
            Ok((Answer::Once, _)) => ("allow", "once"),
            Ok((Answer::UntilHostEnds, _)) => ("allow", "until-host-ends"),
            Ok((Answer::Always, _)) => ("allow", "always"),
            Ok((Answer::AlwaysForCaller, _)) => ("allow", "always-for-caller"),
            Ok((Answer::Deny, _)) => ("deny", "person"),
            Err(_) => ("deny", "no-answer"),
        };
        line.verdict = Some(verdict.to_owned());
        line.rule = Some(rule.to_owned());
        line.detail = answer.as_ref().err().cloned();
        self.record(&line)?;
        match answer {
            Ok((answer, Some(ticket))) if waiting.own => {
                if answer != Answer::Once {
                    self.grant(Answer::UntilHostEnds, &waiting.call).await?;
                }
                Ok(ticket)
            }
            Ok((answer, Some(ticket))) => {
                self.unchanged(&waiting.call).await?;
                self.grant(answer, &waiting.call).await?;
                Ok(ticket)
            }
            Ok((_, None)) => Err(denied(waiting.call.call(), "you said no".to_owned())),
            Err(reason) => Err(denied(waiting.call.call(), reason)),
        }
    }

    /// Sends the call of `ticket`, once, if everything is still as it was approved.
    ///
    /// # Errors
    ///
    /// [`GateError`]: something changed and nothing was sent, or what the server or the link said.
    pub async fn execute(&self, ticket: Ticket) -> Result<RawResult, GateError> {
        self.execute_for(ticket, &CallContext::default()).await
    }

    /// The same for somebody else, who is told on the way.
    ///
    /// # Errors
    ///
    /// As [`execute`](Self::execute).
    pub async fn execute_for(&self, ticket: Ticket, context: &CallContext) -> Result<RawResult, GateError> {
        self.unchanged(ticket.approved()).await?;
        self.send(ticket, context).await
    }

    /// Sends the call of a ticket for which the store was just looked at. Where the server wants to know
    /// something first, the call is made again, and decided again.
    async fn send(&self, mut ticket: Ticket, context: &CallContext) -> Result<RawResult, GateError> {
        let call = ticket.approved().call().clone();
        let failed = |error| self.failed(&call.server, Some(call.tool.clone()), error);
        for _round in 0..=limits::INPUT_ROUNDS {
            let session = self.session_of(ticket.approved())?;
            let required = match self.send_once(&session, ticket, &call, context).await? {
                CallOutcome::Done(result) => return Ok(result),
                CallOutcome::InputRequired(required) => required,
            };
            let continuation = session.answer_inputs(required, &context.waiter).await.map_err(failed)?;
            ticket = self.approved(call.clone(), Some(Arc::new(continuation)), context).await?;
            self.unchanged(ticket.approved()).await?;
        }
        Err(failed(SessionError::Rounds))
    }

    async fn send_once(
        &self,
        session: &Session,
        ticket: Ticket,
        call: &Call,
        context: &CallContext,
    ) -> Result<CallOutcome, GateError> {
        if session.is_stale() {
            let list = session.refresh().await.map_err(|error| self.failed(&call.server, None, error))?;
            self.remember(session, &list).await?;
        }
        // What is written about the call must not fail once it was sent.
        let mut line = Self::call_line(AuditEvent::Call, ticket.approved());
        let started = Instant::now();
        let outcome = session.call_for(ticket, &context.waiter).await;
        line.duration_ms = u64::try_from(started.elapsed().as_millis()).ok();
        line.outcome = Some(match &outcome {
            Ok(CallOutcome::Done(result)) if result.is_error() => "tool-error".to_owned(),
            Ok(CallOutcome::Done(_)) => "ok".to_owned(),
            Ok(CallOutcome::InputRequired(_)) => "input-required".to_owned(),
            Err(_) => "failed".to_owned(),
        });
        let outcome = outcome.map_err(|error| self.failed(&call.server, Some(call.tool.clone()), error));
        if let Err(error) = &outcome {
            line.detail = Some(error.code().to_owned());
        }
        self.record_soon(&line);
        outcome
    }

    /// Whether the server and the tool of a call are still what they were when it was put.
    async fn unchanged(&self, pending: &PendingCall) -> Result<(), GateError> {
        let name = &pending.call().server;
        let changed = |what| changed(pending, what);
        let state = self.state().await?;
        if !Arc::ptr_eq(&state, pending.state()) {
            let Some(definition) = state.definition(name) else { return Err(changed("server")) };
            let runtime = state.runtime(name);
            let same = definition.fingerprint(&self.key_of(&state).await?) == pending.fingerprint();
            if !same || runtime.trust.is_none() || !runtime.enabled {
                return Err(changed("server"));
            }
            if runtime.enabled_tools.get(pending.tool().name()) != Some(&pending.tool().pin()) {
                return Err(changed("tool"));
            }
        }
        self.session_of(pending).map(drop)
    }

    /// The session of a call, if it is still the one, with the tool as it was.
    fn session_of(&self, pending: &PendingCall) -> Result<Arc<Session>, GateError> {
        let session = self.running(&pending.call().server).filter(|session| session.id() == pending.session());
        let session = session.ok_or_else(|| changed(pending, "session"))?;
        match session.tools().get(pending.tool().name()) {
            Some(tool) if tool.pin() == pending.tool().pin() => Ok(session),
            _ => Err(changed(pending, "tool")),
        }
    }

    /// The whole way of one call: request, question to the host's approver, answer, execution.
    ///
    /// # Errors
    ///
    /// As [`request`](Self::request) and [`execute`](Self::execute).
    pub async fn call(&self, call: Call) -> Result<RawResult, GateError> {
        self.call_for(call, &CallContext::default()).await
    }

    /// The same for somebody else: a client of an endpoint, who may be asked as well.
    ///
    /// # Errors
    ///
    /// As [`call`](Self::call).
    pub async fn call_for(&self, call: Call, context: &CallContext) -> Result<RawResult, GateError> {
        let ticket = self.approved(call, None, context).await?;
        // Between the look at the store and here nobody was waited for.
        if !ticket.approved().is_fresh() {
            self.unchanged(ticket.approved()).await?;
        }
        self.send(ticket, context).await
    }

    /// The right to make a call: of the policies, or of the person whom the host's approver asks.
    async fn approved(
        &self,
        call: Call,
        continuation: Option<Arc<Continuation>>,
        context: &CallContext,
    ) -> Result<Ticket, GateError> {
        let waiting = match self.request_again(call, continuation, context).await? {
            Requested::Allowed(ticket) => return Ok(ticket),
            Requested::Asked(waiting) => waiting,
        };
        self.asked(waiting, context).await
    }

    /// The answer of the person whom the host's approver asks, or of whoever is quicker.
    pub(super) async fn asked(&self, waiting: Waiting, context: &CallContext) -> Result<Ticket, GateError> {
        let question = waiting.question().clone();
        let ask = async |approver: &dyn Approver| match approver.ask(&question).await {
            Ok(answer) => {
                // Answered elsewhere in the meantime: that answer is on its way.
                let _ = self.0.questions.answer(&question.id, answer);
                std::future::pending().await
            }
            Err(error) => error,
        };
        let asking = async {
            match &context.approver {
                // Only where neither can ask anybody there is nobody.
                Some(approver) => tokio::join!(ask(&*self.0.parts.approver), ask(&**approver)).0,
                None => ask(&*self.0.parts.approver).await,
            }
        };
        self.wait(waiting, asking).await
    }

    fn call_line(event: AuditEvent, pending: &PendingCall) -> AuditLine {
        let call = pending.call();
        AuditLine {
            tool: Some(call.tool.clone()),
            caller: Some(call.caller.clone()),
            arguments_hash: Some(pending.arguments_hash().to_owned()),
            ..Self::line(event, &call.server)
        }
    }

    /// Writes down a call that never came before the pipeline.
    fn refused(&self, call: &Call, error: GateError) -> GateError {
        self.record_done(&AuditLine {
            tool: Some(call.tool.clone()),
            caller: Some(call.caller.clone()),
            verdict: Some("deny".to_owned()),
            rule: Some(error.code().to_owned()),
            outcome: Some("denied".to_owned()),
            ..Self::line(AuditEvent::Verdict, &call.server)
        });
        error
    }

    /// What failed in a conversation, without what the server repeats of its secrets.
    pub(super) fn failed(&self, server: &str, tool: Option<String>, error: SessionError) -> GateError {
        let error = error.redacted(&self.0.parts.secrets.redactor);
        GateError::Session { server: server.to_owned(), tool, source: Box::new(error) }
    }
}

fn changed(pending: &PendingCall, what: &'static str) -> GateError {
    let source = Box::new(SessionError::Ticket(TicketError::Changed { what }));
    GateError::Session { server: pending.call().server.clone(), tool: Some(pending.call().tool.clone()), source }
}

fn denied(call: &Call, reason: String) -> GateError {
    GateError::Denied { server: call.server.clone(), tool: call.tool.clone(), reason }
}
