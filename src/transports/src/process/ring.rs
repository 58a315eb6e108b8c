//! The last of what a server wrote to its standard error.

use std::{
    collections::VecDeque,
    sync::{Arc, Mutex, PoisonError},
};

use portcullis::{display::escape_bytes, limits::STDERR_BYTES};
use tokio::io::{AsyncRead, AsyncReadExt};

const CHUNK_BYTES: usize = 8 << 10;

/// Keeps the last [`STDERR_BYTES`], whatever is written and however much.
#[derive(Clone, Default)]
pub(crate) struct Ring(Arc<Mutex<VecDeque<u8>>>);

impl std::fmt::Debug for Ring {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Ring").field(&self.len()).finish()
    }
}

impl Ring {
    /// Reads until nobody can write any more: a pipe that is not read blocks the server.
    pub(crate) async fn drain(self, mut from: impl AsyncRead + Unpin) {
        let mut chunk = vec![0; CHUNK_BYTES];
        while let Ok(length @ 1..) = from.read(&mut chunk).await {
            self.push(&chunk[..length]);
        }
    }

    /// What is kept, escaped for display.
    pub(crate) fn tail(&self) -> String {
        escape_bytes(self.0.lock().unwrap_or_else(PoisonError::into_inner).make_contiguous())
    }

    pub(crate) fn len(&self) -> usize {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).len()
    }

    fn push(&self, bytes: &[u8]) {
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let bytes = &bytes[bytes.len().saturating_sub(STDERR_BYTES)..];
        let over = (kept.len() + bytes.len()).saturating_sub(STDERR_BYTES);
        kept.drain(..over);
        kept.extend(bytes);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn r15_exactly_the_last_bytes_are_kept() {
        let ring = Ring::default();
        ring.push(&[b'a'; STDERR_BYTES - 1]);
        ring.push(b"b");
        assert_eq!((ring.len(), ring.tail().starts_with('a')), (STDERR_BYTES, true));
        ring.push(b"c");
        assert_eq!((ring.len(), ring.tail().ends_with("abc")), (STDERR_BYTES, true));
        ring.push(&[b'd'; 3 * STDERR_BYTES]);
        assert_eq!((ring.len(), ring.tail().starts_with('d')), (STDERR_BYTES, true));
    }

    #[test]
    fn s12_escape_sequences_do_not_pass() {
        let ring = Ring::default();
        ring.push(b"\x1b]52;c;x\x07 \xff\r\nok");
        let tail = ring.tail();
        assert!(tail.ends_with("\nok") && !tail.contains(['\x1b', '\x07', '\r']), "{tail:?}");
    }
}
