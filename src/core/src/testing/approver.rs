//! Somebody to ask who answers as the test wrote it down.

use std::{
    collections::VecDeque,
    sync::{Mutex, MutexGuard, PoisonError},
};

use async_trait::async_trait;

use crate::approval::{Answer, Approver, ApproverError, Question};

/// Gives its answers in order; with none left, nobody can be asked.
#[derive(Debug, Default)]
pub struct ScriptedApprover {
    answers: Mutex<VecDeque<Answer>>,
    asked: Mutex<Vec<Question>>,
    waits: bool,
}

impl ScriptedApprover {
    /// These answers, in order.
    #[must_use]
    pub fn new(answers: impl IntoIterator<Item = Answer>) -> Self {
        Self { answers: Mutex::new(answers.into_iter().collect()), asked: Mutex::default(), waits: false }
    }

    /// The same, but once no answer is left the question is left to others: one that is answered by its id.
    #[must_use]
    pub fn and_waits(self) -> Self {
        Self { waits: true, ..self }
    }

    /// One more answer.
    pub fn will_say(&self, answer: Answer) {
        lock(&self.answers).push_back(answer);
    }

    /// The questions so far.
    #[must_use]
    pub fn asked(&self) -> Vec<Question> {
        lock(&self.asked).clone()
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[async_trait]
impl Approver for ScriptedApprover {
    async fn ask(&self, question: &Question) -> Result<Answer, ApproverError> {
        lock(&self.asked).push(question.clone());
        let answer = lock(&self.answers).pop_front();
        match answer {
            Some(answer) => Ok(answer),
            None if self.waits => std::future::pending().await,
            None => Err(ApproverError::Nobody("the script has no more answers".to_owned())),
        }
    }
}
