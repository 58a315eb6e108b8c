//! What authors of transports, policies and hosts test with: fakes and contract suites.
//!
//! Behind the feature `testing`; never part of a host.

use crate::trust::{Consent, TrustView};

/// A consent as if a person had given it.
pub fn consent_to(view: &TrustView) -> Consent {
    Consent::to(view)
}
