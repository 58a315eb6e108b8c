//! The endpoint of the same store, where one runs: its servers are used rather than started a second time.

use std::time::Duration;

use portcullis::{
    approval::{Approver, Question},
    raw::RawResult,
    session::ListKind,
    store::{EndpointNote, TokenPurpose, endpoint_note, endpoint_token},
};
use portcullis_gateway::manage::{ApiError, ManagementClient};
use serde::{Deserialize, de::DeserializeOwned};
use serde_json::{Value, json, value::RawValue};
use tokio::net::TcpStream;

use crate::{
    app::App,
    error::{BLOCKED, CliError, USAGE},
};

/// How often an endpoint that starts is looked for, and the pause in between.
const STARTING_TRIES: u32 = 40;
const STARTING_PAUSE: Duration = Duration::from_millis(50);

/// An endpoint that runs.
#[derive(Debug)]
pub(crate) struct Remote {
    client: ManagementClient,
    note: EndpointNote,
}

impl Remote {
    /// The endpoint, if one runs.
    pub(crate) fn find(app: &App) -> Result<Option<Self>, CliError> {
        let Some(folders) = &app.folders else { return Ok(None) };
        let Some(note) = endpoint_note(&folders.data) else { return Ok(None) };
        let token = endpoint_token(&folders.data, TokenPurpose::Management).map_err(portcullis::GateError::from)?;
        Ok(Some(Self { client: ManagementClient::new(note.port, token), note }))
    }

    /// The endpoint of whoever has just claimed it, which may take a moment to say where it is.
    pub(crate) async fn starting(app: &App) -> Result<Self, CliError> {
        for _ in 0..STARTING_TRIES {
            if let Some(remote) = Self::find(app)? {
                return Ok(remote);
            }
            tokio::time::sleep(STARTING_PAUSE).await;
        }
        Self::needed(app)
    }

    /// Where it is.
    pub(crate) fn note(&self) -> &EndpointNote {
        &self.note
    }

    /// A connection on which it serves one client, a message a line.
    pub(crate) async fn pipe(&self, group: Option<&str>) -> Result<TcpStream, CliError> {
        Ok(self.client.pipe(group).await?)
    }

    /// The endpoint.
    ///
    /// # Errors
    ///
    /// That none runs.
    pub(crate) fn needed(app: &App) -> Result<Self, CliError> {
        Self::find(app)?.ok_or_else(|| {
            CliError::new(4, "no-endpoint", "no endpoint of this store is running")
                .help("`portcullis serve` starts one; without it you are asked where you call")
        })
    }

    /// Carries out an operation; its result as JSON text.
    pub(crate) async fn run(&self, operation: &str, input: Value) -> Result<String, CliError> {
        Ok(self.client.run(operation, input).await?)
    }

    /// Calls a tool; `approver` is asked here, while others may answer at the endpoint.
    pub(crate) async fn call(
        &self,
        (server, tool, arguments): (&str, &str, &str),
        caller: &str,
        approver: &dyn Approver,
    ) -> Result<String, CliError> {
        #[derive(Deserialize)]
        struct Begun {
            #[serde(default)]
            question: Option<Box<Question>>,
            #[serde(default)]
            result: Option<Box<RawValue>>,
        }
        let input = json!({"server": server, "tool": tool, "arguments": arguments, "caller": caller});
        let begun = self.run("calls.start", input).await?;
        let result = |begun: Begun| {
            let result = begun.result.ok_or_else(|| CliError::internal("the endpoint gave no result"))?;
            Ok(result.get().to_owned())
        };
        let Begun { question: Some(question), .. } = read::<Begun>(&begun)? else { return result(read(&begun)?) };
        let mut wait = std::pin::pin!(self.run("calls.wait", json!({"id": question.id})));
        let answered = tokio::select! {
            done = &mut wait => return result(read(&done?)?),
            answer = approver.ask(&question) => answer,
        };
        let answer = answered.as_ref().map_or_else(|_| json!("deny"), |answer| json!(answer));
        // Answered elsewhere in the meantime: that answer counts.
        let _ = self.run("approvals.answer", json!({"id": question.id, "answer": answer})).await;
        match (wait.await, answered) {
            (Err(_), Err(nobody)) => Err(CliError::new(BLOCKED, "denied", nobody.to_string())),
            (done, _) => result(read(&done?)?),
        }
    }
}

/// A list of a server, of the one that runs already if one does.
pub(crate) async fn list(app: &App, server: &str, kind: ListKind) -> Result<Vec<Box<RawValue>>, CliError> {
    let operation = match kind {
        ListKind::Resources => "resources.list",
        ListKind::ResourceTemplates => "resources.templates",
        ListKind::Prompts => "prompts.list",
        ListKind::Tools => return Ok(app.gate.list(server, kind).await?),
    };
    match Remote::find(app)? {
        Some(remote) => read(&remote.run(operation, json!({"name": server})).await?),
        None => Ok(app.gate.list(server, kind).await?),
    }
}

/// A resource, as its server wrote it.
pub(crate) async fn resource(app: &App, server: &str, uri: &str) -> Result<RawResult, CliError> {
    match Remote::find(app)? {
        Some(remote) => {
            let result = remote.run("resources.read", json!({"name": server, "uri": uri})).await?;
            Ok(RawResult::from_text(result))
        }
        None => Ok(app.gate.read(server, uri).await?),
    }
}

/// A prompt, as its server wrote it.
pub(crate) async fn prompt(
    app: &App,
    server: &str,
    name: &str,
    arguments: Option<&RawValue>,
) -> Result<RawResult, CliError> {
    match Remote::find(app)? {
        Some(remote) => {
            let mut input = json!({"name": server, "prompt": name});
            if let Some(arguments) = arguments {
                input["arguments"] = arguments.get().into();
            }
            Ok(RawResult::from_text(remote.run("prompts.get", input).await?))
        }
        None => Ok(app.gate.prompt(server, name, arguments).await?),
    }
}

/// How long a server takes to answer.
pub(crate) async fn ping(app: &App, server: &str) -> Result<Duration, CliError> {
    #[derive(Deserialize)]
    struct Took {
        ms: f64,
    }
    match Remote::find(app)? {
        Some(remote) => {
            let took: Took = read(&remote.run("servers.ping", json!({"name": server})).await?)?;
            Ok(Duration::try_from_secs_f64(took.ms / 1e3).unwrap_or_default())
        }
        None => Ok(app.gate.ping(server).await?),
    }
}

/// Lists the tools of a server again.
pub(crate) async fn refresh(app: &App, server: &str) -> Result<(), CliError> {
    match Remote::find(app)? {
        Some(remote) => remote.run("tools.refresh", json!({"name": server})).await.map(drop),
        None => Ok(app.gate.refresh(server).await?),
    }
}

fn read<T: DeserializeOwned>(text: &str) -> Result<T, CliError> {
    serde_json::from_str(text).map_err(|error| CliError::internal(error.to_string()))
}

impl From<ApiError> for CliError {
    fn from(error: ApiError) -> Self {
        let exit = match error.class.as_str() {
            "usage" => USAGE,
            "authorization" => 3,
            "unreachable" => 4,
            "blocked" => BLOCKED,
            "unknown" => 12,
            _ => 1,
        };
        Self { help: error.help, ..Self::new(exit, &error.code, error.message) }
    }
}
