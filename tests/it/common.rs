//! What tests of several modules need.

use std::{fs, path::PathBuf, time::Duration};

use portcullis::{
    Definition, Fields, Limits,
    serde_json::{Value, json},
};
use portcullis_harness::{Harness, Host};
use tempfile::TempDir;

/// How long a thing may take on a machine that runs much else.
pub(crate) const PATIENCE: Duration = Duration::from_secs(20);

pub(crate) async fn within<T>(future: impl Future<Output = T>) -> T {
    tokio::time::timeout(PATIENCE, future).await.expect("it takes too long")
}

/// Waits for a condition outside this program.
pub(crate) async fn eventually(what: &str, mut reached: impl FnMut() -> bool) {
    let waiting = async {
        while !reached() {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    tokio::time::timeout(PATIENCE, waiting).await.unwrap_or_else(|_| panic!("never happened: {what}"));
}

pub(crate) fn define(name: &str, kind: &str, fields: &Value) -> Definition {
    Definition::new(name, kind, fields.as_object().cloned().unwrap_or_else(Fields::new))
}

/// Short limits for stopping, the usual ones otherwise.
pub(crate) fn limits() -> Limits {
    Limits { stop_grace: Duration::from_millis(300), ..Limits::default() }
}

/// The program `fixture-server`, with its witnesses.
#[derive(Debug)]
pub(crate) struct Fixture {
    folder: TempDir,
    flags: Vec<String>,
}

impl Fixture {
    pub(crate) fn new(flags: &[&str]) -> Self {
        Self { folder: tempfile::tempdir().unwrap(), flags: flags.iter().map(|flag| (*flag).to_owned()).collect() }
    }

    pub(crate) fn path(&self, file: &str) -> PathBuf {
        self.folder.path().join(file)
    }

    pub(crate) fn definition(&self, name: &str) -> Definition {
        let mut args = Vec::new();
        for witness in ["started", "calls", "pids", "received"] {
            args.push(format!("--{witness}"));
            args.push(self.path(witness).display().to_string());
        }
        args.extend(self.flags.clone());
        define(
            name,
            "stdio",
            &json!({"command": portcullis_fixtures::server_path(), "args": args, "cwd": self.folder.path()}),
        )
    }

    /// The lines of one witness.
    pub(crate) fn lines(&self, witness: &str) -> Vec<String> {
        fs::read_to_string(self.path(witness)).unwrap_or_default().lines().map(str::to_owned).collect()
    }

    /// How many of the processes that were started live.
    pub(crate) fn alive(&self) -> usize {
        let lives = |line: &String| {
            let id = line.rsplit(' ').next().unwrap_or_default();
            let stat = fs::read_to_string(format!("/proc/{id}/stat")).unwrap_or_default();
            stat.rsplit_once(") ").is_some_and(|(_, rest)| !rest.starts_with(['Z', 'X']))
        };
        self.lines("pids").iter().filter(|line| lives(line)).count()
    }

    /// A host with this server as `fixture`, ready.
    pub(crate) async fn ready(&self, limits: Limits) -> Host {
        let host = self.host(limits).await;
        host.make_ready("fixture").await.unwrap();
        host.gate().set_mode("fixture", portcullis::store::Mode::Allow).await.unwrap();
        host
    }

    /// A host with this server as `fixture`, which nobody decided about.
    pub(crate) async fn host(&self, limits: Limits) -> Host {
        Harness::new()
            .transport(&portcullis_transports::stdio::KIND)
            .define(self.definition("fixture"))
            .limits(limits)
            .start()
            .await
            .unwrap()
    }
}
