//! The contract, held against the transport of the fakes.

use super::{contract::Subject, *};
use crate::transport::OpenContext;

#[derive(Debug, Default)]
struct Fake(FakeServer);

impl Fake {
    fn define(fields: &serde_json::Value) -> Definition {
        Definition::new("fake", "in-process", fields.as_object().cloned().unwrap())
    }
}

impl Subject for Fake {
    fn definition(&self) -> Definition {
        Self::define(&serde_json::json!({"server": "fake"}))
    }
    fn other(&self) -> Definition {
        Self::define(&serde_json::json!({"server": "fake", "args": ["other"]}))
    }
    fn unset(&self) -> Option<Definition> {
        Some(Self::define(&serde_json::json!({"server": "fake", "env": {"K": "${PORTCULLIS_UNSET}"}})))
    }
    fn context(&self) -> OpenContext {
        OpenContext::default()
    }
    fn started(&self) -> usize {
        self.0.started()
    }
    fn running(&self) -> usize {
        self.0.running()
    }
    fn calls(&self) -> Vec<String> {
        self.0.requests("tools/call").into_iter().map(|request| request.params).collect()
    }
}

/// One transport, whose server is the subject's.
#[tokio::test]
async fn the_in_process_transport_keeps_the_contract() {
    let server = FakeServer::new();
    let transport = InProcess::default().with("fake", &server);
    // A subject is fresh where its witnesses start from nothing.
    transport_contract(&transport, || {
        server.forget();
        Fake(server.clone())
    })
    .await;
}
