//! The endpoint: one MCP server for every client, every call through one gate, and a management API.
//!
//! A host makes a [`Gateway`] of its gate and mounts [`Gateway::router`], or has [`Listeners`] serve it.
//! Nothing is decided here: names are translated, text is handed on, and the gate is asked.

mod changes;
mod endpoint;
mod guard;
mod listen;
pub mod manage;
mod mcp;
mod offer;
mod own;
mod owner;
mod pipe;
mod routes;
mod seats;

pub use endpoint::EndpointOptions;
pub use guard::Guard;
pub use listen::{ListenError, Listeners};
pub use routes::{Gateway, GatewayParts, Tokens};
