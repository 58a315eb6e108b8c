//! Whether a call may happen: policies give opinions, a person answers questions, a ticket is the
//! right to send one call once.
//!
//! Everything that is not a clear yes is a no: a policy that fails or takes too long, an answer
//! that does not come, a question that nobody can be asked.

mod builtin;
mod call;
mod pipeline;
pub(crate) mod question;
mod ticket;

pub use builtin::{Grants, ServerMode};
pub use call::{Arguments, ArgumentsError, Call, PendingCall};
#[cfg(any(test, feature = "mocks"))]
pub use pipeline::MockApprovalPolicy;
pub use pipeline::{ApprovalPolicy, Decision, Pipeline, PolicyError, Verdict};
#[cfg(any(test, feature = "mocks"))]
pub use question::MockApprover;
pub(crate) use question::allowed;
pub use question::{Answer, Approver, ApproverError, Question, QuestionError, Questions};
pub use ticket::{Ticket, TicketError};
