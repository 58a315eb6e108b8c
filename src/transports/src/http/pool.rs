//! The client of one connection, with the ways to its server that are kept for the next request.
//!
//! A way can be dead without anybody being told, and where one is, those beside it mostly are too.

use std::{
    fmt,
    sync::{Mutex, PoisonError},
};

use reqwest::Client;

type Build = Box<dyn Fn() -> reqwest::Result<Client> + Send + Sync>;

/// A client that can be had anew.
pub(super) struct Pool {
    build: Build,
    client: Mutex<Client>,
}

impl fmt::Debug for Pool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Pool").finish_non_exhaustive()
    }
}

impl Pool {
    pub(super) fn new(build: impl Fn() -> reqwest::Result<Client> + Send + Sync + 'static) -> reqwest::Result<Self> {
        Ok(Self { client: Mutex::new(build()?), build: Box::new(build) })
    }

    pub(super) fn client(&self) -> Client {
        self.client.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// The next requests take new ways; those under way keep theirs.
    fn renew(&self) {
        if let Ok(client) = (self.build)() {
            *self.client.lock().unwrap_or_else(PoisonError::into_inner) = client;
        }
    }

    /// Watches over a request: dropped before it [`ended`](Unanswered::ended), nothing kept is used again.
    pub(super) fn watch(&self) -> Unanswered<'_> {
        Unanswered(Some(self))
    }
}

/// A request without an answer so far.
#[derive(Debug)]
pub(super) struct Unanswered<'a>(Option<&'a Pool>);

impl Unanswered<'_> {
    /// It has one, or is known to get none.
    pub(super) fn ended(mut self) {
        self.0 = None;
    }
}

impl Drop for Unanswered<'_> {
    fn drop(&mut self) {
        if let Some(pool) = self.0 {
            pool.renew();
        }
    }
}
