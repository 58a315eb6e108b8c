//! The arguments that all commands share, and the list of commands.

use std::path::PathBuf;

use clap::{Parser, Subcommand};

use crate::{
    app::App,
    commands::{self, lock},
    error::CliError,
};

/// The gate between AI models and MCP servers.
///
/// Nothing runs before you trusted it, and no tool is called before you allowed it.
#[derive(Debug, Parser)]
#[command(name = "portcullis", version, max_term_width = 100, after_help = AFTER)]
pub struct Cli {
    /// Print JSON; an error is then one line of JSON on standard error.
    #[arg(long, global = true)]
    pub json: bool,
    /// Set a setting for this run, over environment and file.
    #[arg(long = "set", global = true, value_name = "KEY=VALUE", value_parser = pair)]
    pub set: Vec<(String, String)>,
    /// Refuse whatever is not as the lock file holds it.
    #[arg(long, global = true, value_name = "FILE", num_args = 0..=1, require_equals = true, default_missing_value = lock::FILE)]
    pub locked: Option<PathBuf>,
    /// What to do.
    #[command(subcommand)]
    pub command: Command,
}

const AFTER: &str = "New here? `portcullis demo` shows the whole way, with a server of its own.\n\
Exit codes: 0 done, 1 unexpected, 2 usage or document, 3 log-in needed, 4 server not reachable,\n\
5 the tool reports a failure, 11 not allowed, 12 unknown name, 130 interrupted.";

fn pair(text: &str) -> Result<(String, String), String> {
    let (key, value) = text.split_once('=').ok_or("write KEY=VALUE")?;
    Ok((key.to_owned(), value.to_owned()))
}

macro_rules! commands {
    ($($variant:ident $module:ident $(#[$attribute:meta])*;)+) => {
        /// The commands.
        #[derive(Debug, Subcommand)]
        pub enum Command {
            $(#[allow(missing_docs, reason = "the help is the doc comment of its arguments")]
            $(#[$attribute])*
            $variant(commands::$module::Args),)+
        }

        impl Command {
            /// Runs it; the exit code.
            ///
            /// # Errors
            ///
            /// [`CliError`], ready to be shown.
            pub async fn run(&self, app: &App) -> Result<u8, CliError> {
                match self { $(Self::$variant(args) => commands::$module::run(args, app).await,)+ }
            }
        }
    };
}

commands! {
    Check check;
    Import import;
    Export export;
    Edit edit;
    Add add;
    Remove remove;
    List list;
    Show show;
    Trust trust;
    Untrust untrust;
    Enable enable;
    Disable disable;
    Tools tools;
    Call call;
    Resources resources;
    Read read;
    Prompts prompts;
    Prompt prompt;
    Logs logs;
    Ping ping;
    Inspect inspect;
    Record record;
    Serve serve;
    Connect connect;
    Disconnect disconnect;
    Projects projects;
    Groups groups;
    Approvals approvals;
    Approve approve;
    Deny deny;
    Mode mode;
    Rules rules;
    Lock lock;
    Grants grants;
    Revoke revoke;
    Log log;
    Secret secret;
    Paths paths;
    Doctor doctor;
    Man man;
    Schema schema;
    Completions completions;
    Demo demo;
    DemoServer demo_server #[command(hide = true)];
}
