//! Tools: what a server lists, and which of them are on.

use clap::ValueEnum;
use portcullis::{
    GateError,
    gate::{Choice, ToolView},
    tools::{ExportShape, RefusedTool},
};

use crate::{app::App, error::CliError, remote, render::tools};

/// Show tools as they were listed last, list them again, or choose which are on.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// The server; all of them without it.
    pub name: Option<String>,
    /// Start the trusted server and list its tools again.
    #[arg(long, requires = "name")]
    pub refresh: bool,
    /// Switch these on, each as it is defined now.
    #[arg(long, value_name = "TOOL,…|all", value_delimiter = ',', requires = "name")]
    pub enable: Option<Vec<String>>,
    /// Switch these off.
    #[arg(long, value_name = "TOOL,…|all", value_delimiter = ',', requires = "name")]
    pub disable: Option<Vec<String>>,
    /// Print the tools that are on as a model API takes them.
    #[arg(long = "as", value_name = "API")]
    pub shape: Option<Shape>,
}

/// A model API.
#[derive(Debug, Clone, Copy, ValueEnum)]
pub enum Shape {
    /// OpenAI's function tools.
    Openai,
    /// Anthropic's tools.
    Anthropic,
    /// The AI SDK's dynamic tools.
    AiSdk,
}

/// Runs the command.
///
/// # Errors
///
/// What the gate says.
pub async fn run(args: &Args, app: &App) -> Result<u8, CliError> {
    if let Some(name) = &args.name {
        if args.refresh {
            remote::refresh(app, name).await?;
        }
        if args.enable.is_some() || args.disable.is_some() {
            app.gate.select(name, choice(args.enable.as_deref()), choice(args.disable.as_deref())).await?;
        }
    }
    if let Some(shape) = args.shape {
        if let Some(name) = &args.name {
            let _ = app.gate.server(name).await?;
        }
        let mut offered = app.gate.descriptors().await?;
        offered.retain(|tool| args.name.as_ref().is_none_or(|name| *name == tool.server));
        app.output.data(&portcullis::display::escape_json(&ExportShape::from(shape).write(&offered)));
        return Ok(0);
    }
    let known = match &args.name {
        Some(name) => vec![(name.clone(), app.gate.tools(name).await?)],
        None => all(app).await?,
    };
    if app.output.json {
        app.output.json(&known.iter().flat_map(|(_, (views, _))| views).collect::<Vec<_>>());
    } else {
        for (name, (views, refused)) in &known {
            app.output.data(&format!("{}\n{}", portcullis::display::quote(name), tools::text(views, refused)));
        }
    }
    Ok(0)
}

async fn all(app: &App) -> Result<Vec<(String, (Vec<ToolView>, Vec<RefusedTool>))>, CliError> {
    let mut known = Vec::new();
    for server in app.gate.servers().await? {
        match app.gate.tools(&server.name).await {
            Ok(tools) => known.push((server.name, tools)),
            Err(GateError::NotDiscovered { .. }) => {}
            Err(error) => return Err(error.into()),
        }
    }
    Ok(known)
}

/// `all` alone means all of them; a tool that is called so can still be named with another.
fn choice(names: Option<&[String]>) -> Option<Choice> {
    match names? {
        [all] if all == "all" => Some(Choice::All),
        names => Some(Choice::Named(names.to_vec())),
    }
}

impl From<Shape> for ExportShape {
    fn from(shape: Shape) -> Self {
        match shape {
            Shape::Openai => Self::OpenAi,
            Shape::Anthropic => Self::Anthropic,
            Shape::AiSdk => Self::AiSdk,
        }
    }
}
