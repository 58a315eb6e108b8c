//! What goes back to the client while its request is under way: questions of servers, and that a person is
//! asked.

use std::{
    borrow::Cow,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use portcullis::{
    approval::{Answer, Approver, ApproverError, Question},
    async_trait,
    display::quote,
    model_text::json_for_model,
    session::{ClientHandler, LogLevel, Offers, Refusal, RequestKind, ServerRequest},
};
use serde::Deserialize;
use serde_json::{Map, Value, json, value::RawValue};
use tokio::sync::mpsc;

use super::{
    client::Client,
    message::{self, RpcError, with_member},
};

/// How often a client that waits for a person is told so.
const REMINDER: Duration = Duration::from_secs(5);

/// Brings questions to a client.
#[async_trait]
pub(crate) trait Puts: ClientHandler {
    /// The client's answer. Unlike [`ClientHandler::answer`], which is for servers, not bounded in how often.
    async fn put(&self, request: ServerRequest) -> Result<String, Refusal>;

    /// Whether the request that it is for may be put again, to go on.
    fn is_put_again(&self) -> bool {
        false
    }
}

/// Has a client with a session answer what servers ask while its request is under way.
#[derive(Debug)]
pub(crate) struct AsksClient {
    pub(crate) client: Arc<Client>,
    pub(crate) on: mpsc::Sender<String>,
    pub(crate) missed: Missed,
}

/// What a server asked for that the client does not offer.
#[derive(Debug, Default)]
pub(crate) struct Missed(Mutex<Vec<RequestKind>>);

impl Missed {
    pub(crate) fn note(&self, kind: RequestKind) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).push(kind);
    }

    /// Where a request failed for want of what the client does not offer, that is what a client of the newer era
    /// is told (SEP-2575).
    pub(crate) fn explain(&self, client: &Client, result: Result<String, RpcError>) -> Result<String, RpcError> {
        let missed = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        match result {
            Err(error) if client.stateless && !missed.is_empty() => {
                let needed: Map<String, Value> =
                    missed.iter().map(|kind| (kind.capability().to_owned(), json!({}))).collect();
                let why = format!("the server needs what the client does not offer: {}", error.message);
                Err(RpcError::new(RpcError::MISSING_CAPABILITY, why).with_data(json!({"requiredCapabilities": needed})))
            }
            result => result,
        }
    }
}

#[async_trait]
impl ClientHandler for AsksClient {
    fn offers(&self) -> Offers {
        self.client.offers()
    }

    fn missed(&self, kind: RequestKind) {
        self.missed.note(kind);
    }

    fn log_level(&self) -> Option<LogLevel> {
        self.client.log_level()
    }

    fn logged(&self, server: &str, _: LogLevel, params: &str) {
        log(&self.client, &self.on, server, params);
    }

    async fn answer(&self, request: ServerRequest) -> Result<String, Refusal> {
        self.client.endpoint.pace.ask(&request.server)?;
        self.put(request).await
    }

    fn answers_for_all(&self) -> bool {
        !self.client.stateless
    }

    fn takes_tasks(&self) -> bool {
        self.client.may_become_a_task()
    }
}

#[async_trait]
impl Puts for AsksClient {
    async fn put(&self, request: ServerRequest) -> Result<String, Refusal> {
        let answer = self.client.ask(&self.on, request.kind.method(), &labelled(&request)).await;
        answer.map_err(|error| match error.code {
            RpcError::METHOD_NOT_FOUND => Refusal::NotOffered,
            _ => Refusal::Denied(error.message),
        })
    }
}

/// Words of a server for the log of the client: with the server's name, and without what is secret. Lost where
/// the client does not read.
pub(crate) fn log(client: &Client, on: &mpsc::Sender<String>, server: &str, params: &str) {
    #[derive(Deserialize)]
    struct Named<'a> {
        #[serde(borrow, default)]
        logger: Option<Cow<'a, str>>,
    }
    let Ok(Named { logger }) = serde_json::from_str(params) else { return };
    let logger = logger.map_or_else(|| server.to_owned(), |logger| format!("{server}/{logger}"));
    let redacted = client.endpoint.gate().redact(params);
    let params = RawValue::from_string(redacted.into_owned()).ok();
    if let Some(params) = params.and_then(|params| with_member(&params, "logger", &json!(logger).to_string())) {
        let _ = on.try_send(message::notification("notifications/message", &json_for_model(&params)));
    }
}

/// The parameters, with the server that asks: a client sees one server where there are many.
pub(crate) fn labelled(request: &ServerRequest) -> String {
    let labelled = |params: &RawValue| {
        let label = json!({"portcullis/server": request.server}).to_string();
        let asked: Value = serde_json::from_str(params.get()).ok()?;
        let params = with_member(params, "_meta", &label)?;
        match asked["message"].as_str() {
            Some(words) if request.kind == RequestKind::Elicitation => {
                let words = json!(format!("The server {} asks: {words}", quote(&request.server))).to_string();
                with_member(&RawValue::from_string(params).ok()?, "message", &words)
            }
            _ => Some(params),
        }
    };
    let params = RawValue::from_string(request.params.clone()).ok();
    params.and_then(|params| labelled(&params)).unwrap_or_else(|| request.params.clone())
}

/// The token under which a request's client hears of its progress, as it wrote it: one that is put again brings a new
/// one, or none.
#[derive(Debug, Clone, Default)]
pub(crate) struct ProgressToken(Arc<Mutex<Option<String>>>);

impl ProgressToken {
    pub(crate) fn get(&self) -> Option<String> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    pub(crate) fn set(&self, token: Option<String>) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = token;
    }
}

/// Tells a client that its call waits for a person, so that it does not give up; and asks it, where the
/// host's person switched that on.
#[derive(Debug)]
pub(crate) struct Notices {
    /// The client's token for progress.
    pub(crate) token: ProgressToken,
    pub(crate) on: mpsc::Sender<String>,
    /// Whom to ask as well.
    pub(crate) asks: Option<Arc<dyn Puts>>,
}

#[async_trait]
impl Approver for Notices {
    async fn ask(&self, question: &Question) -> Result<Answer, ApproverError> {
        let told = async {
            for count in 1_u32.. {
                self.remind(question, count).await;
                tokio::time::sleep(REMINDER).await;
            }
        };
        let asked = async {
            match &self.asks {
                Some(handler) => match form(&**handler, question).await {
                    Ok(answer) => answer,
                    // Others may still answer.
                    Err(_) => std::future::pending().await,
                },
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            answer = asked => Ok(answer),
            () = told => std::future::pending().await,
        }
    }
}

impl Notices {
    async fn remind(&self, question: &Question, count: u32) {
        let Some(token) = self.token.get() else { return };
        // Less than any progress that the server may tell later: it only ever grows.
        let progress = f64::from(count) * 1e-6;
        let words = json!(format!(
            "waiting for a person to allow {} on {}: `portcullis approve {}`",
            quote(&question.tool),
            quote(&question.server),
            question.id
        ));
        let params = format!(r#"{{"progressToken":{token},"progress":{progress},"message":{words}}}"#);
        // Whoever does not read does not time out either.
        let _ = self.on.try_send(message::notification("notifications/progress", &params));
    }
}

/// Asks for the decision as a form in the client. Whatever is no clear yes leaves the question open to others,
/// but for a clear no.
async fn form(handler: &dyn Puts, question: &Question) -> Result<Answer, ApproverError> {
    let words = format!(
        "Allow the tool {} of the server {} with these arguments?\n{}",
        quote(&question.tool),
        quote(&question.server),
        portcullis::display::escape_lines(&question.arguments)
    );
    let params = json!({
        "mode": "form",
        "message": words,
        "requestedSchema": {
            "type": "object",
            "properties": {"decision": {"type": "string", "title": "Decision", "enum": ["deny", "once"]}},
            "required": ["decision"],
        },
    });
    let request = ServerRequest {
        server: "portcullis".to_owned(),
        kind: RequestKind::Elicitation,
        key: None,
        params: params.to_string(),
    };
    let answer = handler.put(request).await.map_err(|refusal| ApproverError::Failed(refusal.to_string()))?;
    let answer: Value = serde_json::from_str(&answer).unwrap_or_default();
    match (answer["action"].as_str(), answer["content"]["decision"].as_str()) {
        (Some("accept"), Some("once")) => Ok(Answer::Once),
        (Some("accept" | "decline"), _) => Ok(Answer::Deny),
        _ => Err(ApproverError::Failed("the form was left".to_owned())),
    }
}
