//! What a program calls an error, and what a person can do about it.

use super::GateError;
use crate::{
    display::{self, shell},
    link::LinkError,
    reference::ReferenceError,
    secret::SecretError,
    session::SessionError,
    store::StoreError,
    transport::TransportError,
};

impl GateError {
    /// A stable code, for programs.
    #[must_use]
    pub fn code(&self) -> &'static str {
        match self {
            Self::UnknownServer { .. } => "unknown-server",
            Self::UnknownTool { .. } => "unknown-tool",
            Self::UnknownGrant { .. } => "unknown-grant",
            Self::UnknownSecret { .. } => "unknown-secret",
            Self::UnknownInput { .. } => "unknown-input",
            Self::UnknownProject { .. } => "unknown-project",
            Self::UnknownGroup { .. } => "unknown-group",
            Self::GroupExists { .. } => "group-exists",
            Self::NotMovable { .. } => "not-movable",
            Self::SecretName { .. } => "secret-name",
            Self::EmptySecret => "empty-secret",
            Self::Secret(SecretError::TooLong) => "too-large",
            Self::Secret(_) => "secrets",
            Self::NotTrusted { .. } => "not-trusted",
            Self::TrustChanged { .. } => "trust-changed",
            Self::WrongFingerprint { .. } => "wrong-fingerprint",
            Self::Locked { .. } => "locked",
            Self::NotEnabled { .. } => "not-enabled",
            Self::NotDiscovered { .. } => "not-discovered",
            Self::ToolNotEnabled { .. } => "tool-not-enabled",
            Self::ToolChanged { .. } => "tool-changed",
            Self::Denied { .. } => "denied",
            Self::Question(_) => "question",
            Self::Arguments { .. } => "arguments",
            Self::Reconcile(_) => "not-saved",
            Self::Exists { .. } => "exists",
            Self::Conflict { .. } => "conflict",
            Self::NotRunning { .. } => "not-running",
            Self::Stopped { .. } => "stopped",
            Self::Closed => "closed",
            Self::Transport { source, .. } => match source {
                TransportError::ProgramNotFound { .. } => "program-not-found",
                TransportError::NotExecutable { .. } => "not-executable",
                TransportError::DirectoryMissing { .. } => "directory-missing",
                TransportError::Reference { source, .. } => match source {
                    ReferenceError::NoSecret { .. } => "no-secret",
                    ReferenceError::Unanswered { .. } => "no-answer",
                    ReferenceError::Unreadable { .. } => "secrets",
                    _ => "unset-variable",
                },
                TransportError::Value { .. } => "value",
                TransportError::Unsupported { .. } => "unsupported",
                TransportError::Consent => "consent",
                _ => "not-started",
            },
            Self::Session { source, .. } => match &**source {
                SessionError::Ticket(_) => "approval-stale",
                SessionError::NotRunning(_) => "not-running",
                SessionError::Ended(_) => "offline",
                SessionError::TimedOut { .. } => "timeout",
                SessionError::Rpc { .. } => "rpc",
                SessionError::List { .. } => "list",
                SessionError::Unreadable => "protocol",
                SessionError::OutputSchema { .. } | SessionError::Output { .. } => "output-schema",
                other => match other.link() {
                    Some(LinkError::AuthorizationRequired { .. }) => "authorization",
                    Some(LinkError::TooLarge { .. }) => "too-large",
                    Some(LinkError::Altered) => "altered",
                    Some(LinkError::Redirect { .. }) => "redirect",
                    Some(LinkError::Unreachable { .. }) => "unreachable",
                    Some(LinkError::Certificate { .. }) => "certificate",
                    Some(LinkError::NotMcp { .. }) => "protocol",
                    Some(LinkError::Status { .. }) => "status",
                    Some(_) => "link",
                    None => "not-started",
                },
            },
            Self::Store(_) => "store",
            Self::Audit(_) => "audit",
        }
    }

    /// What to do about it, where that can be said.
    #[must_use]
    pub fn help(&self) -> Option<String> {
        let near =
            |near: &Option<String>| near.as_ref().map(|near| format!("did you mean `{}`?", display::escape(near)));
        Some(match self {
            Self::UnknownServer { near: name, .. }
            | Self::UnknownTool { near: name, .. }
            | Self::UnknownSecret { near: name, .. }
            | Self::UnknownInput { near: name, .. } => return near(name),
            Self::UnknownProject { .. } => "`portcullis projects list` shows those that are registered".to_owned(),
            Self::UnknownGroup { .. } => "`portcullis groups list` shows those that there are".to_owned(),
            Self::NotTrusted { server } | Self::TrustChanged { server, .. } => {
                format!("see what it would do and decide: portcullis trust {}", shell(server))
            }
            Self::WrongFingerprint { server } => {
                format!("portcullis show {} prints the one it has now", shell(server))
            }
            Self::Locked { .. } => "have it reviewed, and write the lock file anew: portcullis lock".to_owned(),
            Self::NotEnabled { server } => format!("portcullis enable {}", shell(server)),
            Self::NotDiscovered { server } => format!("portcullis tools {} --refresh", shell(server)),
            Self::ToolNotEnabled { server, tool } => {
                format!("portcullis tools {} --enable {}", shell(server), shell(tool))
            }
            Self::ToolChanged { server, tool, .. } => {
                format!("if that is what you want: portcullis tools {} --enable {}", shell(server), shell(tool))
            }
            Self::Transport { source: TransportError::ProgramNotFound { searched, .. }, .. }
                if !searched.is_empty() =>
            {
                format!("install it, or write its whole path; searched: {}", display::escape(&searched.join(", ")))
            }
            Self::Transport {
                source: TransportError::ProgramNotFound { .. } | TransportError::NotExecutable { .. },
                ..
            } => "correct `command` in the document".to_owned(),
            Self::Transport { source: TransportError::DirectoryMissing { .. }, .. } => {
                "create it, or correct `cwd` in the document".to_owned()
            }
            Self::Transport { source: TransportError::Reference { source, .. }, .. } => return source.help(),
            Self::Store(StoreError::KeyLost { .. }) | Self::Secret(SecretError::Keyring { .. }) => {
                "unlock or start the keyring, then repeat; nothing is lost".to_owned()
            }
            Self::Secret(SecretError::NoKeyring(_)) => {
                "start a keyring, or set `secrets = \"auto\"` to keep them in a file".to_owned()
            }
            Self::Session { source, .. } => match &**source {
                SessionError::Start { cause: crate::session::Cause::TimedOut { .. }, .. } => {
                    "a first start may download a package: set `startupTimeoutMs` in the document to wait longer"
                        .to_owned()
                }
                SessionError::TimedOut { .. } => {
                    "set `timeoutMs` in the document to wait longer; the call may have run".to_owned()
                }
                SessionError::Ended(_) => "the call may have run; it was not sent again".to_owned(),
                other => match other.link()? {
                    LinkError::Certificate { problem, .. } => problem.help().to_owned(),
                    LinkError::Redirect { .. } => "write the address it redirects to into the document".to_owned(),
                    LinkError::AuthorizationRequired { .. } => {
                        "put a token into `headers` or `auth` of the document".to_owned()
                    }
                    LinkError::NotMcp { .. } | LinkError::Status { status: 404 | 405, .. } => {
                        "check the URL; the address of an MCP server often ends in `/mcp`".to_owned()
                    }
                    _ => return None,
                },
            },
            Self::Exists { name } => format!("remove it first: portcullis remove {}", shell(name)),
            _ => return None,
        })
    }
}
