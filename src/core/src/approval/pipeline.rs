//! Policies in order; the strictest verdict wins.

use std::{fmt::Debug, sync::Arc};

use async_trait::async_trait;
use tokio::time::timeout;

use super::PendingCall;
use crate::{limits::POLICY_TIME, registry::Registry};

/// One policy's opinion, ordered by strictness: the greatest wins.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Verdict {
    /// No opinion. Where nobody has one, a person is asked.
    Abstain,
    /// May happen.
    Allow,
    /// A person must be asked, even over a grant.
    Ask,
    /// Must not happen, and why.
    Deny(String),
}

impl Verdict {
    /// A denial.
    pub fn deny(reason: impl Into<String>) -> Self {
        Self::Deny(reason.into())
    }

    /// As the audit trail writes it.
    #[must_use]
    pub fn name(&self) -> &'static str {
        match self {
            Self::Abstain => "abstain",
            Self::Allow => "allow",
            Self::Ask => "ask",
            Self::Deny(_) => "deny",
        }
    }
}

/// Why a policy has no verdict. Counts as a denial.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct PolicyError(pub String);

/// One opinion on one call.
///
/// # Behaviour
///
/// - An error, and an opinion that takes longer than [`POLICY_TIME`], count as a denial.
/// - It may be dropped at any await.
#[cfg_attr(any(test, feature = "mocks"), mockall::automock)]
#[async_trait]
pub trait ApprovalPolicy: Debug + Send + Sync {
    /// The opinion.
    ///
    /// # Errors
    ///
    /// [`PolicyError`], which denies the call.
    async fn judge(&self, call: &PendingCall) -> Result<Verdict, PolicyError>;
}

/// What the policies came to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Decision {
    /// The strictest verdict; never [`Verdict::Abstain`].
    pub verdict: Verdict,
    /// The policy it came from; `default` where all abstained.
    pub rule: String,
}

/// The policies of one gate.
#[derive(Debug, Clone, Default)]
pub struct Pipeline {
    policies: Vec<(String, Arc<dyn ApprovalPolicy>)>,
}

impl Pipeline {
    /// The policies of `registry`, in its order.
    #[must_use]
    pub fn new(registry: &Registry) -> Self {
        Self { policies: registry.policies().map(|(name, policy)| (name.to_owned(), policy.clone())).collect() }
    }

    /// Asks every policy until one denies.
    pub async fn judge(&self, call: &PendingCall) -> Decision {
        let mut strictest = Decision { verdict: Verdict::Abstain, rule: "default".to_owned() };
        for (name, policy) in &self.policies {
            let verdict = match timeout(POLICY_TIME, policy.judge(call)).await {
                Ok(Ok(verdict)) => verdict,
                Ok(Err(error)) => Verdict::deny(format!("the policy `{name}` failed: {error}")),
                Err(_) => Verdict::deny(format!("the policy `{name}` took too long")),
            };
            if verdict > strictest.verdict {
                strictest = Decision { verdict, rule: name.clone() };
            }
            if matches!(strictest.verdict, Verdict::Deny(_)) {
                return strictest;
            }
        }
        if strictest.verdict == Verdict::Abstain {
            strictest.verdict = Verdict::Ask;
        }
        strictest
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::testing::pending_call;

    fn says(verdict: Verdict) -> Arc<dyn ApprovalPolicy> {
        let mut policy = MockApprovalPolicy::new();
        policy.expect_judge().returning(move |_| Ok(verdict.clone()));
        Arc::new(policy)
    }

    fn pipeline(policies: Vec<Arc<dyn ApprovalPolicy>>) -> Pipeline {
        Pipeline { policies: policies.into_iter().enumerate().map(|(at, policy)| (format!("p{at}"), policy)).collect() }
    }

    #[derive(Debug)]
    struct Hangs;

    #[async_trait]
    impl ApprovalPolicy for Hangs {
        async fn judge(&self, _: &PendingCall) -> Result<Verdict, PolicyError> {
            std::future::pending().await
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_policy_that_fails_or_hangs_denies() {
        let mut broken = MockApprovalPolicy::new();
        broken.expect_judge().returning(|_| Err(PolicyError("disk full".into())));
        for (policy, reason) in [
            (Arc::new(broken) as Arc<dyn ApprovalPolicy>, "the policy `p1` failed: disk full"),
            (Arc::new(Hangs), "the policy `p1` took too long"),
        ] {
            let decision = pipeline(vec![says(Verdict::Allow), policy]).judge(&pending_call("t", "{}")).await;
            assert_eq!(decision, Decision { verdict: Verdict::deny(reason), rule: "p1".into() });
        }
    }

    fn verdict() -> impl Strategy<Value = Verdict> {
        prop_oneof![Just(Verdict::Abstain), Just(Verdict::Allow), Just(Verdict::Ask), Just(Verdict::deny("no"))]
    }

    proptest! {
        #[test]
        fn the_strictest_verdict_wins_in_any_order(verdicts in prop::collection::vec(verdict(), 0..6)) {
            let expected = match verdicts.iter().max() {
                None | Some(Verdict::Abstain) => Verdict::Ask,
                Some(strictest) => strictest.clone(),
            };
            let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
            let decision = runtime.block_on(pipeline(verdicts.into_iter().map(says).collect()).judge(&pending_call("t", "{}")));
            prop_assert_eq!(decision.verdict, expected);
        }
    }
}
