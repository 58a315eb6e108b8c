//! What a command costs that a person types: a process of its own, from its start to its end.

use std::{
    io::{BufRead as _, BufReader},
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
};

use nix::sys::resource::{UsageWho, getrusage};

use crate::{beside, client::Result, once::Cost};

/// Runs a command to its end and prints what it, and what it waited for, cost; for the bench itself.
pub(crate) fn run(command: &[String]) -> std::result::Result<(), Box<dyn std::error::Error>> {
    let (program, arguments) = command.split_first().ok_or("no command")?;
    let output = Command::new(program).args(arguments).stdin(Stdio::null()).output()?;
    if !output.status.success() {
        return Err(format!("{program}: {}", String::from_utf8_lossy(&output.stderr)).into());
    }
    let usage = getrusage(UsageWho::RUSAGE_CHILDREN)?;
    let times = [usage.user_time(), usage.system_time()];
    #[allow(clippy::cast_precision_loss, reason = "small numbers")]
    let cpu_ms: f64 = times.iter().map(|time| time.tv_sec() as f64 * 1e3 + time.tv_usec() as f64 / 1e3).sum();
    #[allow(clippy::cast_precision_loss, reason = "small numbers")]
    let peak_mb = usage.max_rss() as f64 / 1024.0;
    #[allow(clippy::print_stdout, reason = "read by the process that started this one")]
    {
        println!("{cpu_ms} {peak_mb}");
    }
    Ok(())
}

fn cost(home: &Path, command: &[&str]) -> Result<Cost> {
    let output = Command::new(std::env::current_exe()?)
        .arg("--shell")
        .args(command)
        .env("PORTCULLIS_HOME", home)
        .env("PORTCULLIS_SECRETS", "file")
        .output()?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let mut numbers = text.split_whitespace().filter_map(|number| number.parse().ok());
    match (numbers.next(), numbers.next()) {
        (Some(cpu_ms), Some(peak_mb)) => Ok(Cost { cpu_ms, peak_mb }),
        _ => Err(String::from_utf8_lossy(&output.stderr).into_owned().into()),
    }
}

/// A home in which a person did everything once, by commands.
pub(crate) struct Home {
    folder: PathBuf,
    program: String,
    bench: String,
    server: String,
}

impl Drop for Home {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}

impl Home {
    pub(crate) fn new(server: &str) -> Result<Self> {
        let folder = std::env::temp_dir().join(format!("portcullis-bench-home-{}", std::process::id()));
        let home = Self {
            folder,
            program: beside("portcullis")?.display().to_string(),
            bench: std::env::current_exe()?.display().to_string(),
            server: server.to_owned(),
        };
        home.add("bench", &["--", server])?;
        Ok(home)
    }

    /// Adds a server, and does everything that a person does once.
    pub(crate) fn add(&self, name: &str, place: &[&str]) -> Result<()> {
        self.command(&[&["add", name], place].concat())?;
        let shown: serde_json::Value = serde_json::from_str(&self.command(&["show", name, "--json"])?)?;
        let fingerprint = shown["fingerprint"].as_str().ok_or("no fingerprint")?.to_owned();
        self.command(&["trust", name, "--fingerprint", &fingerprint])?;
        self.command(&["tools", name, "--refresh", "--enable", "all"])?;
        self.command(&["enable", name])?;
        self.command(&["mode", name, "allow"]).map(drop)
    }

    fn command(&self, arguments: &[&str]) -> Result<String> {
        let output = Command::new(&self.program)
            .args(arguments)
            .env("PORTCULLIS_HOME", &self.folder)
            .env("PORTCULLIS_SECRETS", "file")
            .stdin(Stdio::null())
            .output()?;
        if !output.status.success() {
            return Err(format!("{arguments:?}: {}", String::from_utf8_lossy(&output.stderr)).into());
        }
        Ok(String::from_utf8(output.stdout)?)
    }

    /// rmcp's and ours, of one list of tools.
    pub(crate) fn list(&self) -> Result<(Cost, Cost)> {
        let rmcp = cost(&self.folder, &[&self.bench, "--once", "rmcp", "start", &self.server])?;
        Ok((rmcp, cost(&self.folder, &[&self.program, "tools", "bench", "--refresh"])?))
    }

    /// rmcp's and ours, of one call.
    pub(crate) fn call(&self) -> Result<(Cost, Cost)> {
        let rmcp = cost(&self.folder, &[&self.bench, "--once", "rmcp", "calls-1", &self.server])?;
        Ok((rmcp, cost(&self.folder, &[&self.program, "call", "bench", "echo", "text=hello"])?))
    }

    /// The endpoint over that server, in a process of its own.
    pub(crate) fn serve(&self) -> Result<Serving> {
        let mut child = Command::new(&self.program)
            .args(["serve", "--no-token", "--port", "0", "--json"])
            .env("PORTCULLIS_HOME", &self.folder)
            .env("PORTCULLIS_SECRETS", "file")
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()?;
        let output = child.stdout.take().ok_or("no pipe")?;
        let mut serving = Serving { child, port: 0 };
        let mut line = String::new();
        BufReader::new(output).read_line(&mut line)?;
        let said: serde_json::Value = serde_json::from_str(&line)?;
        serving.port = said["port"].as_u64().ok_or("no port")?;
        Ok(serving)
    }
}

/// An endpoint that runs.
pub(crate) struct Serving {
    child: Child,
    pub(crate) port: u64,
}

impl Serving {
    /// Its memory in use, in MB, as Linux counts it.
    pub(crate) fn memory(&self) -> Result<f64> {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.child.id()))?;
        let line = status.lines().find(|line| line.starts_with("VmRSS:")).ok_or("no VmRSS")?;
        Ok(line.split_whitespace().nth(1).ok_or("no number")?.parse::<f64>()? / 1024.0)
    }
}

impl Drop for Serving {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
