//! Tools as their servers define them, and what a person and a model see of them.

mod pin;

pub use pin::Pin;
