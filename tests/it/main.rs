//! One integration binary, a module per capability.

mod documents;
