//! Completions for a shell.

use clap::CommandFactory;
use clap_complete::Shell;

use crate::{app::App, cli::Cli, error::CliError};

/// Print completions for a shell.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// The shell.
    pub shell: Shell,
}

/// Runs the command.
///
/// # Errors
///
/// None.
pub async fn run(args: &Args, app: &App) -> Result<u8, CliError> {
    let mut text = Vec::new();
    clap_complete::generate(args.shell, &mut Cli::command(), "portcullis", &mut text);
    app.output.raw(&text);
    Ok(0)
}
