//! One integration binary, a module per capability.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "helpers of tests fail as tests do")]

mod approval;
mod apps;
#[cfg(unix)]
mod canary;
mod cli;
mod common;
mod connection;
#[cfg(unix)]
mod contract;
mod documents;
mod dropping;
mod endpoint;
mod eras;
mod fuzz;
mod gate;
#[cfg(unix)]
mod network;
#[cfg(target_os = "linux")]
mod processes;
#[cfg(unix)]
mod session;
mod sleep;
#[cfg(target_os = "linux")]
mod soak;
mod supply;
mod tickets;
mod tidy;
