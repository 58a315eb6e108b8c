//! Who wants something of a server, beyond a name: what it is told on the way, and who is asked for it.

use std::sync::Arc;

use crate::{approval::Approver, session::Waiter};

/// What goes with a call besides what it says: the caller's side of it.
///
/// The default is that of a host that calls for itself.
#[derive(Debug, Clone, Default)]
pub struct CallContext {
    /// What the caller says of itself, such as its version: shown with the question, decides nothing.
    pub client: Option<String>,
    /// Who is told of progress and answers what the server asks meanwhile.
    pub waiter: Waiter,
    /// Who is asked beside the host's approver; whoever answers first has answered. An error leaves the
    /// question to the others.
    pub approver: Option<Arc<dyn Approver>>,
}
