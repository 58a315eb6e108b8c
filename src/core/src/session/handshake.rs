//! The beginning of a session: which revision both sides speak.

use std::sync::Arc;

use serde::Deserialize;

use super::{
    SessionError,
    client::Offers,
    era::{self, Era, ServerInfo},
    error::of_rpc,
    message::{Params, RpcError},
    peer::{Answer, Peer},
};
use crate::{display, link::LinkError, wire::Outgoing};

/// How a session begins.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Lifecycle {
    /// Asks for the newest revision where asking costs little, and shakes hands otherwise.
    #[default]
    Auto,
    /// Shakes hands (`initialize`, revisions up to 2025-11-25), unless the server refuses just that.
    Handshake,
    /// No handshake (`server/discover`): revision 2026-07-28 and later.
    Stateless,
}

impl Lifecycle {
    /// How a conversation in this revision begins.
    #[must_use]
    pub fn of(revision: &str) -> Self {
        if revision >= era::STATELESS { Self::Stateless } else { Self::Handshake }
    }
}

/// JSON-RPC: no such method.
const METHOD_NOT_FOUND: i64 = -32_601;
/// What a server that knows the newer revisions says where it speaks none of ours.
const UNSUPPORTED_REVISION: i64 = -32_022;
/// What only a server that knows the newer revisions says: it is not tried with a handshake.
const MODERN_REFUSALS: &[i64] = &[-32_021, -32_020];

/// Agrees upon a revision.
pub(super) async fn begin(peer: &Arc<Peer>, lifecycle: Lifecycle, offers: Offers) -> Result<(), SessionError> {
    let asks = match lifecycle {
        Lifecycle::Auto => peer.traits().probes,
        Lifecycle::Handshake => false,
        Lifecycle::Stateless => true,
    };
    if asks {
        match discover(peer, offers).await? {
            Ok(()) => return Ok(()),
            Err(error) if lifecycle == Lifecycle::Stateless => return Err(error),
            Err(_) => {}
        }
    }
    match initialize(peer, offers).await {
        // A server that knows the newer revisions alone.
        Err(SessionError::Rpc { code: METHOD_NOT_FOUND | UNSUPPORTED_REVISION, .. }) if !asks => {
            discover(peer, offers).await?
        }
        begun => begun,
    }
}

/// Sends a request of the handshake and waits for its answer. Nobody cancels one: the link ends instead.
async fn ask(
    peer: &Arc<Peer>,
    compose: impl FnOnce(u64) -> Outgoing,
) -> Result<Result<Answer, LinkError>, SessionError> {
    let mut pending = peer.ask().ok_or(SessionError::Link(LinkError::Closed))?;
    let mut sending = peer.send(compose(pending.id()));
    let mut sent = false;
    loop {
        tokio::select! {
            biased;
            answer = pending.answer() => return answer.map(Ok).ok_or(SessionError::Link(LinkError::Closed)),
            result = &mut sending, if !sent => match result {
                Ok(()) => sent = true,
                Err(error) => return Ok(Err(error)),
            },
        }
    }
}

async fn initialize(peer: &Arc<Peer>, offers: Offers) -> Result<(), SessionError> {
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Initialized {
        protocol_version: String,
    }
    let params = Params::default()
        .with("protocolVersion", era::WITH_HANDSHAKE)
        .with("capabilities", offers.capabilities())
        .with("clientInfo", era::client_info());
    let result = match ask(peer, |id| peer.compose(id, "initialize", &params)).await?.map_err(SessionError::Link)? {
        Answer::Result(result) => result,
        Answer::Error(error) => return Err(of_rpc(error)),
        Answer::Unreadable => return Err(SessionError::Unreadable),
    };
    let server = serde_json::from_str::<ServerInfo>(&result).unwrap_or_default();
    let Ok(initialized) = serde_json::from_str::<Initialized>(&result) else {
        return Err(SessionError::Handshake { what: "it answered `initialize` with something else".to_owned() });
    };
    let revision = initialized.protocol_version;
    if !era::KNOWN.contains(&revision.as_str()) {
        let what = format!(
            "it speaks the protocol revision `{}`, which this host does not know",
            display::escape(&revision.chars().take(64).collect::<String>())
        );
        return Err(SessionError::Handshake { what });
    }
    let era = if revision.as_str() >= era::STATELESS {
        Era::stateless(&revision, offers, server)
    } else {
        Era::with_handshake(&revision, server)
    };
    peer.agree(era);
    peer.notify("notifications/initialized", &Params::default()).await.map_err(SessionError::Link)
}

enum Discovered {
    Agreed,
    /// It speaks the revision that was asked for, and refused it.
    Again,
    /// An older server, with what it said.
    Older(SessionError),
}

/// Agrees upon a newer revision; the inner error is that of an older server.
async fn discover(peer: &Arc<Peer>, offers: Offers) -> Result<Result<(), SessionError>, SessionError> {
    let mut discovered = discover_once(peer, offers).await?;
    if matches!(discovered, Discovered::Again) {
        // Once may be a mistake.
        discovered = discover_once(peer, offers).await?;
    }
    match discovered {
        Discovered::Agreed => Ok(Ok(())),
        Discovered::Older(error) => Ok(Err(error)),
        Discovered::Again => Err(revisions(&[era::STATELESS.to_owned()])),
    }
}

async fn discover_once(peer: &Arc<Peer>, offers: Offers) -> Result<Discovered, SessionError> {
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Discovery {
        supported_versions: Vec<String>,
    }
    let meta = era::meta(era::STATELESS, offers, true);
    let compose = |id| peer.compose_stateless(id, "server/discover", era::STATELESS, &meta);
    let answer = match ask(peer, compose).await? {
        Ok(answer) => answer,
        // A server of an older revision may refuse the request as a whole.
        Err(error) if error.is_refusal() => return Ok(Discovered::Older(SessionError::Link(error))),
        Err(error) => return Err(SessionError::Link(error)),
    };
    let result = match answer {
        Answer::Result(result) => result,
        Answer::Unreadable => return Ok(Discovered::Older(SessionError::Unreadable)),
        Answer::Error(error) if error.code == UNSUPPORTED_REVISION => return unsupported(&error),
        Answer::Error(error) if MODERN_REFUSALS.contains(&error.code) => return Err(of_rpc(error)),
        Answer::Error(error) => return Ok(Discovered::Older(of_rpc(error))),
    };
    match serde_json::from_str::<Discovery>(&result) {
        Ok(discovery) if discovery.supported_versions.iter().any(|version| version == era::STATELESS) => {
            let server = serde_json::from_str::<ServerInfo>(&result).unwrap_or_default();
            peer.agree(Era::stateless(era::STATELESS, offers, server));
            Ok(Discovered::Agreed)
        }
        Ok(discovery) if discovery.supported_versions.iter().any(|version| era::KNOWN.contains(&version.as_str())) => {
            Ok(Discovered::Older(revisions(&discovery.supported_versions)))
        }
        Ok(discovery) => Err(revisions(&discovery.supported_versions)),
        // An old server may answer anything with an empty result.
        Err(_) => Ok(Discovered::Older(SessionError::Handshake {
            what: "it answered `server/discover` with something else".to_owned(),
        })),
    }
}

/// A server of a newer revision that does not speak ours; an older one of its may still do.
fn unsupported(error: &RpcError) -> Result<Discovered, SessionError> {
    #[derive(Deserialize)]
    struct Supported {
        #[serde(default)]
        supported: Vec<String>,
    }
    let supported = error.data.as_deref().and_then(|data| serde_json::from_str::<Supported>(data).ok());
    let supported = supported.map(|data| data.supported).unwrap_or_default();
    let error = revisions(&supported);
    if supported.iter().any(|version| version == era::STATELESS) {
        return Ok(Discovered::Again);
    }
    if supported.iter().any(|version| era::KNOWN.contains(&version.as_str()) && version.as_str() < era::STATELESS) {
        return Ok(Discovered::Older(error));
    }
    Err(error)
}

fn revisions(supported: &[String]) -> SessionError {
    let shown: Vec<_> = supported.iter().take(8).map(|version| version.chars().take(32).collect::<String>()).collect();
    let what = format!(
        "it speaks the protocol revisions `{}`, none of which this host speaks that way",
        display::escape(&shown.join("`, `"))
    );
    SessionError::Handshake { what }
}
