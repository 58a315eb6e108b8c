//! The program `portcullis`.

use std::process::ExitCode;

fn main() -> ExitCode {
    portcullis_transports::process::run_watcher_if_asked();
    ExitCode::from(portcullis_cli::main())
}
