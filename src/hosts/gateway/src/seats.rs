//! The places for connections. Where all are taken, the one that has been idle longest is given up for the next: nobody
//! keeps others out by doing nothing.

use std::{
    collections::BTreeMap,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicUsize, Ordering},
    },
};

use tokio::{sync::watch, time::Instant};

use crate::listen::RESERVE;

/// All places.
#[derive(Debug, Clone)]
pub(crate) struct Seats(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    places: usize,
    taken: Mutex<Taken>,
}

#[derive(Debug, Default)]
struct Taken {
    next: u64,
    seats: BTreeMap<u64, Arc<State>>,
}

#[derive(Debug)]
struct State {
    /// Requests under way.
    busy: AtomicUsize,
    /// Since when there is none.
    idle: Mutex<Instant>,
    given_up: watch::Sender<bool>,
    /// Whether it is one of the few for the management API.
    reserved: bool,
}

impl Seats {
    pub(crate) fn new(places: usize) -> Self {
        Self(Arc::new(Shared { places, taken: Mutex::default() }))
    }

    /// A place for one more connection; nothing where all are busy.
    pub(crate) fn take(&self) -> Option<Seat> {
        let mut taken = self.0.taken();
        if taken.seats.len() >= self.0.places {
            let idle = taken.seats.iter().filter(|(_, state)| state.busy.load(Ordering::Acquire) == 0);
            let longest = idle.min_by_key(|(_, state)| *state.idle.lock().unwrap_or_else(PoisonError::into_inner));
            match longest.map(|(number, _)| *number) {
                Some(number) => {
                    if let Some(state) = taken.seats.remove(&number) {
                        state.given_up.send_replace(true);
                    }
                }
                None if taken.seats.len() < self.0.places + RESERVE => {}
                None => return None,
            }
        }
        // Beyond the places it is one of the reserve, also in the place of another of these.
        let reserved = taken.seats.len() >= self.0.places;
        let number = taken.next;
        taken.next += 1;
        let state = Arc::new(State {
            busy: AtomicUsize::new(0),
            idle: Mutex::new(Instant::now()),
            given_up: watch::Sender::new(false),
            reserved,
        });
        taken.seats.insert(number, state.clone());
        drop(taken);
        Some(Seat { seats: self.0.clone(), number, state })
    }
}

impl Shared {
    fn taken(&self) -> MutexGuard<'_, Taken> {
        self.taken.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The place of one connection, until it is dropped.
#[derive(Debug)]
pub(crate) struct Seat {
    seats: Arc<Shared>,
    number: u64,
    state: Arc<State>,
}

impl Seat {
    /// Completes when it is given up for another.
    pub(crate) async fn given_up(&self) {
        let mut given_up = self.state.given_up.subscribe();
        let _ = given_up.wait_for(|given_up| *given_up).await;
    }

    /// Whether only the management API is to be served.
    pub(crate) fn is_reserved(&self) -> bool {
        self.state.reserved
    }

    /// A request is under way as long as this is there.
    pub(crate) fn busy(&self) -> Busy {
        self.state.busy.fetch_add(1, Ordering::AcqRel);
        Busy(self.state.clone())
    }
}

impl Drop for Seat {
    fn drop(&mut self) {
        self.seats.taken().seats.remove(&self.number);
    }
}

/// A request under way.
#[derive(Debug)]
pub(crate) struct Busy(Arc<State>);

impl Drop for Busy {
    fn drop(&mut self) {
        *self.0.idle.lock().unwrap_or_else(PoisonError::into_inner) = Instant::now();
        self.0.busy.fetch_sub(1, Ordering::AcqRel);
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn s55_the_one_that_has_been_idle_longest_makes_room_and_no_busy_one() {
        let seats = Seats::new(2);
        let first = seats.take().unwrap();
        tokio::time::advance(Duration::from_secs(1)).await;
        let second = seats.take().unwrap();
        let under_way = first.busy();
        let third = seats.take().unwrap();
        tokio::time::timeout(Duration::from_secs(1), second.given_up()).await.unwrap();
        assert!(tokio::time::timeout(Duration::from_secs(1), first.given_up()).await.is_err());
        let _more = third.busy();
        // All are busy: a few more come in, for those who are to answer.
        let idle = seats.take().unwrap();
        let mut reserved = Vec::new();
        for _ in 0..RESERVE {
            let seat = seats.take().unwrap();
            assert!(seat.is_reserved());
            reserved.push((seat.busy(), seat));
        }
        tokio::time::timeout(Duration::from_secs(1), idle.given_up()).await.unwrap();
        assert!(seats.take().is_none());
        drop(under_way);
        assert!(!first.is_reserved() && seats.take().is_some());
    }
}
