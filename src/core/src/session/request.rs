//! One request: sent once, waited for under an idle and an absolute limit, cancelled by name.

use std::{pin::pin, time::Duration};

use tokio::time::{Instant, sleep_until, timeout};

use super::{
    Session, SessionError, error,
    message::Params,
    peer::{Answer, Pending},
    waiter::Waiter,
};
use crate::{link::LinkError, wire::Outgoing};

/// How long the reason for a broken link may take to be known.
const REASON_TIME: Duration = Duration::from_millis(800);

impl Session {
    /// Sends a request and waits for its result. Progress restarts the idle limit, not the absolute.
    ///
    /// Dropping the future tells the server that nobody waits any more.
    pub(super) async fn request(
        &self,
        method: &'static str,
        params: &Params,
        waiter: &Waiter,
        shape: impl FnOnce(&mut Outgoing),
    ) -> Result<String, SessionError> {
        let Some(mut pending) = self.peer.ask().filter(|_| !self.is_over()) else {
            return Err(self.not_running());
        };
        let mut message = self.peer.compose_for(pending.id(), method, params, waiter);
        shape(&mut message);
        pending.tells(waiter.progress.as_ref());
        let _waits = self.peer.incoming.waiting.enter(waiter);
        pending.sent();
        let begun = Instant::now();
        let asked = self.peer.incoming.asked();
        let absolute = begun + self.options.limits.absolute;
        let mut sending = self.peer.send(message);
        let mut sent = false;
        let mut alarm = pin!(sleep_until(absolute.min(begun + self.options.idle)));
        loop {
            tokio::select! {
                biased;
                answer = pending.answer() => return self.result(answer).await,
                result = &mut sending, if !sent => {
                    sent = true;
                    if let Err(error) = result {
                        // What was answered before the way broke off counts.
                        if let Some(answer) = pending.answer_now() {
                            return self.result(Some(answer)).await;
                        }
                        pending.forget();
                        return Err(self.broken(error).await);
                    }
                }
                () = &mut alarm => alarm.as_mut().reset(self.next_alarm(&pending, begun, asked)?),
            }
        }
    }

    /// When to look again, if a limit has not passed. What a person thought over, since the handler had
    /// thought for `asked`, does not count.
    fn next_alarm(&self, pending: &Pending, begun: Instant, asked: Duration) -> Result<Instant, SessionError> {
        let now = Instant::now();
        let thought = self.peer.incoming.asked().saturating_sub(asked);
        let absolute = begun + self.options.limits.absolute + thought;
        if now >= absolute {
            return Err(SessionError::TimedOut { limit: self.options.limits.absolute, kind: "altogether" });
        }
        let idle = pending.progressed().unwrap_or(begun) + self.options.idle + thought;
        if now >= idle {
            return Err(SessionError::TimedOut { limit: self.options.idle, kind: "without an answer" });
        }
        Ok(absolute.min(idle))
    }

    async fn result(&self, answer: Option<Answer>) -> Result<String, SessionError> {
        match answer {
            Some(Answer::Result(result)) => Ok(result),
            Some(Answer::Error(error)) => Err(error::of_rpc(error)),
            Some(Answer::Unreadable) => Err(SessionError::Unreadable),
            None => Err(self.over().await),
        }
    }

    /// The wire knows that something failed; the keeper may know why.
    async fn broken(&self, error: LinkError) -> SessionError {
        match error {
            LinkError::Closed | LinkError::Broken(_) => match self.over().await {
                // Only this message failed.
                SessionError::Ended(_) if !self.is_over() => SessionError::Link(error),
                over => over,
            },
            error => SessionError::Link(error),
        }
    }

    async fn over(&self) -> SessionError {
        let _ = timeout(REASON_TIME, self.monitor.wait()).await;
        match self.monitor.failure() {
            Some(error) => SessionError::Link(error),
            None => SessionError::Ended(self.monitor.ended()),
        }
    }
}
