//! The command line: one file per command, each converts, calls the gate and renders.
//!
//! Nothing is decided here. Whoever sits at a terminal is asked there; where nobody does, the
//! answer is no. Data goes to standard output, everything else to standard error.

pub mod app;
pub mod approver;
pub mod cli;
pub mod commands;
pub mod doctor;
pub mod error;
pub mod file;
pub mod handler;
pub mod mending;
pub mod observer;
pub mod output;
pub mod progress;
pub mod prompter;
mod remote;
pub mod render;
pub mod terminal;

use clap::Parser;

use self::{app::App, cli::Cli, error::CliError, output::Output};

/// Exit code after Ctrl-C.
const INTERRUPTED: u8 = 130;
/// Exit code after SIGTERM.
const TERMINATED: u8 = 143;

/// Runs the program on the arguments of this process; its exit code.
#[must_use]
pub fn main() -> u8 {
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(error) => return refused(&error),
    };
    let output = Output::new(cli.json);
    let runtime = match tokio::runtime::Builder::new_current_thread().enable_all().build() {
        Ok(runtime) => runtime,
        Err(error) => return output.fail(&CliError::internal("the program could not start").because(&error)),
    };
    let code = runtime.block_on(run(cli, output));
    // A thread may still wait for a line of the terminal; nobody reads it any more.
    runtime.shutdown_background();
    code
}

/// What clap says, in the shape that was asked for.
fn refused(error: &clap::Error) -> u8 {
    let json = error.use_stderr() && std::env::args_os().any(|argument| argument == "--json");
    if json {
        let text = error.render().to_string();
        let message = text.lines().next().unwrap_or_default().trim_start_matches("error: ");
        return Output::new(true).fail(&CliError::usage("usage", message));
    }
    let _ = error.print();
    u8::try_from(error.exit_code()).unwrap_or(2)
}

async fn run(cli: Cli, output: Output) -> u8 {
    let app = match App::new(&cli, output) {
        Ok(app) => app,
        Err(error) => return output.fail(&error),
    };
    let code = tokio::select! {
        biased;
        code = interrupted() => {
            if app.output.json {
                app.output.fail(&CliError::new(code, "interrupted", "interrupted; what waited for you is denied"))
            } else {
                if app.terminal.is_some() {
                    app.output.note("");
                }
                code
            }
        }
        result = cli.command.run(&app) => match result {
            Ok(code) => code,
            Err(error) => app.output.fail(&error),
        },
        never = progress::show(&app) => match never {},
    };
    app.output.clear_status();
    app.gate.close().await;
    code
}

/// Waits for somebody who wants the program to end; the exit code for it.
async fn interrupted() -> u8 {
    #[cfg(unix)]
    {
        use tokio::signal::unix::{SignalKind, signal};
        let Ok(mut terminate) = signal(SignalKind::terminate()) else { return std::future::pending().await };
        tokio::select! {
            _ = tokio::signal::ctrl_c() => INTERRUPTED,
            _ = terminate.recv() => TERMINATED,
        }
    }
    #[cfg(not(unix))]
    {
        let _ = TERMINATED;
        let _ = tokio::signal::ctrl_c().await;
        INTERRUPTED
    }
}
