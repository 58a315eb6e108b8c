//! What authors of transports, policies and hosts test with: fakes and contract suites.
//!
//! Behind the feature `testing`; never part of a host.

use rmcp::{RoleClient, transport::Transport};

use crate::{
    link::{Link, LinkError},
    trust::{Consent, TrustView},
};

/// A consent as if a person had given it.
pub fn consent_to(view: &TrustView) -> Consent {
    Consent::to(view)
}

/// The wire of a link for rmcp's own client, without a session around it.
///
/// The keeper goes with it: whatever carries the link is not watched.
pub fn into_rmcp(link: Link) -> impl Transport<RoleClient, Error = LinkError> + 'static {
    link.into_parts().0
}
