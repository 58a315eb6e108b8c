//! One call through the pipeline.

use std::{
    fs,
    io::{self, Read},
};

use portcullis::{
    GateError,
    approval::{Arguments, Call},
    display::escape,
    raw::RawResult,
};
use serde_json::Value;

use crate::{
    app::{App, HOST},
    error::{CliError, TOOL_FAILED},
    remote::Remote,
    render,
};

/// Call one tool: you are asked, with everything that would be sent.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// The server.
    pub server: String,
    /// The tool, as its server calls it.
    pub tool: String,
    /// Arguments: text where the tool wants text, otherwise JSON.
    #[arg(value_name = "KEY=VALUE", conflicts_with = "args")]
    pub pairs: Vec<String>,
    /// All arguments as a JSON object, sent byte by byte; `@FILE` or `-` for standard input.
    #[arg(long, value_name = "JSON|@FILE|-", allow_hyphen_values = true)]
    pub args: Option<String>,
    /// Answer yes to the question about this call; it never trusts a server or accepts a changed tool.
    #[arg(long)]
    pub yes: bool,
}

/// Runs the command.
///
/// # Errors
///
/// What the gate says.
pub async fn run(args: &Args, app: &App) -> Result<u8, CliError> {
    let _ = app.gate.server(&args.server).await?;
    let json = match &args.args {
        Some(text) => whole(text)?,
        None => from_pairs(app, args).await?,
    };
    let arguments =
        Arguments::parse(json).map_err(|source| GateError::Arguments { tool: args.tool.clone(), source })?;
    let result = match Remote::find(app)? {
        // Its servers run already.
        Some(remote) => {
            let call = (args.server.as_str(), args.tool.as_str(), arguments.get());
            RawResult::from_text(remote.call(call, HOST, &*app.approver).await?)
        }
        None => {
            let (server, tool) = (args.server.clone(), args.tool.clone());
            app.gate.call(Call { server, tool, arguments, caller: HOST.to_owned() }).await?
        }
    };
    if app.output.json {
        app.output.data(&portcullis::display::escape_json(result.get()));
    } else {
        app.output.data(&render::result::text(result.get(), app.output.to_terminal()));
    }
    Ok(if result.is_error() { TOOL_FAILED } else { 0 })
}

/// The text of `--args`, byte by byte but for white space around it.
fn whole(text: &str) -> Result<String, CliError> {
    let read = match text.strip_prefix('@') {
        Some(file) => fs::read_to_string(file),
        None if text == "-" => {
            let mut read = String::new();
            io::stdin().lock().read_to_string(&mut read).map(|_| read)
        }
        None => Ok(text.to_owned()),
    };
    let read = read.map_err(|error| CliError::usage("unreadable", "the arguments cannot be read").because(&error))?;
    Ok(read.trim().to_owned())
}

async fn from_pairs(app: &App, args: &Args) -> Result<String, CliError> {
    let schema = match app.gate.tools(&args.server).await {
        Ok((tools, _)) => tools.into_iter().find(|tool| tool.descriptor.name == args.tool),
        // The call itself says what is missing.
        Err(GateError::NotDiscovered { .. }) => None,
        Err(error) => return Err(error.into()),
    };
    let schema: Value =
        schema.and_then(|tool| serde_json::from_str(tool.descriptor.input_schema.get()).ok()).unwrap_or_default();
    let mut members = Vec::new();
    for pair in &args.pairs {
        let (key, value) = pair.split_once('=').ok_or_else(|| {
            CliError::usage("usage", format!("`{}` is not KEY=VALUE", escape(pair)))
                .help("or give all of them with --args JSON")
        })?;
        members.push(format!("{}:{}", Value::from(key), member(&schema["properties"][key], value)));
    }
    Ok(format!("{{{}}}", members.join(",")))
}

/// The JSON of one value: its own text where that is what the tool takes, so that no digit is lost.
fn member(schema: &Value, value: &str) -> String {
    let names = |wanted: &str| match &schema["type"] {
        Value::String(one) => one == wanted,
        Value::Array(all) => all.iter().any(|one| one == wanted),
        _ => false,
    };
    let is_json = serde_json::from_str::<&serde_json::value::RawValue>(value).is_ok();
    let text = names("string") && !(names("null") && value == "null");
    if is_json && !text { value.trim().to_owned() } else { Value::from(value).to_string() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_stays_text_where_the_tool_wants_text() {
        let schema = |json: &str| serde_json::from_str::<Value>(json).unwrap();
        let text = schema(r#"{"type":"string"}"#);
        assert_eq!(member(&text, "1"), r#""1""#);
        assert_eq!(member(&text, "a\"b"), r#""a\"b""#);
        let number = schema(r#"{"type":"number"}"#);
        assert_eq!(member(&number, "12345678901234567890.10"), "12345678901234567890.10");
        assert_eq!(member(&number, "seven"), r#""seven""#);
        assert_eq!(member(&Value::Null, "{\"a\": 1.0}"), "{\"a\": 1.0}");
        assert_eq!(member(&Value::Null, "plain"), r#""plain""#);
        assert_eq!(member(&schema(r#"{"type":["string","null"]}"#), "null"), "null");
    }
}
