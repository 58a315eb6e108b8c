//! A call after it was sent: done at once, in a task that is asked after, or after questions to the client.

use std::{borrow::Cow, collections::BTreeMap, time::Duration};

use futures::future::try_join_all;
use serde::Deserialize;
use serde_json::value::RawValue;
use tokio::time::{Instant, sleep};

use super::{
    Session, SessionError,
    client::{RequestKind, TaskStatus},
    message::Params,
    waiter::Waiter,
};
use crate::{approval::Ticket, limits, raw::RawResult, wire::Outgoing};

/// Bounds of the time between two looks at a task, and what is waited where the server names none.
const POLL: (Duration, Duration, Duration) =
    (Duration::from_millis(100), Duration::from_secs(30), Duration::from_secs(1));

/// How long a task is waited for at most, however long its server keeps it.
const LONGEST: Duration = Duration::from_secs(24 * 3600);

/// What a call came to.
#[derive(Debug)]
#[must_use]
pub enum CallOutcome {
    /// The result.
    Done(RawResult),
    /// The server has questions first; answered, the call is made again, with a ticket of its own.
    InputRequired(InputRequired),
}

impl CallOutcome {
    /// The result, if there is one.
    #[must_use]
    pub fn done(self) -> Option<RawResult> {
        match self {
            Self::Done(result) => Some(result),
            Self::InputRequired(_) => None,
        }
    }
}

/// What a server wants to know before it does what was asked (SEP-2322).
#[derive(Debug)]
pub struct InputRequired {
    requests: BTreeMap<String, (RequestKind, String)>,
    /// To be sent back as it is.
    state: Option<Box<RawValue>>,
}

/// The answers to [`InputRequired`], for the next attempt.
#[derive(Debug, Clone)]
pub(crate) struct Continuation {
    /// An object, an answer for each question.
    responses: String,
    state: Option<Box<RawValue>>,
}

impl Continuation {
    /// The parameters that go with the request.
    pub(super) fn add_to(&self, params: Params) -> Params {
        let params = params.raw("inputResponses", &self.responses);
        match &self.state {
            Some(state) => params.raw("requestState", &state.get().replace(['\n', '\r'], " ")),
            None => params,
        }
    }
}

/// What a result says of itself.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Kind<'a> {
    #[serde(borrow, default)]
    result_type: Option<Cow<'a, str>>,
}

/// A task, as far as it concerns whoever waits for it.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Task<'a> {
    #[serde(borrow)]
    task_id: Cow<'a, str>,
    #[serde(borrow, default)]
    status: Cow<'a, str>,
    #[serde(default)]
    status_message: Option<String>,
    #[serde(default)]
    ttl_ms: Option<u64>,
    #[serde(default)]
    poll_interval_ms: Option<u64>,
    #[serde(borrow, default)]
    result: Option<&'a RawValue>,
    #[serde(default)]
    error: Option<super::message::RpcError>,
}

/// What a result is that is no final one.
enum Interim<'a> {
    InputRequired(InputRequired),
    Task(Task<'a>),
}

fn interim(text: &str) -> Result<Option<Interim<'_>>, SessionError> {
    // What most results say is nothing. A name may be written with escapes, so these are looked into as well.
    let may_say = |what: &[u8]| memchr::memmem::find(text.as_bytes(), what).is_some();
    if !may_say(b"resultType") && !may_say(b"\\u00") {
        return Ok(None);
    }
    let unreadable = |_| SessionError::Unreadable;
    let kind: Kind<'_> = serde_json::from_str(text).map_err(unreadable)?;
    match kind.result_type.as_deref() {
        None | Some("complete") => Ok(None),
        Some("input_required") => Ok(Some(Interim::InputRequired(InputRequired::read(text)?))),
        Some("task") => serde_json::from_str(text).map(|task| Some(Interim::Task(task))).map_err(unreadable),
        Some(_) => Err(SessionError::Unreadable),
    }
}

impl InputRequired {
    fn read(text: &str) -> Result<Self, SessionError> {
        #[derive(Deserialize)]
        #[serde(rename_all = "camelCase")]
        struct Wanted<'a> {
            #[serde(borrow, default)]
            input_requests: BTreeMap<String, Question<'a>>,
            #[serde(default)]
            request_state: Option<Box<RawValue>>,
        }
        #[derive(Deserialize)]
        struct Question<'a> {
            #[serde(borrow)]
            method: Cow<'a, str>,
            #[serde(borrow, default)]
            params: Option<&'a RawValue>,
        }
        let wanted: Wanted<'_> = serde_json::from_str(text).map_err(|_| SessionError::Unreadable)?;
        let requests = wanted.input_requests.into_iter().map(|(key, question)| {
            let kind = RequestKind::of(&question.method).ok_or(SessionError::Unreadable)?;
            Ok((key, (kind, question.params.map_or("{}", RawValue::get).to_owned())))
        });
        Ok(Self { requests: requests.collect::<Result<_, SessionError>>()?, state: wanted.request_state })
    }
}

impl Session {
    /// Sends the call that `ticket` owns, once.
    ///
    /// # Errors
    ///
    /// [`SessionError::Ticket`] where something changed since it was approved, and nothing was sent;
    /// otherwise what failed, by kind. The call may have run unless the error says that it did not.
    pub async fn call(&self, ticket: Ticket) -> Result<CallOutcome, SessionError> {
        self.call_for(ticket, &Waiter::default()).await
    }

    /// The same, with somebody who is told of progress and answers what the server asks.
    ///
    /// # Errors
    ///
    /// As [`call`](Self::call).
    pub async fn call_for(&self, ticket: Ticket, waiter: &Waiter) -> Result<CallOutcome, SessionError> {
        self.tells_enough(waiter).await;
        if let Some(tool) = self.tools().get(ticket.tool()).cloned() {
            tool.prepare_output().await.map_err(|what| SessionError::OutputSchema { what })?;
        }
        // Looked up again: nothing may come between this and the comparison.
        let tool = self.tools().get(ticket.tool()).cloned();
        let call = ticket.redeem(self.id, self.fingerprint, tool.as_ref().map(|tool| tool.pin()), Instant::now())?;
        let mut params = Params::default().with("name", &call.tool).raw("arguments", call.arguments.get());
        if let Some(continuation) = &call.continuation {
            params = continuation.add_to(params);
        }
        let shape = |message: &mut Outgoing| {
            if self.wants_headers() {
                message.parameters = tool.as_ref().map(|tool| tool.header_values(&call.arguments)).unwrap_or_default();
            }
            message.name = Some(call.tool);
        };
        let text = self.request("tools/call", &params, waiter, shape).await?;
        let result = match interim(&text)? {
            None => self.raw(text),
            Some(Interim::InputRequired(required)) => return Ok(CallOutcome::InputRequired(required)),
            Some(Interim::Task(task)) => self.follow(&task, waiter).await?,
        };
        if let Some(tool) = &tool {
            let judged = tool.judge_output(result.get()).await;
            judged.map_err(|misfit| SessionError::Output { what: misfit.to_string() })?;
        }
        Ok(CallOutcome::Done(result))
    }

    pub(super) fn raw(&self, text: String) -> RawResult {
        RawResult::new(text, self.peer.traits().untouched)
    }

    /// Has everything answered that a server wants to know, all at one time.
    pub(crate) async fn answer_inputs(
        &self,
        required: InputRequired,
        waiter: &Waiter,
    ) -> Result<Continuation, SessionError> {
        let handler = waiter.handler.as_ref();
        let answers = required.requests.into_iter().map(|(key, (kind, params))| async move {
            let answer = self.peer.incoming.ask(kind, params, Some(key.clone()), handler).await;
            let answer = answer.map_err(|refusal| SessionError::Input { kind, reason: refusal.to_string() })?;
            // It was looked at when it came from the host.
            let answer: serde_json::Value = serde_json::from_str(&answer).map_err(|_| SessionError::Unreadable)?;
            Ok::<_, SessionError>((key, answer))
        });
        let responses = try_join_all(answers).await?.into_iter().collect::<serde_json::Map<_, _>>();
        Ok(Continuation { responses: serde_json::Value::Object(responses).to_string(), state: required.state })
    }

    /// A request that is no call of a tool, with the answers to whatever the server asks on the way.
    pub(super) async fn ask(
        &self,
        method: &'static str,
        params: &Params,
        name: Option<&str>,
        waiter: &Waiter,
    ) -> Result<RawResult, SessionError> {
        let mut continuation: Option<Continuation> = None;
        for _round in 0..=limits::INPUT_ROUNDS {
            let params = match &continuation {
                Some(continuation) => &continuation.add_to(params.clone()),
                None => params,
            };
            let name = name.map(str::to_owned);
            let text = self.request(method, params, waiter, |message| message.name = name).await?;
            match interim(&text)? {
                Some(Interim::InputRequired(required)) => {
                    continuation = Some(self.answer_inputs(required, waiter).await?);
                }
                _ => return Ok(self.raw(text)),
            }
        }
        Err(SessionError::Rounds)
    }

    /// Asks after a task, as often as the server wishes, until it is done. Dropped before, the server is told.
    async fn follow(&self, task: &Task<'_>, waiter: &Waiter) -> Result<RawResult, SessionError> {
        let id = task.task_id.clone().into_owned();
        Self::tell(task, waiter);
        // One that its server keeps for longer may take longer.
        let kept = Duration::from_millis(task.ttl_ms.unwrap_or(0)).min(LONGEST);
        let absolute = self.options.limits.absolute.max(kept);
        let ended = self.looks_at(&id, task.poll_interval_ms, waiter);
        let abandoned = Abandoned { session: self, id: &id, done: false };
        match tokio::time::timeout(absolute, ended).await {
            Ok(result) => {
                abandoned.done();
                result
            }
            Err(_) => Err(SessionError::TimedOut { limit: absolute, kind: "altogether" }),
        }
    }

    fn tell(task: &Task<'_>, waiter: &Waiter) {
        let status = TaskStatus {
            message: task.status_message.clone(),
            ttl_ms: task.ttl_ms,
            poll_interval_ms: task.poll_interval_ms,
        };
        if let Some(handler) = &waiter.handler {
            handler.works(&status);
        }
    }

    async fn looks_at(&self, id: &str, mut interval: Option<u64>, waiter: &Waiter) -> Result<RawResult, SessionError> {
        let params = Params::default().with("taskId", id);
        loop {
            let (least, most, usual) = POLL;
            sleep(interval.map_or(usual, Duration::from_millis).clamp(least, most)).await;
            let text = self.request("tasks/get", &params, waiter, |message| message.name = Some(id.to_owned())).await?;
            let task: Task<'_> = serde_json::from_str(&text).map_err(|_| SessionError::Unreadable)?;
            interval = task.poll_interval_ms.or(interval);
            Self::tell(&task, waiter);
            match &*task.status {
                "completed" => {
                    let result = task.result.ok_or(SessionError::Unreadable)?;
                    // Whoever is done asks nothing more.
                    if interim(result.get())?.is_some() {
                        return Err(SessionError::Unreadable);
                    }
                    return Ok(self.raw(result.get().to_owned()));
                }
                "failed" => {
                    return Err(match task.error {
                        Some(error) => super::error::of_rpc(error),
                        None => {
                            SessionError::Task { what: task.status_message.unwrap_or_else(|| "it failed".to_owned()) }
                        }
                    });
                }
                "cancelled" => return Err(SessionError::Task { what: "the server cancelled it".to_owned() }),
                "input_required" => {
                    let answers = self.answer_inputs(InputRequired::read(&text)?, waiter).await?;
                    let params = params.clone().raw("inputResponses", &answers.responses);
                    self.request("tasks/update", &params, waiter, |message| message.name = Some(id.to_owned())).await?;
                }
                _ => {}
            }
        }
    }
}

/// A task that nobody asks after any more, unless it is done.
struct Abandoned<'a> {
    session: &'a Session,
    id: &'a str,
    done: bool,
}

impl Abandoned<'_> {
    fn done(mut self) {
        self.done = true;
    }
}

impl Drop for Abandoned<'_> {
    fn drop(&mut self) {
        if !self.done {
            self.session.peer.incoming.abandon(&self.session.peer, self.id);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_result_is_final_unless_it_says_otherwise() {
        for (text, expected) in [
            (r#"{"content":[]}"#, "final"),
            (r#"{"content":[],"resultType":"complete"}"#, "final"),
            (r#"{"content":[{"text":"resultType"}]}"#, "final"),
            (r#"{"resultType":"task","taskId":"t","status":"working"}"#, "task t"),
            (r#"{"resultType":"task"}"#, "unreadable"),
            (r#"{"resultType":"input_required","requestState":"s"}"#, "0 questions"),
            (
                r#"{"resultType":"input_required","inputRequests":{"a":{"method":"elicitation/create","params":{}}}}"#,
                "1 questions",
            ),
            (r#"{"resultType":"input_required","inputRequests":{"a":{"method":"tools/call"}}}"#, "unreadable"),
            (r#"{"resultType":"of tomorrow"}"#, "unreadable"),
        ] {
            let seen = match interim(text) {
                Ok(None) => "final".to_owned(),
                Ok(Some(Interim::Task(task))) => format!("task {}", task.task_id),
                Ok(Some(Interim::InputRequired(required))) => format!("{} questions", required.requests.len()),
                Err(_) => "unreadable".to_owned(),
            };
            assert_eq!(seen, expected, "{text}");
        }
    }
}
