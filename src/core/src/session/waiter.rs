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
}

/// The handlers of requests that are under way on one connection.
#[derive(Debug, Default)]
pub(super) struct Handlers(Arc<Mutex<Vec<Arc<dyn ClientHandler>>>>);

impl Handlers {
    /// Notes that whatever the server asks from now on may be for `handler`, until the guard is dropped.
    pub(super) fn enter(&self, handler: Option<&Arc<dyn ClientHandler>>) -> Option<Entered> {
        let handler = handler?.clone();
        locked(&self.0).push(handler.clone());
        Some(Entered { handlers: self.0.clone(), handler })
    }

    /// Who answers something that the server asks by itself, which names no request: whoever waits, if only
    /// one does.
    ///
    /// # Errors
    ///
    /// [`Refusal::Denied`] where several wait: none of them is known to be meant.
    pub(super) fn current(&self) -> Result<Option<Arc<dyn ClientHandler>>, Refusal> {
        let handlers = locked(&self.0);
        let Some(first) = handlers.first() else { return Ok(None) };
        if handlers.iter().all(|other| Arc::ptr_eq(first, other)) {
            return Ok(Some(first.clone()));
        }
        Err(Refusal::Denied("several clients wait for this server, and the request names none of them".to_owned()))
    }
}

fn locked(handlers: &Mutex<Vec<Arc<dyn ClientHandler>>>) -> MutexGuard<'_, Vec<Arc<dyn ClientHandler>>> {
    handlers.lock().unwrap_or_else(PoisonError::into_inner)
}

/// As long as it lives, the handler counts as waiting.
#[derive(Debug)]
pub(super) struct Entered {
    handlers: Arc<Mutex<Vec<Arc<dyn ClientHandler>>>>,
    handler: Arc<dyn ClientHandler>,
}

impl Drop for Entered {
    fn drop(&mut self) {
        let mut handlers = locked(&self.handlers);
        if let Some(at) = handlers.iter().position(|other| Arc::ptr_eq(other, &self.handler)) {
            handlers.swap_remove(at);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::session::Refusing;

    #[test]
    fn a_request_that_names_nobody_is_for_the_only_one_who_waits() {
        let handlers = Handlers::default();
        assert!(handlers.current().unwrap().is_none());
        let one: Arc<dyn ClientHandler> = Arc::new(Refusing);
        // `Refusing` has no size: two of them need not differ in their address.
        let other: Arc<dyn ClientHandler> = Arc::new(crate::session::MockClientHandler::new());
        let first = handlers.enter(Some(&one));
        let again = handlers.enter(Some(&one));
        assert!(Arc::ptr_eq(&handlers.current().unwrap().unwrap(), &one));
        let second = handlers.enter(Some(&other));
        assert!(handlers.current().is_err());
        drop((first, again));
        assert!(Arc::ptr_eq(&handlers.current().unwrap().unwrap(), &other));
        drop(second);
        assert!(handlers.current().unwrap().is_none() && handlers.enter(None).is_none());
    }
}
