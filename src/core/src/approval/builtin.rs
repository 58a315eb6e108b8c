//! The policies that every gate has.

use std::sync::Arc;

use async_trait::async_trait;

use super::{ApprovalPolicy, PendingCall, PolicyError, Verdict};
use crate::{registry::PolicyKind, store::Mode};

/// What a person chose for a whole server: ask, allow what claims to be read-only, allow, deny.
#[derive(Debug, Default)]
pub struct ServerMode;

inventory::submit! {
    PolicyKind { name: "server-mode", summary: "what you chose for the whole server", order: 10, build: || Arc::new(ServerMode) }
}

#[async_trait]
impl ApprovalPolicy for ServerMode {
    async fn judge(&self, call: &PendingCall) -> Result<Verdict, PolicyError> {
        Ok(match call.mode() {
            Mode::Ask => Verdict::Abstain,
            Mode::AllowReadOnly if call.tool().claims_read_only() => Verdict::Allow,
            Mode::AllowReadOnly => Verdict::Abstain,
            Mode::Allow => Verdict::Allow,
            Mode::Deny => Verdict::deny("you chose to deny every call of this server"),
        })
    }
}

/// A remembered "always", and an "until this host ends".
#[derive(Debug, Default)]
pub struct Grants;

inventory::submit! {
    PolicyKind { name: "grant", summary: "what you allowed for one tool as it is defined", order: 20, build: || Arc::new(Grants) }
}

#[async_trait]
impl ApprovalPolicy for Grants {
    async fn judge(&self, call: &PendingCall) -> Result<Verdict, PolicyError> {
        Ok(if call.is_granted() { Verdict::Allow } else { Verdict::Abstain })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        store::{Grant, Runtime},
        testing::{pending_call_with, tool},
        tools::Pin,
    };

    const READ: &str = r#"{"name":"t","title":"Read file","inputSchema":{},"annotations":{"readOnlyHint":true}}"#;
    const WRITE: &str = r#"{"name":"t","inputSchema":{}}"#;

    #[tokio::test]
    async fn s19_a_read_only_hint_counts_only_by_the_persons_choice() {
        let table = [
            (Mode::Ask, READ, Verdict::Abstain),
            (Mode::AllowReadOnly, READ, Verdict::Allow),
            (Mode::AllowReadOnly, WRITE, Verdict::Abstain),
            (Mode::Allow, WRITE, Verdict::Allow),
            (Mode::Deny, READ, Verdict::deny("you chose to deny every call of this server")),
        ];
        for (mode, definition, expected) in table {
            let call = pending_call_with(tool(definition), "{}", Runtime { mode, ..Runtime::default() });
            assert_eq!(ServerMode.judge(&call).await.unwrap(), expected, "{mode:?}");
        }
    }

    #[tokio::test]
    async fn s18_a_grant_fits_one_tool_as_defined_and_one_caller() {
        let pin = tool(WRITE).pin();
        let grant = |tool: &str, pin: Pin, caller: Option<&str>| Grant {
            id: "g".into(),
            tool: tool.into(),
            pin,
            caller: caller.map(str::to_owned),
            at: String::new(),
        };
        let judged = |grant: Grant| async move {
            let runtime = Runtime { grants: vec![grant], ..Runtime::default() };
            Grants.judge(&pending_call_with(tool(WRITE), "{}", runtime)).await.unwrap()
        };
        assert_eq!(judged(grant("t", pin, None)).await, Verdict::Allow);
        assert_eq!(judged(grant("t", pin, Some("test"))).await, Verdict::Allow);
        assert_eq!(judged(grant("t", pin, Some("other"))).await, Verdict::Abstain);
        assert_eq!(judged(grant("u", pin, None)).await, Verdict::Abstain);
        assert_eq!(judged(grant("t", tool(READ).pin(), None)).await, Verdict::Abstain);
    }
}
