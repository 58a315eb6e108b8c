//! Any transport, with somebody who is told of every message.

use std::{fmt, sync::Arc};

use async_trait::async_trait;
use futures::{FutureExt, future::BoxFuture};
use rmcp::model::{CustomResult, JsonRpcMessage, ServerResult};
use serde_json::Value;

use super::Direction;
use crate::{
    Definition,
    link::{Failure, Incoming, Link, LinkError, Outgoing, Wire},
    raw,
    reference::SecretResolver,
    transport::{OpenContext, Plan, Transport, TransportError},
    trust::{Consent, TrustView},
};

/// Is told the server's name, which way a message went, and its text.
pub type Observer = Arc<dyn Fn(&str, Direction, &str) + Send + Sync>;

/// A transport whose links are watched.
#[derive(Clone)]
pub struct Observed {
    transport: Arc<dyn Transport>,
    observer: Observer,
}

impl Observed {
    /// Watches `transport`.
    pub fn new(transport: Arc<dyn Transport>, observer: Observer) -> Self {
        Self { transport, observer }
    }
}

impl fmt::Debug for Observed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Observed").field(&self.transport).finish()
    }
}

impl Transport for Observed {
    fn plan(&self, definition: &Definition, context: &OpenContext) -> Result<Box<dyn Plan>, TransportError> {
        let plan = self.transport.plan(definition, context)?;
        Ok(Box::new(ObservedPlan { plan, observer: self.observer.clone() }))
    }
}

struct ObservedPlan {
    plan: Box<dyn Plan>,
    observer: Observer,
}

impl fmt::Debug for ObservedPlan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.plan.fmt(f)
    }
}

#[async_trait]
impl Plan for ObservedPlan {
    fn view(&self) -> &TrustView {
        self.plan.view()
    }

    async fn open(self: Box<Self>, consent: Consent, secrets: &dyn SecretResolver) -> Result<Link, TransportError> {
        let (server, observer) = (self.plan.view().server.clone(), self.observer);
        let link = self.plan.open(consent, secrets).await?;
        Ok(link.with_wire(|wire| Box::new(ObservedWire { server, wire, observer })))
    }
}

struct ObservedWire {
    server: String,
    wire: Box<dyn Wire>,
    observer: Observer,
}

impl Wire for ObservedWire {
    fn send(&mut self, message: Outgoing) -> BoxFuture<'static, Result<(), LinkError>> {
        let mut text = Vec::new();
        if raw::encode(&message, &mut text).is_ok() {
            (self.observer)(&self.server, Direction::ToServer, &String::from_utf8_lossy(&text));
        }
        self.wire.send(message)
    }

    fn receive(&mut self) -> BoxFuture<'_, Option<Incoming>> {
        async move {
            let message = self.wire.receive().await?;
            (self.observer)(&self.server, Direction::FromServer, &text_of(&message));
            Some(message)
        }
        .boxed()
    }

    fn close(&mut self) -> BoxFuture<'_, Result<(), LinkError>> {
        self.wire.close()
    }

    fn failure(&self) -> Failure {
        self.wire.failure()
    }

    fn reads_arguments(&self) -> bool {
        self.wire.reads_arguments()
    }
}

fn text_of(message: &Incoming) -> String {
    if let JsonRpcMessage::Response(response) = message
        && let ServerResult::CustomResult(CustomResult(Value::String(result))) = &response.result
    {
        return format!(r#"{{"jsonrpc":"2.0","id":{},"result":{result}}}"#, response.id);
    }
    serde_json::to_string(message).unwrap_or_default()
}
