//! Asking whoever sits at the terminal.
//!
//! Standard input and standard error are both terminals, or it is none. What was typed before a
//! question is there does not answer it; so far on Unix only, since the console of Windows cannot
//! be emptied without unsafe code.

use std::{
    io::{self, IsTerminal},
    sync::{Mutex, PoisonError},
};

use portcullis::secret::{SECRET_BYTES, Secret};
use tokio::sync::oneshot;
use zeroize::Zeroizing;

use crate::output::Output;

/// Longest line that counts as an answer, in bytes.
const ANSWER_BYTES: usize = 4096;

/// A terminal with somebody at it.
#[derive(Debug, Clone, Copy)]
pub struct Terminal {
    output: Output,
}

/// The one thread that reads lines. It cannot be stopped while it waits for one, so whoever asks next is
/// answered by it, rather than by a second one that would be left with every other line.
#[derive(Debug)]
struct Lines {
    reads: bool,
    to: Option<oneshot::Sender<io::Result<String>>>,
}

static LINES: Mutex<Lines> = Mutex::new(Lines { reads: false, to: None });

impl Lines {
    fn next() -> oneshot::Receiver<io::Result<String>> {
        let (sender, receiver) = oneshot::channel();
        let mut lines = LINES.lock().unwrap_or_else(PoisonError::into_inner);
        lines.to = Some(sender);
        if !std::mem::replace(&mut lines.reads, true) {
            std::thread::spawn(|| {
                let line = read_line();
                let mut lines = LINES.lock().unwrap_or_else(PoisonError::into_inner);
                lines.reads = false;
                if let Some(to) = lines.to.take() {
                    // Nobody may be waiting any more.
                    let _ = to.send(line);
                }
            });
        }
        receiver
    }
}

impl Terminal {
    /// The terminal of this process, if it has one.
    #[must_use]
    pub fn here(output: Output) -> Option<Self> {
        (io::stdin().is_terminal() && io::stderr().is_terminal()).then_some(Self { output })
    }
    /// One line, without what surrounds it; empty at the end of input.
    ///
    /// Dropping the future stops waiting; what is typed then answers whatever is asked next, unless it was typed
    /// before that.
    ///
    /// # Errors
    ///
    /// What the terminal says.
    pub async fn ask(&self, prompt: &str) -> io::Result<String> {
        forget_what_was_typed()?;
        let _asking = Asking::begin(self.output);
        self.output.prompt(prompt);
        Lines::next().await.unwrap_or_else(|_| Ok(String::new()))
    }

    /// One key, in lower case; `None` for Enter, Escape, the end of input and everything else that is no
    /// character.
    ///
    /// Dropping the future stops waiting, and the terminal is as it was.
    ///
    /// # Errors
    ///
    /// What the terminal says.
    pub async fn key(&self, prompt: &str) -> io::Result<Option<char>> {
        forget_what_was_typed()?;
        let _asking = Asking::begin(self.output);
        let keys = Altered::keys()?;
        self.output.prompt(prompt);
        let (sender, receiver) = oneshot::channel();
        std::thread::spawn(move || {
            // Nobody may be waiting any more.
            let _ = sender.send(read_key());
        });
        let key = receiver.await.unwrap_or(Ok(None))?.map(|key| key.to_ascii_lowercase());
        drop(keys);
        self.output.note(&key.map(String::from).unwrap_or_default());
        Ok(key)
    }

    /// One line that is not shown while it is typed. Not trimmed: spaces may belong to a password.
    ///
    /// Dropping the future shows again what is typed.
    ///
    /// # Errors
    ///
    /// What the terminal says.
    pub async fn ask_unseen(&self, prompt: &str) -> io::Result<Secret> {
        forget_what_was_typed()?;
        let _asking = Asking::begin(self.output);
        let unseen = Altered::unseen()?;
        self.output.prompt(prompt);
        let (sender, receiver) = oneshot::channel();
        std::thread::spawn(move || {
            let _ = sender.send(read_unseen());
        });
        let line = receiver.await.unwrap_or_else(|_| Ok(Secret::default()));
        drop(unseen);
        // The line end that was typed was not shown either.
        self.output.note("");
        line
    }

    /// Whether they say `y` or `yes`.
    ///
    /// # Errors
    ///
    /// What the terminal says.
    pub async fn confirm(&self, question: &str) -> io::Result<bool> {
        let answer = self.ask(&format!("{question} [y/N] ")).await?;
        Ok(matches!(answer.to_lowercase().as_str(), "y" | "yes"))
    }
}

/// As long as it lives, no progress is shown over the question.
struct Asking(Output);

impl Asking {
    fn begin(output: Output) -> Self {
        output.asking(true);
        Self(output)
    }
}

impl Drop for Asking {
    fn drop(&mut self) {
        self.0.asking(false);
    }
}

/// How many columns standard output has, where it is a terminal.
#[must_use]
pub fn width() -> Option<usize> {
    #[cfg(unix)]
    return columns(rustix::termios::tcgetwinsize(rustix::stdio::stdout()));
    #[cfg(not(unix))]
    None
}

/// How many columns standard error has, where it is a terminal.
#[must_use]
pub fn width_of_stderr() -> Option<usize> {
    #[cfg(unix)]
    return columns(rustix::termios::tcgetwinsize(rustix::stdio::stderr()));
    #[cfg(not(unix))]
    None
}

/// Zero stands for a terminal that does not know.
#[cfg(unix)]
fn columns(size: rustix::io::Result<rustix::termios::Winsize>) -> Option<usize> {
    size.ok().map(|size| usize::from(size.ws_col)).filter(|columns| *columns > 0)
}

/// The terminal with something switched off, until this is dropped.
#[cfg(unix)]
struct Altered(rustix::termios::Termios);

#[cfg(unix)]
impl Altered {
    /// Each key is handed on as it is typed, and is not shown.
    fn keys() -> io::Result<Self> {
        use rustix::termios::LocalModes;
        Self::without(LocalModes::ICANON | LocalModes::ECHO)
    }

    /// Nothing that is typed is shown.
    fn unseen() -> io::Result<Self> {
        use rustix::termios::LocalModes;
        Self::without(LocalModes::ECHO | LocalModes::ECHONL)
    }

    fn without(modes: rustix::termios::LocalModes) -> io::Result<Self> {
        use rustix::termios::{OptionalActions, tcgetattr, tcsetattr};

        let before = tcgetattr(rustix::stdio::stdin())?;
        let mut altered = before.clone();
        altered.local_modes.remove(modes);
        tcsetattr(rustix::stdio::stdin(), OptionalActions::Now, &altered)?;
        Ok(Self(before))
    }
}

#[cfg(unix)]
impl Drop for Altered {
    fn drop(&mut self) {
        // A terminal that is gone needs no repair.
        let now = rustix::termios::OptionalActions::Now;
        let _ = rustix::termios::tcsetattr(rustix::stdio::stdin(), now, &self.0);
    }
}

/// Elsewhere a key is a line whose first character counts, and `rpassword` hides by itself.
#[cfg(not(unix))]
struct Altered;

#[cfg(not(unix))]
impl Altered {
    fn keys() -> io::Result<Self> {
        Ok(Self)
    }

    fn unseen() -> io::Result<Self> {
        Ok(Self)
    }
}

#[cfg(unix)]
fn read_key() -> io::Result<Option<char>> {
    let mut byte = [0];
    loop {
        match rustix::io::read(rustix::stdio::stdin(), &mut byte) {
            Ok(1) => return Ok(byte[0].is_ascii_graphic().then(|| char::from(byte[0]))),
            Ok(_) => return Ok(None),
            Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
    }
}

#[cfg(not(unix))]
fn read_key() -> io::Result<Option<char>> {
    read_line().map(|line| line.chars().next())
}

#[cfg(unix)]
fn forget_what_was_typed() -> io::Result<()> {
    Ok(rustix::termios::tcflush(rustix::stdio::stdin(), rustix::termios::QueueSelector::IFlush)?)
}

#[cfg(not(unix))]
fn forget_what_was_typed() -> io::Result<()> {
    Ok(())
}

#[cfg(unix)]
fn read_unseen() -> io::Result<Secret> {
    let bytes = Zeroizing::new(read_bytes(SECRET_BYTES + 1)?);
    Ok(Secret::new(String::from_utf8_lossy(&bytes)))
}

#[cfg(not(unix))]
fn read_unseen() -> io::Result<Secret> {
    rpassword::read_password().map(Secret::new)
}

#[cfg(unix)]
fn read_line() -> io::Result<String> {
    Ok(String::from_utf8_lossy(&read_bytes(ANSWER_BYTES)?).trim().to_owned())
}

/// One line, byte by byte from the descriptor, so that no buffer holds what comes after it.
#[cfg(unix)]
fn read_bytes(limit: usize) -> io::Result<Vec<u8>> {
    let mut line = Vec::new();
    let mut byte = [0];
    loop {
        match rustix::io::read(rustix::stdio::stdin(), &mut byte) {
            Ok(0) => break,
            Ok(_) if byte[0] == b'\n' => break,
            Ok(_) if line.len() < limit => line.push(byte[0]),
            Ok(_) | Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
    }
    Ok(line)
}

#[cfg(not(unix))]
fn read_line() -> io::Result<String> {
    let mut line = String::new();
    let _ = io::stdin().read_line(&mut line)?;
    line.truncate(ANSWER_BYTES.min(line.len()));
    Ok(line.trim().to_owned())
}
