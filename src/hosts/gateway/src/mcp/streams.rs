//! Streams of answers that a client with a session may take up again (`Last-Event-ID`), after its connection broke off.
//!
//! A broken connection takes nothing back in these revisions, but nobody works for ever for a client that does not come
//! back: after [`KEPT`] its request is taken back.

use std::{
    collections::{HashMap, VecDeque},
    convert::Infallible,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError, Weak,
        atomic::{AtomicU64, AtomicUsize, Ordering},
    },
    time::Duration,
};

use axum::{body::Body, response::Response};
use bytes::Bytes;
use futures::stream;
use tokio::{
    sync::{mpsc, watch},
    task::JoinHandle,
};

use super::{
    client::Client,
    http::{self, Work},
    listening::ALIVE,
};

/// How long a stream is kept to which nobody listens.
const KEPT: Duration = Duration::from_secs(10);
/// Most streams of one client that are kept; more are answered and cannot be taken up again.
const STREAMS: usize = 64;
/// Most messages of one stream that are kept; the oldest make room.
const MESSAGES: usize = 256;
/// When a client whose connection broke off should try again, in milliseconds.
const RETRY_MS: u64 = 500;

/// The streams of one client.
#[derive(Debug, Default)]
pub(crate) struct Streams {
    open: Mutex<HashMap<u64, Arc<Kept>>>,
    next: AtomicU64,
}

/// One answer, told as it comes.
#[derive(Debug)]
struct Kept {
    messages: Mutex<Messages>,
    /// How many messages there were, and one more at the end.
    count: watch::Sender<u64>,
    listeners: AtomicUsize,
    /// How often nobody was left.
    left: AtomicU64,
    task: Mutex<Option<JoinHandle<()>>>,
}

#[derive(Debug, Default)]
struct Messages {
    /// How many made room.
    gone: u64,
    kept: VecDeque<Arc<str>>,
    done: bool,
}

impl Drop for Kept {
    fn drop(&mut self) {
        if let Some(task) = self.task.get_mut().unwrap_or_else(PoisonError::into_inner).take() {
            task.abort();
        }
    }
}

impl Kept {
    fn messages(&self) -> MutexGuard<'_, Messages> {
        self.messages.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn add(&self, message: &str) {
        let mut messages = self.messages();
        messages.kept.push_back(message.into());
        if messages.kept.len() > MESSAGES {
            messages.kept.pop_front();
            messages.gone += 1;
        }
        drop(messages);
        self.count.send_modify(|count| *count += 1);
    }

    /// The message `number`, or the next one that is still kept; with its number.
    fn get(&self, number: u64) -> Next {
        let messages = self.messages();
        let number = number.max(messages.gone);
        match usize::try_from(number - messages.gone).ok().and_then(|at| messages.kept.get(at)) {
            Some(message) => Next::Message(number, message.clone()),
            None if messages.done => Next::End,
            None => Next::Later,
        }
    }
}

struct Ends(Weak<Kept>);

impl Drop for Ends {
    fn drop(&mut self) {
        if let Some(kept) = self.0.upgrade() {
            kept.messages().done = true;
            kept.count.send_modify(|count| *count += 1);
        }
    }
}

enum Next {
    Message(u64, Arc<str>),
    Later,
    End,
}

impl Streams {
    fn open(&self) -> MutexGuard<'_, HashMap<u64, Arc<Kept>>> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether there is room for another one.
    pub(crate) fn has_room(&self) -> bool {
        self.open().len() < STREAMS
    }

    /// Carries on with `work`, and tells what it tells, whether or not somebody listens.
    pub(super) fn begin(
        client: &Arc<Client>,
        first: Option<&str>,
        told: mpsc::Receiver<String>,
        work: Work,
    ) -> Response {
        let streams = &client.streams;
        let id = streams.next.fetch_add(1, Ordering::Relaxed);
        let kept = Arc::new(Kept {
            messages: Mutex::default(),
            count: watch::Sender::new(0),
            listeners: AtomicUsize::new(0),
            left: AtomicU64::new(0),
            task: Mutex::default(),
        });
        if let Some(first) = first {
            kept.add(first);
        }
        let weak = Arc::downgrade(&kept);
        let task = tokio::spawn(async move {
            // However it ends: nobody waits for more.
            let _ends = Ends(weak.clone());
            let mut messages = http::Messages::new(told, work);
            while let Some(message) = messages.next().await {
                let Some(kept) = weak.upgrade() else { return };
                kept.add(&message);
            }
        });
        *kept.task.lock().unwrap_or_else(PoisonError::into_inner) = Some(task);
        streams.open().insert(id, kept.clone());
        listened(client, id, kept, 0)
    }

    /// Takes a stream up again behind the event of this id; nothing where it is not kept.
    pub(crate) fn resume(client: &Arc<Client>, last: &str) -> Option<Response> {
        let (id, number) = last.split_once('-')?;
        let (id, number): (u64, u64) = (id.parse().ok()?, number.parse().ok()?);
        let kept = client.streams.open().get(&id).cloned()?;
        Some(listened(client, id, kept, number))
    }
}

/// Counts who listens to a stream; the last one leaves it behind for a while.
struct Listener {
    client: Arc<Client>,
    id: u64,
    kept: Arc<Kept>,
}

impl Drop for Listener {
    fn drop(&mut self) {
        if self.kept.listeners.fetch_sub(1, Ordering::AcqRel) > 1 {
            return;
        }
        let left = self.kept.left.fetch_add(1, Ordering::AcqRel) + 1;
        let (client, id, kept) = (Arc::downgrade(&self.client), self.id, Arc::downgrade(&self.kept));
        let Ok(runtime) = tokio::runtime::Handle::try_current() else { return };
        runtime.spawn(async move {
            tokio::time::sleep(KEPT).await;
            let (Some(client), Some(kept)) = (client.upgrade(), kept.upgrade()) else { return };
            let mut open = client.streams.open();
            // Whoever came in between begins the time anew.
            if kept.listeners.load(Ordering::Acquire) == 0 && kept.left.load(Ordering::Acquire) == left {
                open.remove(&id);
            }
        });
    }
}

/// The messages from `from` on, each with the id behind which the stream goes on; first of all one id with nothing, so
/// that the stream can be taken up again from its beginning.
fn listened(client: &Arc<Client>, id: u64, kept: Arc<Kept>, from: u64) -> Response {
    kept.listeners.fetch_add(1, Ordering::AcqRel);
    let changed = kept.count.subscribe();
    let listener = Listener { client: client.clone(), id, kept };
    let begins = Some(Bytes::from(format!("id: {id}-{from}\nretry: {RETRY_MS}\ndata: \n\n")));
    let events = stream::unfold((listener, changed, from, begins), |(listener, mut changed, at, begins)| async move {
        if let Some(begins) = begins {
            return Some((Ok::<_, Infallible>(begins), (listener, changed, at, None)));
        }
        loop {
            changed.mark_unchanged();
            match listener.kept.get(at) {
                Next::Message(number, message) => {
                    let event = http::event_of(&message, Some(&format!("{}-{}", listener.id, number + 1)));
                    return Some((Ok(event), (listener, changed, number + 1, None)));
                }
                Next::End => return None,
                Next::Later => {}
            }
            tokio::select! {
                _ = changed.changed() => {}
                () = tokio::time::sleep(ALIVE) => {
                    return Some((Ok(Bytes::from_static(b": \n\n")), (listener, changed, at, None)));
                }
            }
        }
    });
    http::event_stream(Body::from_stream(events))
}
