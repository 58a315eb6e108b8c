//! How often servers may ask: for hosts that hand on what they want to know.

use std::{
    collections::HashMap,
    sync::{Mutex, PoisonError},
    time::Duration,
};

use tokio::time::Instant;

use super::Refusal;

/// Bounds how often each server asks.
#[derive(Debug)]
pub struct Pace {
    most: usize,
    window: Duration,
    asked: Mutex<HashMap<String, Vec<Instant>>>,
}

impl Pace {
    /// At most `most` requests of one server within any `window`.
    #[must_use]
    pub fn new(most: usize, window: Duration) -> Self {
        Self { most, window, asked: Mutex::default() }
    }

    /// Notes that `server` asks once more.
    ///
    /// # Errors
    ///
    /// [`Refusal::Denied`] where it asked too much of late; that request does not count.
    pub fn ask(&self, server: &str) -> Result<(), Refusal> {
        let mut asked = self.asked.lock().unwrap_or_else(PoisonError::into_inner);
        let asked = asked.entry(server.to_owned()).or_default();
        asked.retain(|at| at.elapsed() < self.window);
        if asked.len() >= self.most {
            let (most, seconds) = (self.most, self.window.as_secs());
            return Err(Refusal::Denied(format!(
                "the server asked {most} times within {seconds} s; later it may again"
            )));
        }
        asked.push(Instant::now());
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn s30_a_server_that_asks_too_much_is_refused_for_a_while_and_others_are_not() {
        let pace = Pace::new(3, Duration::from_secs(60));
        assert!((0..3).all(|_| pace.ask("one").is_ok()));
        assert!(pace.ask("one").is_err() && pace.ask("other").is_ok());
        tokio::time::advance(Duration::from_secs(61)).await;
        assert!(pace.ask("one").is_ok());
    }
}
