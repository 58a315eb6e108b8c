//! Every bound the gate keeps, by name, with its default.
//!
//! Nothing in the gate waits or grows without one of these. A test stands at each bound and one
//! beyond it.

use std::time::Duration;

/// Longest document that is read, in bytes.
pub const DOCUMENT_BYTES: usize = 4 << 20;
/// Deepest nesting of a document.
pub const DOCUMENT_DEPTH: usize = 64;
/// Deepest nesting of a tool definition or of a call's arguments.
pub const MESSAGE_DEPTH: usize = 128;
/// Longest answer a person may give to be read from a stream, and longest text kept of a server's
/// standard error, in bytes.
pub const STDERR_BYTES: usize = 64 << 10;
/// Most questions that wait for a person at one time.
pub const OPEN_QUESTIONS: usize = 256;
/// Longest id of a server's own request that is answered, in bytes.
pub const REQUEST_ID_BYTES: usize = 256;
/// Most messages that nobody waits for (answers to a server's own requests, cancellations) on their way
/// to one server at one time; more are left out.
pub const SENT_BEHIND: usize = 64;
/// Most things that a server told and that a slow listener has not heard yet; older ones are lost to it.
pub const SESSION_EVENTS: usize = 256;
/// Most rounds of questions that one call may take (`input_required`).
pub const INPUT_ROUNDS: usize = 10;
/// How long one of them may take to be written.
pub const SEND_BEHIND_TIME: Duration = Duration::from_secs(1);
/// How long a ticket is good for once it was given.
pub const TICKET_LIFETIME: Duration = Duration::from_secs(30);
/// How long one policy may think.
pub const POLICY_TIME: Duration = Duration::from_secs(2);

/// Longest schema of a tool, in bytes; a tool with a longer one is not offered.
pub const SCHEMA_BYTES: usize = 256 << 10;
/// Most different places that one schema of a tool may refer to.
pub const SCHEMA_REFERENCES: usize = 128;
/// Steps back that a pattern of a schema may take in one text.
pub const PATTERN_STEPS: usize = 100_000;
/// How long reading a tool's output schema may take, and again checking one result by it.
pub const OUTPUT_CHECK_TIME: Duration = Duration::from_millis(500);

/// Bounds that a person may want to set.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Limits {
    /// From opening a link to the end of the first list of tools. `startupTimeoutMs` of a
    /// definition wins over it.
    pub start: Duration,
    /// A call without an answer and without progress. `timeoutMs` of a definition wins over it.
    pub idle: Duration,
    /// A call altogether, progress or not.
    pub absolute: Duration,
    /// A question to a person.
    pub question: Duration,
    /// Between the end of a server's input and the polite signal, and again until the hard one.
    pub stop_grace: Duration,
    /// One message from a server, in bytes.
    pub message_bytes: usize,
    /// Pages of one list.
    pub pages: usize,
    /// Items of one list.
    pub items: usize,
    /// Servers that are being started at one time; more wait their turn.
    pub parallel_starts: usize,
    /// Whether an enabled server that does not run is started by the first call.
    pub start_on_use: bool,
    /// How long a server runs of which nobody wants anything; until the host ends where there is none.
    pub idle_stop: Option<Duration>,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            start: Duration::from_secs(30),
            idle: Duration::from_secs(60),
            absolute: Duration::from_secs(600),
            question: Duration::from_secs(300),
            stop_grace: Duration::from_secs(2),
            message_bytes: 16 << 20,
            pages: 100,
            items: 10_000,
            parallel_starts: 16,
            start_on_use: true,
            idle_stop: None,
        }
    }
}
