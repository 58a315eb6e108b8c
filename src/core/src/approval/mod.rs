//! Whether a call may happen: policies, questions, tickets.

use std::fmt::Debug;

use async_trait::async_trait;

/// One opinion on one call.
#[async_trait]
pub trait ApprovalPolicy: Debug + Send + Sync {
    /// The opinion.
    ///
    /// # Errors
    ///
    /// Counts as a denial.
    async fn judge(&self) -> Result<(), ()>;
}
