//! What a command works with: the gate, composed once, and the ways to a person.

use std::{path::PathBuf, sync::Arc};

use portcullis::{
    Gate, GateParts, Registry,
    approval::Approver,
    audit::{AuditFile, AuditMemory, AuditSink},
    reference::Surroundings,
    secret::{FileSecrets, KeyringUse, Nobody, Prompter, Redactor, Secrets},
    session::Refusing,
    store::{FileStore, MemoryStore, StateStore, ToolCache},
    transport::OpenContext,
};
use portcullis_gateway::{Gateway, manage};
use portcullis_keyring::SystemKeyring;
use portcullis_projects::{Allowed, ProjectOptions};
use portcullis_rules::Rules;
use portcullis_settings::{Folders, Machine, Settings};
// The linker drops what nobody names.
use portcullis_unix_socket as _;
use serde_json::Value;
use tracing_subscriber::EnvFilter;

use crate::{
    approver::{AtEndpoint, AtTerminal, Demonstration, NobodyThere, OneYes},
    cli::{Cli, Command},
    commands::lock,
    error::CliError,
    handler::{AsksForms, OnlyClients},
    observer,
    output::Output,
    prompter::AsksAtTerminal,
    terminal::Terminal,
};

/// How this host is called in trust records and as a caller.
pub const HOST: &str = "cli";

/// Everything that commands share.
#[derive(Debug)]
pub struct App {
    /// The gate.
    pub gate: Gate,
    /// Whom it asks.
    pub approver: Arc<dyn Approver>,
    /// Where to print.
    pub output: Output,
    /// The person, if one can be asked.
    pub terminal: Option<Terminal>,
    /// Where things are kept; `None` for commands that keep nothing.
    pub folders: Option<Folders>,
    /// The rules for calls.
    pub rules: Arc<Rules>,
    /// Environment, home and working directory.
    pub surroundings: Surroundings,
    /// Where secrets are to be kept.
    pub keyring: KeyringUse,
    /// The machine, as it was at start.
    pub machine: Machine,
    /// What was set, and where.
    pub settings: Settings,
    /// The trail of a command that keeps nothing.
    pub trail: Arc<AuditMemory>,
}

/// Before the policies that every gate has.
const RULES_ORDER: u16 = 5;

/// Whether a command is held to a lock: all that work on what is kept, but the one that writes it.
fn is_held(command: &Command) -> bool {
    keeps(command) && !matches!(command, Command::Lock(_))
}

/// Whether a command works on what is kept.
fn keeps(command: &Command) -> bool {
    !matches!(
        command,
        Command::Check(_)
            | Command::Completions(_)
            | Command::Man(_)
            | Command::Demo(_)
            | Command::DemoServer(_)
            | Command::Paths(_)
            | Command::Schema(_)
    )
}

/// Whether a command looks a program up to start it, or to have a person agree to that. The others never
/// run anything, a shell included.
fn starts(command: &Command) -> bool {
    matches!(
        command,
        Command::Trust(_)
            | Command::Tools(_)
            | Command::Call(_)
            | Command::Resources(_)
            | Command::Read(_)
            | Command::Prompts(_)
            | Command::Prompt(_)
            | Command::Logs(_)
            | Command::Ping(_)
            | Command::Inspect(_)
            | Command::Record(_)
            | Command::Doctor(_)
            | Command::Serve(_)
    )
}

impl App {
    /// What concerns projects: this machine, and what was set.
    ///
    /// # Errors
    ///
    /// A pattern that is none.
    pub fn project_options(&self) -> Result<ProjectOptions, CliError> {
        let settings = &self.settings;
        let allowed = Allowed::new(settings.project_files_allow.iter().map(String::as_str)).map_err(|problem| {
            CliError::usage("settings", format!("the setting `projectFilesAllow` holds no pattern: {problem}"))
        })?;
        let home = self.surroundings.home.as_deref();
        let roots = settings.project_roots.iter().map(|root| match (home, root.strip_prefix("~")) {
            (Some(home), Ok(below)) => home.join(below),
            _ => root.clone(),
        });
        Ok(ProjectOptions { machine: project_machine(), roots: roots.collect(), allowed })
    }

    /// Carries out an operation of the table, here.
    ///
    /// # Errors
    ///
    /// What it says.
    pub async fn operate(&self, id: &str, input: Value) -> Result<Value, CliError> {
        self.operate_with(self.project_options()?, id, input).await
    }

    /// The same with other folders below which projects are looked for.
    ///
    /// # Errors
    ///
    /// What it says.
    pub async fn operate_below(&self, roots: &[PathBuf], id: &str, input: Value) -> Result<Value, CliError> {
        let options = ProjectOptions { roots: roots.to_vec(), ..self.project_options()? };
        self.operate_with(options, id, input).await
    }

    async fn operate_with(&self, options: ProjectOptions, id: &str, input: Value) -> Result<Value, CliError> {
        let gateway = Gateway::local(self.gate.clone(), options);
        let operation = manage::operations().find(|operation| operation.id == id);
        let operation = operation.ok_or_else(|| CliError::internal("an operation that is not in the table"))?;
        let done = operation.carry_out(&gateway, input).await?;
        serde_json::from_str(&done).map_err(|_| CliError::internal("an operation without a result"))
    }

    /// Reads the settings and composes the gate. Starts nothing, makes no folder.
    ///
    /// # Errors
    ///
    /// Settings that cannot be used, no place to keep things, a transport that is not linked.
    pub fn new(cli: &Cli, output: Output) -> Result<Self, CliError> {
        let machine = Machine::here();
        let settings = Settings::load(&machine, &cli.set)?;
        let machine = if settings.login_path && starts(&cli.command) { machine.with_login_path() } else { machine };
        let redactor = Redactor::default();
        start_log(&settings, &redactor)?;
        let output = output.colored(machine.wants_color());
        let terminal = Terminal::here(output);
        let registry =
            Registry::linked(portcullis_transports::NAMES).map_err(|error| CliError::internal(error.to_string()))?;
        let registry = match observer::of(&cli.command, &redactor, output)? {
            Some(observer) => registry.observed(&observer),
            None => registry,
        };
        let trail = Arc::new(AuditMemory::default());
        let prompter: Arc<dyn Prompter> = match terminal {
            // What is missing is what it is there to tell.
            _ if matches!(cli.command, Command::Doctor(_)) => Arc::new(Nobody),
            Some(terminal) => Arc::new(AsksAtTerminal(terminal)),
            None => Arc::new(Nobody),
        };
        let kept = if keeps(&cli.command) {
            Kept::on_disk(machine.folders()?, settings.secrets, prompter)
        } else {
            Kept::in_memory(machine.folders().ok(), trail.clone())?
        };
        let rules = kept.folders.as_ref().filter(|_| keeps(&cli.command)).map(|folders| folders.rules_path());
        let rules = Arc::new(rules.map_or_else(Rules::none, |path| Rules::load(&path)));
        let approver = approver(&cli.command, terminal, output);
        let gate = Gate::new(GateParts {
            registry: registry.with_policy("rules", RULES_ORDER, rules.clone()),
            store: kept.store,
            cache: kept.cache,
            approver: approver.clone(),
            audit: kept.audit,
            secrets: kept.secrets.with_redactor(redactor),
            context: OpenContext { surroundings: machine.surroundings().clone(), limits: settings.limits.clone() },
            host: HOST.to_owned(),
            name_style: settings.name_style,
            handler: match terminal {
                _ if matches!(cli.command, Command::Serve(_)) => Arc::new(OnlyClients),
                Some(terminal) => Arc::new(AsksForms::new(terminal, output)),
                None => Arc::new(Refusing),
            },
            lifecycle: settings.lifecycle,
        });
        if let Some(file) = cli.locked.as_ref().or(settings.locked.as_ref()).filter(|_| is_held(&cli.command)) {
            gate.hold_to(lock::read(file)?);
        }
        Ok(Self {
            gate,
            approver,
            output,
            terminal,
            folders: kept.folders,
            rules,
            surroundings: machine.surroundings().clone(),
            keyring: settings.secrets,
            machine,
            settings,
            trail,
        })
    }
}

/// The system that projects lie on.
fn project_machine() -> portcullis_projects::Machine {
    use portcullis_projects::Machine as System;
    if cfg!(windows) {
        System::Windows
    } else if cfg!(target_os = "macos") {
        System::MacOs
    } else {
        // As Microsoft names its own kernel.
        let kernel = std::fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
        if kernel.to_lowercase().contains("microsoft") { System::Wsl } else { System::Linux }
    }
}

/// What a gate keeps, and where.
struct Kept {
    folders: Option<Folders>,
    store: Arc<dyn StateStore>,
    cache: Arc<dyn ToolCache>,
    audit: Arc<dyn AuditSink>,
    secrets: Secrets,
}

impl Kept {
    fn on_disk(folders: Folders, keyring: KeyringUse, prompter: Arc<dyn Prompter>) -> Self {
        let system = Arc::new(SystemKeyring::new());
        let store = Arc::new(FileStore::with_keyring(&folders.data, system.clone(), keyring));
        let secrets = Arc::new(FileSecrets::with_keyring(&folders.data, system, keyring));
        Self {
            audit: Arc::new(AuditFile::new(&folders.state)),
            folders: Some(folders),
            store: store.clone(),
            cache: store,
            secrets: Secrets::new(secrets, prompter),
        }
    }

    fn in_memory(folders: Option<Folders>, trail: Arc<AuditMemory>) -> Result<Self, CliError> {
        let memory = MemoryStore::new().map_err(|error| CliError::internal(error.to_string()))?;
        let memory = Arc::new(memory);
        Ok(Self { folders, store: memory.clone(), cache: memory, audit: trail, secrets: Secrets::default() })
    }
}

fn approver(command: &Command, terminal: Option<Terminal>, output: Output) -> Arc<dyn Approver> {
    match (command, terminal) {
        (Command::Serve(_), terminal) => {
            Arc::new(AtEndpoint::new(terminal.map(|terminal| AtTerminal(terminal, output))))
        }
        (Command::Call(args), _) if args.yes => Arc::new(OneYes::default()),
        (_, Some(terminal)) => Arc::new(AtTerminal(terminal, output)),
        (Command::Demo(_), None) => Arc::new(Demonstration(output)),
        (_, None) => Arc::new(NobodyThere),
    }
}

fn start_log(settings: &Settings, redactor: &Redactor) -> Result<(), CliError> {
    let filter = EnvFilter::try_new(&settings.log).map_err(|error| {
        CliError::usage("settings", format!("the setting `log` is no filter: {error}"))
            .help("for example `PORTCULLIS_LOG=info,portcullis=debug`")
    })?;
    let redactor = redactor.clone();
    let writer = move || redactor.writer(std::io::stderr());
    let log = tracing_subscriber::fmt().with_env_filter(filter).with_writer(writer).with_ansi(false);
    // Somebody who embeds this crate may have one already.
    let _ = log.try_init();
    Ok(())
}
