//! One MCP server for every client, behind the gate.

use std::{future::pending, io, net::IpAddr, pin::pin};

use portcullis::{
    secret::Secret,
    store::{EndpointClaim, EndpointNote, TokenPurpose, endpoint_token},
};
use portcullis_gateway::{EndpointOptions, Gateway, GatewayParts, Guard, ListenError, Listeners, Tokens};
use serde_json::json;
use tokio::io::AsyncWriteExt as _;

use crate::{app::App, error::CliError, remote::Remote};

/// Offer your enabled servers to any MCP client, as one server behind the gate.
///
/// Every call is decided here: questions are asked in this terminal, and answered by `portcullis approve` and
/// `portcullis deny` from another.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Listen at this port of the machine instead of the setting `mcpPort`; 0 takes a free one.
    #[arg(long, conflicts_with = "stdio")]
    pub port: Option<u16>,
    /// Listen at this address too, where other machines may reach it.
    #[arg(long, value_name = "IP", requires = "host")]
    pub address: Option<IpAddr>,
    /// The name by which others reach that address, without port.
    #[arg(long, value_name = "NAME")]
    pub host: Vec<String>,
    /// Let pages of this origin ask, such as `http://localhost:5173`.
    #[arg(long = "origin", value_name = "ORIGIN")]
    pub origins: Vec<String>,
    /// Let every program of this machine in, without a token.
    #[arg(long, conflicts_with = "address")]
    pub no_token: bool,
    /// Put each question to the client that calls as well, as a form.
    #[arg(long)]
    pub ask_in_client: bool,
    /// Serve one client over standard input and output, for clients that only start commands.
    #[arg(long)]
    pub stdio: bool,
    /// With `--stdio`: show this group and nothing else.
    #[arg(long, value_name = "ID", requires = "stdio")]
    pub group: Option<String>,
}

/// Runs the command.
///
/// # Errors
///
/// A port that is taken, a token that cannot be kept.
pub async fn run(args: &Args, app: &App) -> Result<u8, CliError> {
    let folders = app.folders.clone().ok_or(portcullis_settings::FoldersError::NoHome)?;
    if let Some(id) = &args.group {
        app.gate.group(id).await?;
    }
    let token = |purpose| endpoint_token(&folders.data, purpose).map_err(portcullis::GateError::from);
    let mcp: Option<Secret> = if args.no_token { None } else { Some(token(TokenPurpose::Mcp)?) };
    let gateway = Gateway::new(GatewayParts {
        gate: app.gate.clone(),
        tokens: Tokens { mcp, management: token(TokenPurpose::Management)? },
        guard: Guard { hosts: args.host.clone(), origins: args.origins.clone() },
        projects: app.project_options()?,
        options: EndpointOptions { ask_in_client: args.ask_in_client },
    });
    // A client that only starts commands still lets others answer its questions.
    let port = if args.stdio { 0 } else { args.port.unwrap_or(app.settings.mcp_port) };
    let mut listeners = Listeners::loopback(port).map_err(|error| taken(&error))?;
    let port = listeners.port();
    if let Some(address) = args.address {
        listeners = listeners.with(address).map_err(|error| taken(&error))?;
    }
    let note = EndpointNote { port, process: std::process::id() };
    let claim = EndpointClaim::take(&folders.data, &note).map_err(portcullis::GateError::from)?;
    let Some(claim) = claim else { return beside(args, app).await };
    if args.stdio {
        let serving = listeners.serve(gateway.router(), pending());
        let client = gateway.serve_stream(args.group.as_deref(), tokio::io::stdin(), tokio::io::stdout());
        return tokio::select! {
            result = client => result.map(|()| 0).map_err(|error| broken(&error)),
            () = serving => Ok(0),
        };
    }
    say(args, app, &folders, port);
    listeners.serve(gateway.router(), pending()).await;
    drop(claim);
    Ok(0)
}

/// Another process has the endpoint of this store. There is one gate for all clients: a client that started this one
/// is handed on to it.
async fn beside(args: &Args, app: &App) -> Result<u8, CliError> {
    let remote = Remote::starting(app).await?;
    if !args.stdio {
        let EndpointNote { port, process } = remote.note();
        let what = format!("the process {process} serves this store already, at port {port}");
        return Err(CliError::blocked("serving", what)
            .help("there is one gate for all clients: connect to that one, or end it first"));
    }
    app.output.note(&format!("handed on to the endpoint at port {}, where questions are asked", remote.note().port));
    let (mut from, mut to) = remote.pipe(args.group.as_deref()).await?.into_split();
    let (mut input, mut output) = (tokio::io::stdin(), tokio::io::stdout());
    let sent = async {
        tokio::io::copy(&mut input, &mut to).await?;
        // The endpoint hands over what it has answered, and ends.
        to.shutdown().await
    };
    let received = async {
        tokio::io::copy(&mut from, &mut output).await?;
        output.flush().await
    };
    let mut received = pin!(received);
    tokio::select! {
        // Whoever reads no more is gone, too.
        done = &mut received => {
            done.map_err(|error| broken(&error))?;
            Err(CliError::new(4, "endpoint", "the endpoint that this client was handed on to has ended")
                .help("start the client's connection again: it becomes the endpoint, or finds the next"))
        }
        sent = sent => {
            sent.map_err(|error| broken(&error))?;
            received.await.map(|()| 0).map_err(|error| broken(&error))
        }
    }
}

fn broken(error: &io::Error) -> CliError {
    CliError::new(4, "client", "the client cannot be read or written").because(error)
}

fn say(args: &Args, app: &App, folders: &portcullis_settings::Folders, port: u16) {
    let url = format!("http://127.0.0.1:{port}/mcp");
    let token = TokenPurpose::Mcp.path(&folders.data);
    if app.output.json {
        app.output
            .json(&json!({"url": url, "port": port, "token": (!args.no_token).then(|| token.display().to_string())}));
        return;
    }
    app.output.data(&format!("serving at {url}"));
    if args.no_token {
        app.output.note("warning: every program of this machine may call; only your answers stand in between");
    } else {
        app.output.note(&format!("clients send `Authorization: Bearer …` with the token in {}", token.display()));
        app.output.note("`portcullis connect CLIENT` shows that for yours, and `--write` puts it there");
    }
    let answered = match app.terminal {
        Some(_) => "questions are asked here, and answered by `portcullis approve` from elsewhere too",
        None => "questions are answered by `portcullis approvals`, `approve ID` and `deny ID`",
    };
    app.output.note(answered);
}

fn taken(error: &ListenError) -> CliError {
    let failure = CliError::new(4, "port", error.to_string());
    let failure = match std::error::Error::source(error) {
        Some(source) => failure.because(source),
        None => failure,
    };
    failure.help("choose another with `--port`, or for good with the setting `mcpPort`")
}
