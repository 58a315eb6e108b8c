//! Calls that wait for a person, each with an id, each answered once.

use std::{
    collections::BTreeMap,
    fmt::Debug,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use async_trait::async_trait;
use serde::{Deserialize, Serialize};
use tokio::{
    sync::{oneshot, watch},
    time::Instant,
};

use super::{PendingCall, Ticket};
use crate::{canonical::hex, limits::OPEN_QUESTIONS};

/// What a person is asked. Everything is as it is and nothing is cut; whoever shows it escapes it.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Question {
    /// Its id, unguessable.
    pub id: String,
    /// The server, by its name in the document.
    pub server: String,
    /// The tool, by its name on the wire.
    pub tool: String,
    /// The server's name for it: the server's words, not ours.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// The server's words on what it does.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// The arguments, byte by byte.
    pub arguments: String,
    /// Who asks.
    pub caller: String,
    /// What the caller says of itself, such as its version; not checked by anybody.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub client: Option<String>,
    /// Whether the server says that the tool changes nothing: a hint.
    pub claims_read_only: bool,
    /// The policy that wants it asked.
    pub rule: String,
    /// Whether the tool is the host's own: whatever is answered holds until the host ends and no longer.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub own: bool,
}

/// What a person says.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Answer {
    /// This call, once.
    Once,
    /// This tool as it is defined, until this host ends.
    UntilHostEnds,
    /// This tool as it is defined, from now on.
    Always,
    /// This tool as it is defined, from now on, for this caller alone.
    AlwaysForCaller,
    /// Not this call.
    Deny,
}

/// Why nobody could be asked. Counts as a denial.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ApproverError {
    /// There is nobody: no terminal, no window.
    #[error("nobody can be asked here: {0}")]
    Nobody(String),
    /// Asking failed.
    #[error("asking failed: {0}")]
    Failed(String),
}

/// Asks a person. A host's own: a terminal, a page, a chat.
///
/// # Behaviour
///
/// - The future is dropped when the question is answered elsewhere or its time is over.
#[cfg_attr(any(test, feature = "mocks"), mockall::automock)]
#[async_trait]
pub trait Approver: Debug + Send + Sync {
    /// The person's answer.
    ///
    /// # Errors
    ///
    /// [`ApproverError`] where nobody can be asked; the call is denied.
    async fn ask(&self, question: &Question) -> Result<Answer, ApproverError>;
}

/// Why a question could not be put or answered.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum QuestionError {
    /// Too many wait already.
    #[error("{limit} questions wait already; answer some of them first")]
    TooMany {
        /// [`OPEN_QUESTIONS`].
        limit: usize,
    },
    /// Answered already, over, or never asked.
    #[error("no question `{}` is waiting", crate::display::escape(.id))]
    Unknown {
        /// The id.
        id: String,
    },
    /// No randomness for an id.
    #[error("the operating system gave no random numbers")]
    Random,
}

/// A waiting call.
#[derive(Debug)]
struct Waiting {
    question: Question,
    /// An answer after that is none, whether or not anybody noticed yet: a machine may have slept.
    until: Instant,
    call: PendingCall,
    answered: oneshot::Sender<(Answer, Option<Ticket>)>,
}

/// The open questions of one gate.
#[derive(Debug, Clone, Default)]
pub struct Questions {
    open: Arc<Mutex<BTreeMap<String, Waiting>>>,
    /// Counts questions that were put, answered or withdrawn.
    changes: Arc<watch::Sender<u64>>,
}

/// Waits for the answer to one question; dropping it withdraws the question.
#[derive(Debug)]
pub(crate) struct Asked {
    pub(crate) question: Question,
    pub(crate) answer: oneshot::Receiver<(Answer, Option<Ticket>)>,
    questions: Questions,
}

impl Drop for Asked {
    fn drop(&mut self) {
        if self.questions.lock().remove(&self.question.id).is_some() {
            self.questions.changed();
        }
    }
}

impl Questions {
    fn lock(&self) -> MutexGuard<'_, BTreeMap<String, Waiting>> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Puts a question. Two equal calls are two questions.
    pub(crate) fn ask(
        &self,
        call: PendingCall,
        own: bool,
        rule: String,
        client: Option<String>,
        limit: Duration,
    ) -> Result<Asked, QuestionError> {
        let mut id = [0; 16];
        getrandom::fill(&mut id).map_err(|_| QuestionError::Random)?;
        let tool = call.tool();
        let question = Question {
            id: hex(&id),
            server: call.call().server.clone(),
            tool: tool.name().to_owned(),
            title: tool.title().map(str::to_owned),
            description: tool.description().map(str::to_owned),
            arguments: call.call().arguments.get().to_owned(),
            caller: call.call().caller.clone(),
            client,
            claims_read_only: tool.claims_read_only(),
            rule,
            own,
        };
        let (answered, answer) = oneshot::channel();
        let mut open = self.lock();
        if open.len() >= OPEN_QUESTIONS {
            return Err(QuestionError::TooMany { limit: OPEN_QUESTIONS });
        }
        let until = Instant::now() + limit;
        open.insert(question.id.clone(), Waiting { question: question.clone(), until, call, answered });
        drop(open);
        self.changed();
        Ok(Asked { question, answer, questions: self.clone() })
    }

    fn changed(&self) {
        self.changes.send_modify(|changes| *changes += 1);
    }

    /// Changes whenever a question is put, answered or withdrawn.
    #[must_use]
    pub fn changes(&self) -> watch::Receiver<u64> {
        self.changes.subscribe()
    }

    /// Those that wait.
    #[must_use]
    pub fn open(&self) -> Vec<Question> {
        let now = Instant::now();
        let open = self.lock();
        let waiting = open.values().filter(|waiting| now < waiting.until);
        waiting.map(|waiting| waiting.question.clone()).collect()
    }

    /// Answers one, once; the waiting call goes on by itself.
    ///
    /// # Errors
    ///
    /// [`QuestionError::Unknown`] where it was answered already, is over, or never was.
    pub fn answer(&self, id: &str, answer: Answer) -> Result<(), QuestionError> {
        let waiting = self.lock().remove(id).filter(|waiting| Instant::now() < waiting.until);
        let waiting = waiting.ok_or_else(|| QuestionError::Unknown { id: id.to_owned() })?;
        self.changed();
        let ticket = (answer != Answer::Deny).then(|| Ticket::new(waiting.call));
        // A waiter that is gone has no use for it: the ticket is dropped with the message.
        let _ = waiting.answered.send((answer, ticket));
        Ok(())
    }

    /// Denies all that wait; how many there were.
    pub fn deny_all(&self) -> usize {
        let open = std::mem::take(&mut *self.lock());
        let count = open.len();
        self.changed();
        for (_, waiting) in open {
            let _ = waiting.answered.send((Answer::Deny, None));
        }
        count
    }
}

/// Makes the ticket of a call that the policies allowed.
pub(crate) fn allowed(call: PendingCall) -> Ticket {
    Ticket::new(call)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::pending_call;

    const LIMIT: Duration = Duration::from_secs(300);

    fn put(questions: &Questions) -> Asked {
        questions.ask(pending_call("t", r#"{"a":1}"#), false, "default".into(), None, LIMIT).unwrap()
    }

    #[tokio::test]
    async fn s16_a_question_is_answered_once() {
        let questions = Questions::default();
        let mut asked = put(&questions);
        questions.answer(&asked.question.id, Answer::Once).unwrap();
        let error = questions.answer(&asked.question.id, Answer::Once).unwrap_err();
        assert_eq!(error, QuestionError::Unknown { id: asked.question.id.clone() });
        let (answer, ticket) = (&mut asked.answer).await.unwrap();
        assert_eq!((answer, ticket.unwrap().approved().call().arguments.get()), (Answer::Once, r#"{"a":1}"#));
    }

    #[tokio::test(start_paused = true)]
    async fn s16_r47_an_answer_that_comes_after_the_time_is_none() {
        let questions = Questions::default();
        let asked = put(&questions);
        tokio::time::advance(LIMIT).await;
        assert!(questions.open().is_empty());
        assert!(questions.answer(&asked.question.id, Answer::Once).is_err());
    }

    #[tokio::test]
    async fn s22_equal_questions_need_an_answer_each_and_the_queue_is_bounded() {
        let questions = Questions::default();
        let asked: Vec<_> = (0..OPEN_QUESTIONS).map(|_| put(&questions)).collect();
        let error = questions.ask(pending_call("t", "{}"), false, "default".into(), None, LIMIT).unwrap_err();
        assert_eq!(error, QuestionError::TooMany { limit: OPEN_QUESTIONS });
        questions.answer(&asked[0].question.id, Answer::Once).unwrap();
        assert_eq!(questions.open().len(), OPEN_QUESTIONS - 1);
        assert_eq!(questions.deny_all(), OPEN_QUESTIONS - 1);
        assert!(questions.open().is_empty());
    }

    #[tokio::test]
    async fn a_waiter_that_goes_away_withdraws_its_question() {
        let questions = Questions::default();
        let asked = put(&questions);
        let id = asked.question.id.clone();
        drop(asked);
        assert!(questions.answer(&id, Answer::Always).is_err());
    }
}
