//! Prints what a call costs: a raw client, direct rmcp and Portcullis, interleaved in one run.
//!
//! Only ratios travel from one machine to another. Each row is the median over rounds of the ratio
//! within one round. Build with `--release`.

mod client;
mod http;
mod many;
mod once;
mod ours;
mod raw;
mod rmcp_client;
mod rows;
mod shell;

use std::path::PathBuf;

use clap::Parser;

#[derive(Parser)]
struct Args {
    /// Fewer calls and rounds.
    #[arg(long)]
    quick: bool,
    /// The job that the store is for.
    #[arg(long, hide = true, default_value = "calls")]
    job: String,
    /// The address of a raw HTTP server that the store is for, instead of one over stdio.
    #[arg(long, hide = true)]
    at: Option<String>,
    /// Runs a command and prints its cost; for the bench itself.
    #[arg(long, hide = true, num_args = 1.., allow_hyphen_values = true)]
    shell: Option<Vec<String>>,
    /// Makes a store in this folder that is ready for `--once ours`, and ends.
    #[arg(long, hide = true)]
    prepare: Option<PathBuf>,
    /// Measures one endpoint over HTTP that runs already, and prints its calls a second and the median
    /// time of one call in microseconds.
    #[arg(long, value_name = "URL")]
    endpoint: Option<String>,
    /// How to speak to it.
    #[arg(long, value_enum, default_value = "session")]
    talk: http::Talk,
    /// What its tool `echo` is called there.
    #[arg(long, default_value = "echo")]
    tool: String,
    /// One JSON object instead of a table.
    #[arg(long)]
    json: bool,
    /// Runs one job in this process and prints its CPU time and peak memory; for the bench itself.
    #[arg(long, hide = true, num_args = 3)]
    once: Option<Vec<String>>,
}

/// The raw server, which cargo builds beside this program.
fn server() -> std::io::Result<PathBuf> {
    beside("raw-server")
}

fn beside(name: &str) -> std::io::Result<PathBuf> {
    let path = std::env::current_exe()?.with_file_name(format!("{name}{}", std::env::consts::EXE_SUFFIX));
    if path.exists() {
        return Ok(path);
    }
    Err(std::io::Error::other(format!("{} is not built: cargo build --release --workspace", path.display())))
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    portcullis_transports::process::run_watcher_if_asked();
    // rmcp's own HTTP client takes whatever TLS the program installed.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let args = Args::parse();
    if let Some(command) = args.shell {
        return shell::run(&command);
    }
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    if let Some(folder) = args.prepare {
        let place = once::place(&args.job, &args.at.unwrap_or(server()?.display().to_string()));
        return runtime.block_on(ours::prepare_in(&folder, &place)).map_err(|error| error.to_string().into());
    }
    if let Some(job) = args.once {
        return runtime.block_on(once::run(&job[0], &job[1], &job[2]));
    }
    if let Some(url) = args.endpoint {
        let measured = runtime.block_on(rows::one_endpoint(&url, args.talk, &args.tool, args.quick));
        let (rate, time) = measured.map_err(|error| format!("{url}: {error}"))?;
        #[allow(clippy::print_stdout, reason = "the result of the program")]
        {
            println!("{rate:.0} {time:.1}");
        }
        return Ok(());
    }
    let rows = runtime.block_on(rows::all(args.quick))?;
    #[allow(clippy::print_stdout, reason = "the result of the program")]
    if args.json {
        println!("{}", rows::json(&rows));
    } else {
        print!("{}", rows::table(&rows));
    }
    Ok(())
}
