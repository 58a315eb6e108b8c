//! Tools as their servers define them, and what a person and a model see of them.

mod diff;
mod entry;
mod export;
mod headers;
mod output;
mod pin;

pub use diff::difference;
pub(crate) use entry::Reading;
pub use entry::{RefusedTool, Tool, ToolList};
pub use export::{ExportShape, ToolDescriptor};
pub use pin::Pin;
