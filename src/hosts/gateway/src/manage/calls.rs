//! Calls that somebody asked for and comes back for.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use portcullis::{
    approval::{Answer, Approver, ApproverError, Call, Question},
    async_trait,
    gate::CallContext,
};
use serde_json::{json, value::RawValue};
use tokio::{sync::oneshot, task::JoinHandle};

use super::ApiError;
use crate::routes::Gateway;

/// How long a result is kept for whoever asked.
const KEPT: Duration = Duration::from_secs(900);
/// Most calls that nobody came back for.
const CALLS: usize = 256;

type Result_ = Result<String, ApiError>;

/// Calls under way, by the id of the question that they wait for.
#[derive(Debug, Clone, Default)]
pub(crate) struct Calls(Arc<Mutex<HashMap<String, Abandoned>>>);

/// Notes the question that a call waits for; leaves the answer to others.
#[derive(Debug)]
struct Noted(Mutex<Option<oneshot::Sender<Question>>>);

#[async_trait]
impl Approver for Noted {
    async fn ask(&self, question: &Question) -> Result<Answer, ApproverError> {
        if let Some(note) = self.0.lock().unwrap_or_else(PoisonError::into_inner).take() {
            let _ = note.send(question.clone());
        }
        std::future::pending().await
    }
}

impl Calls {
    /// Begins a call: its result, or the question that it waits for.
    pub(crate) async fn begin(&self, gateway: &Gateway, call: Call, client: Option<String>) -> Result_ {
        let (note, asked) = oneshot::channel();
        let gate = gateway.0.gate.clone();
        let approver: Arc<dyn Approver> = Arc::new(Noted(Mutex::new(Some(note))));
        // Whoever goes away before the question is noted takes the call back.
        let mut work = Abandoned(tokio::spawn(async move {
            let context = CallContext { client, approver: Some(approver), ..CallContext::default() };
            let result = gate.call_for(call, &context).await?;
            Ok(done(result.get()))
        }));
        let question = tokio::select! {
            result = &mut work.0 => return result.map_err(|_| ApiError::usage("the call was given up"))?,
            Ok(question) = asked => question,
        };
        let mut calls = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if calls.len() >= CALLS {
            calls.retain(|_, work| !work.0.is_finished());
        }
        if calls.len() >= CALLS {
            return Err(ApiError::usage(format!("{CALLS} calls wait already for answers, or to be fetched")));
        }
        calls.insert(question.id.clone(), work);
        drop(calls);
        let (calls, id) = (Arc::downgrade(&self.0), question.id.clone());
        tokio::spawn(async move {
            tokio::time::sleep(KEPT).await;
            if let Some(calls) = calls.upgrade() {
                drop(calls.lock().unwrap_or_else(PoisonError::into_inner).remove(&id));
            }
        });
        Ok(json!({"status": "asked", "question": question}).to_string())
    }

    /// The result of a call that waited for the question of this id; waits for it.
    pub(crate) async fn wait(&self, id: &str) -> Result_ {
        let work = self.0.lock().unwrap_or_else(PoisonError::into_inner).remove(id);
        // Whoever goes away while it waits takes the call back.
        let mut work = work.ok_or_else(|| ApiError::unknown("no call waits for a question of this id"))?;
        (&mut work.0).await.map_err(|_| ApiError::usage("the call was given up"))?
    }
}

/// A call that ends with whoever waits for it.
#[derive(Debug)]
struct Abandoned(JoinHandle<Result_>);

impl Drop for Abandoned {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// The result as its server wrote it.
fn done(result: &str) -> String {
    let raw = RawValue::from_string(result.to_owned());
    let result = raw.as_ref().map_or("null", |raw| raw.get());
    format!(r#"{{"status":"done","result":{result}}}"#)
}
