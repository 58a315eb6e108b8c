//! Portcullis as a host uses it: the whole way through the gate, with trust, selection, policies,
//! ticket and audit trail.

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
};

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
    secret::Secrets,
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
    folder: Option<PathBuf>,
}

impl Drop for Ours {
    fn drop(&mut self) {
        if let Some(folder) = &self.folder {
            let _ = std::fs::remove_dir_all(folder);
        }
    }
}

pub(crate) async fn connect(place: &Place) -> Result<Box<dyn Client>> {
    let (gate, folder) = prepare(place).await?;
    Ok(Box::new(Ours { gate, folder: Some(folder) }))
}

/// A gate over a store that is ready, as a program finds it when it starts.
pub(crate) fn open(folder: &Path) -> Result<Ours> {
    Ok(Ours { gate: gate(folder)?, folder: None })
}

fn gate(folder: &Path) -> Result<Gate> {
    let store = Arc::new(FileStore::open(folder));
    let surroundings = Surroundings {
        environment: BTreeMap::new(),
        workspace_folder: Some(std::env::temp_dir()),
        ..Surroundings::default()
    };
    Ok(Gate::new(GateParts {
        registry: Registry::linked(portcullis_transports::NAMES)?,
        store: store.clone(),
        cache: store,
        approver: Arc::new(Nobody),
        audit: Arc::new(AuditFile::new(folder)),
        secrets: Secrets::default(),
        context: OpenContext { surroundings, limits: Limits::default() },
        host: "bench".to_owned(),
        name_style: NameStyle::default(),
        handler: Arc::new(portcullis::session::Refusing),
        lifecycle: portcullis::session::Lifecycle::default(),
    }))
}

/// A gate over a new store, with everything done that a person does once.
pub(crate) async fn prepare(place: &Place) -> Result<(Gate, PathBuf)> {
    static COUNT: AtomicU64 = AtomicU64::new(0);
    let count = COUNT.fetch_add(1, Ordering::Relaxed);
    let folder = std::env::temp_dir().join(format!("portcullis-bench-{}-{count}", std::process::id()));
    let gate = gate(&folder)?;
    make_ready(&gate, place).await?;
    Ok((gate, folder))
}

/// The same in `folder`, for programs that come later.
pub(crate) async fn prepare_in(folder: &Path, place: &Place) -> Result<()> {
    let gate = gate(folder)?;
    make_ready(&gate, place).await?;
    gate.close().await;
    Ok(())
}

fn definition(name: &str, place: &Place) -> Definition {
    let (kind, fields) = match place {
        Place::Stdio(command) => ("stdio", json!({"command": command[0], "args": command[1..]})),
        Place::Http(url) => ("streamable-http", json!({"url": url})),
    };
    Definition::new(name, kind, fields.as_object().cloned().unwrap_or_default())
}

/// Import, trust, list, choose, enable, allow.
async fn make_ready(gate: &Gate, place: &Place) -> Result<()> {
    gate.import(Document { servers: vec![definition("bench", place)], inputs: Vec::new() }, How::Replace, None).await?;
    gate.trust(gate.trust_question("bench").await?).await?;
    gate.refresh("bench").await?;
    gate.select("bench", Some(Choice::All), None).await?;
    gate.enable("bench").await?;
    gate.set_mode("bench", Mode::Allow).await?;
    Ok(())
}

impl Ours {
    /// Starts the server and lists its tools.
    pub(crate) async fn list(&self) -> Result<usize> {
        self.gate.refresh("bench").await?;
        Ok(0)
    }

    /// Ends everything.
    pub(crate) async fn close(&self) {
        self.gate.close().await;
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

/// A gate over many servers that are trusted.
pub(crate) struct Many {
    gate: Gate,
    folder: PathBuf,
    names: Vec<String>,
}

impl Drop for Many {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}

impl Many {
    pub(crate) async fn new(place: &Place, count: usize) -> Result<Self> {
        let folder = std::env::temp_dir().join(format!("portcullis-bench-many-{}", std::process::id()));
        let _ = std::fs::remove_dir_all(&folder);
        let gate = gate(&folder)?;
        let names: Vec<_> = (0..count).map(|at| format!("bench-{at}")).collect();
        let servers = names.iter().map(|name| definition(name, place)).collect();
        gate.import(Document { servers, inputs: Vec::new() }, How::Replace, None).await?;
        for name in &names {
            gate.trust(gate.trust_question(name).await?).await?;
        }
        Ok(Self { gate, folder, names })
    }

    /// Enables all of them, as somebody does who has seen their tools, and begins anew.
    pub(crate) async fn again(mut self) -> Result<Self> {
        for name in &self.names {
            self.gate.enable(name).await?;
        }
        self.gate.close().await;
        self.gate = gate(&self.folder)?;
        Ok(self)
    }

    /// Starts each; a start ends with the list of its tools.
    pub(crate) async fn start_all(&self) -> Result<()> {
        futures::future::try_join_all(self.names.iter().map(|name| self.gate.connect(name))).await?;
        Ok(())
    }

    /// Starts each, lists its tools and ends it, all at once.
    pub(crate) async fn list_all(&self) -> Result<()> {
        futures::future::try_join_all(self.names.iter().map(|name| self.gate.refresh(name))).await?;
        Ok(())
    }

    pub(crate) async fn close(&self) {
        self.gate.close().await;
    }
}
