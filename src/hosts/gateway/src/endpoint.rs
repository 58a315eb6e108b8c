//! One MCP endpoint: what it shows, how it is called, and how its calls are decided.

use std::{hash::RandomState, sync::Arc};

use portcullis::Gate;

use crate::{
    changes::Changes,
    mcp::suspended::Suspended,
    offer::{Offer, Shown},
};

/// How a host wants its endpoints.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct EndpointOptions {
    /// Whether a question is also put to the client that calls, as a form. Off by default: who answers there
    /// may be a program.
    pub ask_in_client: bool,
}

/// One endpoint.
#[derive(Debug)]
pub(crate) struct Endpoint {
    /// How it is called in questions and in the trail.
    pub(crate) label: String,
    pub(crate) offer: Offer,
    pub(crate) options: EndpointOptions,
    pub(crate) suspended: Suspended,
    pub(crate) changes: Arc<Changes>,
    /// Of the names of clients, to tell them apart.
    pub(crate) hasher: RandomState,
}

impl Endpoint {
    /// `entry` is how clients call it in their configuration.
    pub(crate) fn new(gate: &Gate, shown: Shown, entry: &str, label: &str, options: EndpointOptions) -> Arc<Self> {
        Arc::new(Self {
            label: label.to_owned(),
            offer: Offer::new(gate.clone(), shown, entry),
            options,
            suspended: Suspended::default(),
            changes: Arc::default(),
            hasher: RandomState::new(),
        })
    }

    pub(crate) fn gate(&self) -> &Gate {
        self.offer.gate()
    }
}
