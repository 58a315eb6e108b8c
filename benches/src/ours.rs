//! Portcullis as a host uses it: the whole way through the gate, with trust, selection, policies,
//! ticket and audit trail.

use std::{collections::BTreeMap, sync::Arc};

use futures::{FutureExt, future::BoxFuture};
use portcullis::{
    Definition, Gate, GateParts, Limits, Registry,
    approval::{Answer, Approver, ApproverError, Arguments, Call, Question},
    async_trait,
    audit::AuditFile,
    document::Document,
    gate::Choice,
    names::NameStyle,
    reference::Surroundings,
    store::{FileStore, How, Mode},
    transport::OpenContext,
};
use serde_json::json;

use crate::client::{ARGUMENTS, Client, Place, Result};

#[derive(Debug)]
struct Nobody;

#[async_trait]
impl Approver for Nobody {
    async fn ask(&self, _: &Question) -> std::result::Result<Answer, ApproverError> {
        Err(ApproverError::Nobody("a benchmark".to_owned()))
    }
}

pub(crate) struct Ours {
    gate: Gate,
    _folder: Folder,
}

struct Folder(std::path::PathBuf);

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

pub(crate) async fn connect(place: &Place) -> Result<Box<dyn Client>> {
    Ok(Box::new(open(place).await?))
}

pub(crate) async fn open(place: &Place) -> Result<Ours> {
    static COUNT: std::sync::atomic::AtomicU64 = std::sync::atomic::AtomicU64::new(0);
    let count = COUNT.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
    let folder = std::env::temp_dir().join(format!("portcullis-bench-{}-{count}", std::process::id()));
    let store = Arc::new(FileStore::open(&folder));
    let surroundings =
        Surroundings { environment: BTreeMap::new(), workspace_folder: Some(std::env::temp_dir()), home: None };
    let gate = Gate::new(GateParts {
        registry: Registry::linked(portcullis_transports::NAMES)?,
        store: store.clone(),
        cache: store,
        approver: Arc::new(Nobody),
        audit: Arc::new(AuditFile::new(&folder)),
        secrets: Arc::new(surroundings.clone()),
        context: OpenContext { surroundings, limits: Limits::default() },
        host: "bench".to_owned(),
        name_style: NameStyle::default(),
    });
    let (kind, fields) = match place {
        Place::Stdio(command) => ("stdio", json!({"command": command[0], "args": command[1..]})),
        Place::Http(url) => ("streamable-http", json!({"url": url})),
    };
    let definition = Definition::new("bench", kind, fields.as_object().cloned().unwrap_or_default());
    gate.import(Document { servers: vec![definition], inputs: Vec::new() }, How::Replace, None).await?;
    gate.trust(gate.trust_question("bench").await?).await?;
    gate.refresh("bench").await?;
    gate.select("bench", Some(Choice::All), None).await?;
    gate.enable("bench").await?;
    gate.set_mode("bench", Mode::Allow).await?;
    Ok(Ours { gate, _folder: Folder(folder) })
}

impl Ours {
    pub(crate) async fn tools(&self) -> Result<usize> {
        Ok(self.gate.tools("bench").await?.0.len())
    }
}

impl Client for Ours {
    fn call<'a>(&'a self, tool: &'static str) -> BoxFuture<'a, Result<usize>> {
        async move {
            let call = Call {
                server: "bench".to_owned(),
                tool: tool.to_owned(),
                arguments: Arguments::parse(ARGUMENTS.to_owned())?,
                caller: "bench".to_owned(),
            };
            Ok(self.gate.call(call).await?.get().len())
        }
        .boxed()
    }
}
