//! The transports that every host has: `stdio`, `streamable-http`, and `sse`, which is refused.
//!
//! Each registers itself; a host names this crate (`use portcullis_transports as _;`) and compares
//! [`NAMES`] at start, since a crate that nothing names is dropped by the linker without a word.
//! A host that starts local programs also calls [`process::run_watcher_if_asked`] first thing in its
//! `main`, so that nothing of them is left even when it is killed.

mod http;
pub mod process;
pub mod sse;
pub mod stdio;
pub mod streamable_http;

/// The transports of this crate.
pub const NAMES: &[&str] = &[sse::KIND.name, stdio::KIND.name, streamable_http::KIND.name];
