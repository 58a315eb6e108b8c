//! One MCP endpoint: what it shows, how it is called, and how its calls are decided.

use std::{
    hash::RandomState,
    sync::{Arc, Weak},
    time::Duration,
};

use portcullis::{Gate, GateError, session::Pace};

use crate::{
    changes::Changes,
    mcp::{suspended::Suspended, tasks::Tasks},
    offer::{Offer, Shown},
    own::{self, OwnTool},
    routes::{Gateway, Inner},
};

/// How a host wants its endpoints.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct EndpointOptions {
    /// Whether a question is also put to the client that calls, as a form. Off by default: who answers there
    /// may be a program.
    pub ask_in_client: bool,
}

/// How often one server may ask clients of one endpoint, within [`ASKED_WITHIN`].
const ASKED: usize = 60;
const ASKED_WITHIN: Duration = Duration::from_secs(60);

/// What an endpoint is for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Of {
    /// All enabled servers, and the projects of every group.
    All,
    /// The servers and projects of a group, whatever is in it by now.
    Group {
        /// The group's id.
        id: String,
        /// What the token is known by that opened it; none where the host did.
        token: Option<String>,
    },
    /// One server under its own names.
    Server(String),
}

impl Of {
    /// Which servers it shows.
    fn shown(&self) -> Shown {
        match self {
            Self::All => Shown::All,
            Self::Group { id, .. } => Shown::Group(id.clone()),
            Self::Server(name) => Shown::One(name.clone()),
        }
    }

    /// How clients call it in their configuration.
    fn entry(&self) -> String {
        match self {
            Self::Group { id, .. } => format!("portcullis-{id}"),
            Self::All | Self::Server(_) => "portcullis".to_owned(),
        }
    }
}

/// One endpoint.
#[derive(Debug)]
pub(crate) struct Endpoint {
    gateway: Weak<Inner>,
    pub(crate) of: Of,
    /// How it is called in questions and in the trail.
    pub(crate) label: String,
    pub(crate) offer: Offer,
    pub(crate) options: EndpointOptions,
    pub(crate) suspended: Suspended,
    /// Calls that go on as tasks.
    pub(crate) tasks: Tasks,
    /// How often servers may ask its clients.
    pub(crate) pace: Pace,
    pub(crate) changes: Arc<Changes>,
    /// Of the names of clients, to tell them apart.
    pub(crate) hasher: RandomState,
}

impl Endpoint {
    pub(crate) fn new(gateway: &Weak<Inner>, gate: &Gate, options: EndpointOptions, of: Of) -> Arc<Self> {
        let label = match &of {
            Of::Group { id, .. } => format!("group {id}"),
            Of::All | Of::Server(_) => "endpoint".to_owned(),
        };
        Arc::new(Self {
            gateway: gateway.clone(),
            label,
            offer: Offer::new(gate.clone(), of.shown(), &of.entry()),
            of,
            options,
            suspended: Suspended::default(),
            tasks: Tasks::default(),
            pace: Pace::new(ASKED, ASKED_WITHIN),
            changes: Arc::default(),
            hasher: RandomState::new(),
        })
    }

    pub(crate) fn gate(&self) -> &Gate {
        self.offer.gate()
    }

    /// The gateway, as long as there is one.
    pub(crate) fn gateway(&self) -> Option<Gateway> {
        self.gateway.upgrade().map(Gateway)
    }

    /// Whether its group is gone, or was given another token: nobody has a right to it any more.
    pub(crate) async fn is_over(&self) -> bool {
        let Of::Group { id, token } = &self.of else { return false };
        match self.gate().group(id).await {
            Ok(group) => token.is_some() && group.token != *token,
            Err(GateError::UnknownGroup { .. }) => true,
            // A store that cannot be read for a moment ends nothing.
            Err(_) => false,
        }
    }

    /// Nobody has a right to it any more: what goes on for its clients is taken back.
    pub(crate) fn end(&self) {
        self.suspended.end();
        self.tasks.end();
        self.changes.end();
    }

    /// Completes once nobody has a right to it any more; never where that cannot be.
    pub(crate) async fn over(self: &Arc<Self>) {
        match self.of {
            Of::Group { .. } => self.changes.over(self).await,
            Of::All | Of::Server(_) => std::future::pending().await,
        }
    }

    /// Whether it shows one server under its own names.
    pub(crate) fn is_of_one_server(&self) -> bool {
        matches!(self.of, Of::Server(_))
    }

    /// The group that it is for.
    pub(crate) fn group(&self) -> Option<&str> {
        match &self.of {
            Of::Group { id, .. } => Some(id),
            Of::All | Of::Server(_) => None,
        }
    }

    /// The tools of its own that it offers: those of projects, where there is anything that they could be about.
    async fn own_tools(&self) -> Result<Vec<&'static OwnTool>, GateError> {
        let wanted = match &self.of {
            Of::Server(_) => false,
            Of::Group { .. } => true,
            Of::All => {
                let has_roots = self.gateway().is_some_and(|gateway| !gateway.0.projects.roots.is_empty());
                has_roots || !self.gate().projects().await?.is_empty()
            }
        };
        Ok(if wanted { own::tools().filter(|tool| tool.offered(self.group()).is_some()).collect() } else { Vec::new() })
    }

    /// The definitions of all tools that may be called now: those of servers, then its own.
    pub(crate) async fn definitions(&self) -> Result<Vec<String>, GateError> {
        let mut definitions = self.offer.tools().await?.definitions.clone();
        let own = self.own_tools().await?;
        definitions.extend(
            own.iter().filter_map(|tool| tool.offered(self.group())).map(|tool| tool.definition().get().to_owned()),
        );
        Ok(definitions)
    }

    /// The tool of its own that has this name.
    pub(crate) async fn own_tool(&self, name: &str) -> Result<Option<&'static OwnTool>, GateError> {
        match own::tool(name) {
            Some(tool) => Ok(self.own_tools().await?.into_iter().find(|offered| std::ptr::eq(*offered, tool))),
            None => Ok(None),
        }
    }
}
