//! Who waits for a request: what it is told on the way, and who answers what the server asks meanwhile.

use std::{
    fmt::Debug,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use serde_json::value::RawValue;
use tokio::sync::mpsc;

use super::client::{ClientHandler, Refusal};

/// What goes to whoever waits for a request, besides its result.
///
/// Nobody in particular by default: progress restarts limits and is dropped, and the handler of the
/// host answers what the server asks.
#[derive(Debug, Clone, Default)]
pub struct Waiter {
    /// Gets the parameters of each `notifications/progress`, as the server wrote them; while it is full
    /// they are dropped.
    pub progress: Option<mpsc::Sender<Box<RawValue>>>,
    /// Answers what the server asks while the request is under way, in place of the host's.
    pub handler: Option<Arc<dyn ClientHandler>>,
    /// Tells clients apart: equal for all requests of one.
    pub client: u64,
}

/// The handlers of requests that are under way on one connection.
#[derive(Debug, Default)]
pub(super) struct Handlers(Arc<Mutex<Waiting>>);

/// Each with its client.
type Waiting = Vec<(u64, Arc<dyn ClientHandler>)>;

impl Handlers {
    /// Notes that whatever the server asks from now on may be for `waiter`, until the guard is dropped.
    pub(super) fn enter(&self, waiter: &Waiter) -> Option<Entered> {
        let handler = waiter.handler.clone()?;
        locked(&self.0).push((waiter.client, handler.clone()));
        Some(Entered { handlers: self.0.clone(), client: waiter.client, handler })
    }

    /// Who answers something that the server asks by itself, which names no request: the client that waits, if
    /// only one does.
    ///
    /// # Errors
    ///
    /// [`Refusal::Denied`] where several wait: none of them is known to be meant.
    pub(super) fn current(&self) -> Result<Option<Arc<dyn ClientHandler>>, Refusal> {
        let handlers = locked(&self.0);
        let Some((client, handler)) = handlers.last() else { return Ok(None) };
        if handlers.iter().all(|(other, _)| other == client) {
            // The newest that can be asked: an older one that waits for an answer already may have been given up.
            let mut listening =
                handlers.iter().rev().map(|(_, handler)| handler).filter(|handler| handler.is_listening());
            let newest = listening.next().unwrap_or(handler);
            if newest.answers_for_all() || listening.next().is_none() {
                return Ok(Some(newest.clone()));
            }
        }
        Err(Refusal::Denied("several requests wait for this server, and it names none of them".to_owned()))
    }
}

fn locked(handlers: &Mutex<Waiting>) -> MutexGuard<'_, Waiting> {
    handlers.lock().unwrap_or_else(PoisonError::into_inner)
}

/// As long as it lives, the handler counts as waiting.
#[derive(Debug)]
pub(super) struct Entered {
    handlers: Arc<Mutex<Waiting>>,
    client: u64,
    handler: Arc<dyn ClientHandler>,
}

impl Drop for Entered {
    fn drop(&mut self) {
        let mut handlers = locked(&self.handlers);
        if let Some(at) =
            handlers.iter().position(|(client, other)| *client == self.client && Arc::ptr_eq(other, &self.handler))
        {
            handlers.remove(at);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::session::Refusing;

    #[test]
    fn a_request_that_names_nobody_is_for_the_only_client_that_waits() {
        let waiter = |client| Waiter { client, handler: Some(Arc::new(Refusing)), ..Waiter::default() };
        let handlers = Handlers::default();
        assert!(handlers.current().unwrap().is_none());
        let one = [handlers.enter(&waiter(1)), handlers.enter(&waiter(1))];
        assert!(handlers.current().unwrap().is_some());
        let other = handlers.enter(&waiter(2));
        assert!(handlers.current().is_err());
        drop(one);
        assert!(handlers.current().unwrap().is_some());
        drop(other);
        assert!(handlers.current().unwrap().is_none() && handlers.enter(&Waiter::default()).is_none());
    }
}
