//! Where the connection of each server stands, for whoever shows it.

use std::{
    collections::HashMap,
    sync::{Mutex, MutexGuard, PoisonError},
};

use serde::Serialize;
use tokio::sync::broadcast;

use super::{Gate, GateError, sessions::Purpose};
use crate::{
    limits,
    session::{Ended, Session},
};

/// Where a connection stands.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub enum ConnectionState {
    /// Nothing runs.
    #[default]
    Disconnected,
    /// The server wants a log-in first.
    AuthRequired,
    /// A log-in is under way.
    AuthPending,
    /// It is being started.
    Connecting,
    /// It runs, and its tools are listed.
    Connected,
    /// It did not start, or ended by itself.
    Error,
}

/// Why a connection is none.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ConnectionError {
    /// Stable, for programs: `offline`, `timeout`, `protocol`, …
    pub code: String,
    /// The step that failed, where it is known: `initialize`, `list tools`.
    pub step: Option<String>,
    /// For the person, escaped for display.
    pub message: String,
    /// What to do about it.
    pub help: Option<String>,
}

/// One server's connection.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Connection {
    /// Where it stands.
    pub state: ConnectionState,
    /// Counts attempts to connect; what comes of an older one is dropped.
    pub attempt: u64,
    /// Counts how often the tools of a running server were found to have changed.
    pub tool_changes: u64,
    /// The newest failure; gone with the next success.
    pub last_error: Option<ConnectionError>,
}

/// A connection that stands somewhere else now.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ConnectionEvent {
    /// The server's name.
    pub server: String,
    /// Where it stands.
    pub connection: Connection,
}

/// All connections of one gate.
#[derive(Debug)]
pub(super) struct Connections {
    known: Mutex<HashMap<String, Connection>>,
    events: broadcast::Sender<ConnectionEvent>,
}

impl Default for Connections {
    fn default() -> Self {
        Self { known: Mutex::default(), events: broadcast::Sender::new(limits::SESSION_EVENTS) }
    }
}

impl Connections {
    fn known(&self) -> MutexGuard<'_, HashMap<String, Connection>> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn get(&self, server: &str) -> Connection {
        self.known().get(server).cloned().unwrap_or_default()
    }

    /// An attempt begins; its number.
    pub(super) fn connecting(&self, server: &str) -> u64 {
        let mut known = self.known();
        let connection = known.entry(server.to_owned()).or_default();
        connection.state = ConnectionState::Connecting;
        connection.attempt += 1;
        let attempt = connection.attempt;
        self.tell(server, connection);
        attempt
    }

    /// What came of an attempt, unless there is a newer one.
    fn settle(&self, server: &str, attempt: u64, state: ConnectionState, error: Option<ConnectionError>) {
        let mut known = self.known();
        let Some(connection) = known.get_mut(server).filter(|connection| connection.attempt == attempt) else { return };
        if state == ConnectionState::Connected || error.is_some() {
            connection.last_error = error;
        }
        if connection.state != state || state == ConnectionState::Error {
            connection.state = state;
            self.tell(server, connection);
        }
    }

    /// In the order of the changes: the table is locked.
    fn tell(&self, server: &str, connection: &Connection) {
        // An error means that nobody looks.
        let _ = self.events.send(ConnectionEvent { server: server.to_owned(), connection: connection.clone() });
    }

    /// The tools of a running server are others than those told of last.
    pub(super) fn tools_changed(&self, server: &str, attempt: u64) {
        let mut known = self.known();
        let Some(connection) = known.get_mut(server).filter(|connection| connection.attempt == attempt) else { return };
        connection.tool_changes += 1;
        self.tell(server, connection);
    }

    pub(super) fn connected(&self, server: &str, attempt: u64) {
        self.settle(server, attempt, ConnectionState::Connected, None);
    }

    pub(super) fn failed(&self, server: &str, attempt: u64, error: &GateError) {
        let state = match error {
            // A person ended it: that is no failure.
            GateError::Stopped { .. } | GateError::Closed => {
                return self.settle(server, attempt, ConnectionState::Disconnected, None);
            }
            error if error.class() == super::ErrorClass::Authorization => ConnectionState::AuthRequired,
            _ => ConnectionState::Error,
        };
        let error = ConnectionError {
            code: error.code().to_owned(),
            step: error.step().map(|step| step.to_string()),
            message: error.to_string(),
            help: error.help(),
        };
        self.settle(server, attempt, state, Some(error));
    }

    pub(super) fn ended(&self, server: &str, attempt: u64, session: &Session, ended: &Ended) {
        if session.was_closed() {
            return self.settle(server, attempt, ConnectionState::Disconnected, None);
        }
        let error = ConnectionError {
            code: "offline".to_owned(),
            step: None,
            message: format!("the server ended by itself: {ended}"),
            help: Some("it is started again by the next call; nothing is repeated".to_owned()),
        };
        self.settle(server, attempt, ConnectionState::Error, Some(error));
    }
}

impl Gate {
    /// Where the connection of a server stands.
    #[must_use]
    pub fn connection(&self, server: &str) -> Connection {
        self.0.sessions.connections.get(server)
    }

    /// Every change of a connection from now on. A listener that is too slow misses some, and looks again
    /// with [`connection`](Self::connection).
    #[must_use]
    pub fn connection_events(&self) -> broadcast::Receiver<ConnectionEvent> {
        self.0.sessions.connections.events.subscribe()
    }

    /// Starts an enabled server, if it does not run.
    ///
    /// # Errors
    ///
    /// [`GateError`]: not trusted, not enabled, did not start.
    pub async fn connect(&self, server: &str) -> Result<(), GateError> {
        self.session(server, Purpose::Connect).await.map(drop)
    }

    /// Ends a server. It stays enabled; where the host starts servers on use, the next call does.
    pub async fn disconnect(&self, server: &str) {
        self.0.sessions.stop(server).await;
    }
}
