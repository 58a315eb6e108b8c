//! Newline-delimited JSON-RPC over any pair of byte streams, bounded.
//!
//! What the MCP specification calls the stdio transport, for pipes, sockets and in-process
//! streams alike. A line over the limit ends the link with a typed reason; a line that is no
//! message (a banner, half a JSON) is counted and skipped, unless an id can be read from it: then
//! the call that waits for it fails at once.

use std::sync::Arc;

use futures::{FutureExt, future::BoxFuture};
use tokio::{
    io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt},
    sync::Mutex,
};

use crate::{
    link::{Failure, Incoming, LinkError, Outgoing, Wire},
    raw::{self, Pending},
};

const CHUNK_BYTES: usize = 64 << 10;
/// Room kept between messages; a larger buffer is given back.
const KEPT_BYTES: usize = 1 << 20;

/// A [`Wire`] of lines.
#[derive(Debug)]
pub struct Lines<R, W> {
    read: R,
    write: Arc<Mutex<Option<W>>>,
    buffer: Vec<u8>,
    /// Where unread text begins.
    start: usize,
    /// How far it was searched for a line end.
    scanned: usize,
    limit: usize,
    noise: u64,
    pending: Pending,
    failure: Failure,
}

impl<R, W> Lines<R, W> {
    /// Lines of at most `limit` bytes (see [`Limits::message_bytes`](crate::Limits::message_bytes)).
    pub fn new(read: R, write: W, limit: usize) -> Self {
        Self {
            read,
            write: Arc::new(Mutex::new(Some(write))),
            buffer: Vec::new(),
            start: 0,
            scanned: 0,
            limit,
            noise: 0,
            pending: Pending::default(),
            failure: Failure::default(),
        }
    }
}

impl<R, W> Lines<R, W>
where
    R: AsyncRead + Send + Unpin + 'static,
    W: AsyncWrite + Send + Unpin + 'static,
{
    /// Cancel-safe: what was read so far stays in the buffer.
    async fn next(&mut self) -> Option<Incoming> {
        loop {
            while let Some(found) = memchr::memchr(b'\n', &self.buffer[self.scanned..]) {
                let end = self.scanned + found;
                if end - self.start > self.limit {
                    self.failure.set(LinkError::TooLarge { limit: self.limit });
                    return None;
                }
                let decoded = if self.start == 0 && end + 1 == self.buffer.len() && end > KEPT_BYTES {
                    let mut line = std::mem::take(&mut self.buffer);
                    line.truncate(end);
                    self.scanned = 0;
                    self.pending.decode_owned(line)
                } else {
                    let line = self.buffer[self.start..end].trim_ascii();
                    self.start = end + 1;
                    self.scanned = self.start;
                    self.pending.decode(line)
                };
                match decoded {
                    Ok(message) => return Some(message),
                    Err(raw::Noise) => {
                        self.noise += 1;
                        tracing::debug!(lines = self.noise, "the server wrote a line that is no message");
                    }
                }
            }
            self.scanned = self.buffer.len();
            if self.scanned - self.start > self.limit {
                self.failure.set(LinkError::TooLarge { limit: self.limit });
                return None;
            }
            self.make_room();
            match self.read.read_buf(&mut self.buffer).await {
                Ok(0) => return None,
                Ok(_) => {}
                Err(error) => {
                    self.failure.set(LinkError::Broken(error.into()));
                    return None;
                }
            }
        }
    }

    fn make_room(&mut self) {
        if self.start > 0 {
            self.buffer.drain(..self.start);
            self.scanned -= self.start;
            self.start = 0;
            if self.buffer.is_empty() && self.buffer.capacity() > KEPT_BYTES {
                self.buffer = Vec::new();
            }
        }
        self.buffer.reserve(CHUNK_BYTES);
    }
}

impl<R, W> Wire for Lines<R, W>
where
    R: AsyncRead + Send + Unpin + 'static,
    W: AsyncWrite + Send + Unpin + 'static,
{
    fn send(&mut self, message: Outgoing) -> BoxFuture<'static, Result<(), LinkError>> {
        self.pending.note(&message);
        let mut line = Vec::with_capacity(256);
        let encoded = raw::encode(&message, &mut line);
        line.push(b'\n');
        let write = self.write.clone();
        async move {
            encoded.map_err(|error| LinkError::Broken(error.into()))?;
            let mut write = write.lock().await;
            let write = write.as_mut().ok_or(LinkError::Closed)?;
            write.write_all(&line).await.map_err(|error| LinkError::Broken(error.into()))?;
            write.flush().await.map_err(|error| LinkError::Broken(error.into()))
        }
        .boxed()
    }

    fn receive(&mut self) -> BoxFuture<'_, Option<Incoming>> {
        self.next().boxed()
    }

    fn close(&mut self) -> BoxFuture<'_, Result<(), LinkError>> {
        async move {
            // A send that is stuck keeps the lock; the keeper ends what does not read.
            if let Ok(mut write) = self.write.try_lock() {
                write.take();
            }
            Ok(())
        }
        .boxed()
    }

    fn failure(&self) -> Failure {
        self.failure.clone()
    }

    fn reads_arguments(&self) -> bool {
        false
    }
}
