//! The contract of transports, held against each of ours with the fixture server behind it.

use portcullis::{
    Definition, Registry,
    serde_json::json,
    testing::{contract::Subject, transport_contract},
    transport::OpenContext,
};

use crate::common::{Fixture, define, limits};

#[derive(Debug)]
struct Stdio(Fixture);

impl Subject for Stdio {
    fn definition(&self) -> Definition {
        self.0.definition("fixture")
    }

    fn other(&self) -> Definition {
        self.0.definition("other")
    }

    fn unset(&self) -> Option<Definition> {
        let mut fields = self.definition().fields().clone();
        fields.insert("env".to_owned(), json!({"TOKEN": "${PORTCULLIS_UNSET}"}));
        Some(define("fixture", "stdio", &fields.into()))
    }

    fn context(&self) -> OpenContext {
        OpenContext { limits: limits(), ..OpenContext::default() }
    }

    fn started(&self) -> usize {
        self.0.lines("started").len()
    }

    fn running(&self) -> usize {
        self.0.alive()
    }

    fn calls(&self) -> Vec<String> {
        self.0.lines("calls")
    }
}

async fn held_by<S: Subject>(name: &str, subject: impl Fn() -> S) {
    let registry = Registry::linked(portcullis_transports::NAMES).unwrap();
    transport_contract(&**registry.transport(name).unwrap(), subject).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn stdio_keeps_the_contract() {
    held_by("stdio", || Stdio(Fixture::new(&[]))).await;
}
