//! The MCP server that clients see: what it speaks is here, what carries it in [`http`] and [`stdio`].

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
