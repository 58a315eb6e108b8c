//! The MCP server that clients see: what it speaks is here, what carries it in [`http`] and [`stdio`].

use base64::{Engine as _, prelude::BASE64_URL_SAFE_NO_PAD};

use self::message::RpcError;

pub(crate) mod asking;
pub(crate) mod calls;
pub(crate) mod client;
pub(crate) mod dispatch;
pub(crate) mod headers;
pub(crate) mod http;
pub(crate) mod listening;
pub(crate) mod message;
pub(crate) mod stdio;
pub(crate) mod streams;
pub(crate) mod subscriptions;
pub(crate) mod suspended;
pub(crate) mod tasks;

/// A name that nobody can guess, of 24 random bytes.
///
/// # Errors
///
/// What to answer where the system gives no random numbers.
fn unguessable() -> Result<String, RpcError> {
    let mut bytes = [0; 24];
    getrandom::fill(&mut bytes)
        .map_err(|_| RpcError::new(RpcError::INTERNAL, "the operating system gave no random numbers"))?;
    Ok(BASE64_URL_SAFE_NO_PAD.encode(bytes))
}

/// The newest revision, without handshake or session (SEP-2575).
pub(crate) const STATELESS: &str = "2026-07-28";
/// The newest revision that begins with `initialize`.
pub(crate) const WITH_HANDSHAKE: &str = "2025-11-25";
/// Revisions that begin with `initialize`, newest first.
pub(crate) const HANDSHAKES: &[&str] = &[WITH_HANDSHAKE, "2025-06-18", "2025-03-26", "2024-11-05"];

/// All that are spoken, newest first.
pub(crate) fn revisions() -> Vec<&'static str> {
    std::iter::once(STATELESS).chain(HANDSHAKES.iter().copied()).collect()
}
