//! How a process is known to belong to one child of one host.
//!
//! A variable in the environment, `<host id>-<host start time>-<number>`: descendants inherit it,
//! and id and start time together name one process until the machine is restarted.

use std::{
    fmt,
    sync::atomic::{AtomicU64, Ordering},
};

use super::table;

/// Where the cookie stands in a child's environment.
pub(crate) const VARIABLE: &str = "PORTCULLIS_COOKIE";

/// One host process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Host {
    pub(crate) id: u32,
    /// In clock ticks since the machine started; 0 where the system does not tell.
    pub(crate) start: u64,
}

impl Host {
    /// This process. Not remembered, since a fork would be another one.
    pub(crate) fn this() -> Self {
        let id = std::process::id();
        Self { id, start: table::start_time(id).unwrap_or_default() }
    }

    pub(crate) fn parse(text: &str) -> Option<Self> {
        let (id, start) = text.split_once('-')?;
        Some(Self { id: number(id)?, start: number(start)? })
    }
}

impl fmt::Display for Host {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}-{}", self.id, self.start)
    }
}

/// One child of one host, and whatever descends from it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Cookie {
    pub(crate) host: Host,
    number: u64,
}

impl Cookie {
    /// One that this host has not used.
    pub(crate) fn next() -> Self {
        static NEXT: AtomicU64 = AtomicU64::new(1);
        Self { host: Host::this(), number: NEXT.fetch_add(1, Ordering::Relaxed) }
    }

    #[cfg(any(test, target_os = "linux"))]
    pub(crate) fn parse(text: &str) -> Option<Self> {
        let (host, n) = text.rsplit_once('-')?;
        Some(Self { host: Host::parse(host)?, number: number(n)? })
    }
}

impl fmt::Display for Cookie {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}-{}", self.host, self.number)
    }
}

/// Digits alone: no sign, no space. What is not exactly a cookie of ours is nobody to end.
fn number<N: std::str::FromStr>(text: &str) -> Option<N> {
    text.bytes().all(|byte| byte.is_ascii_digit()).then(|| text.parse().ok())?
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cookie_reads_back_and_nothing_else_does() {
        let cookie = Cookie::next();
        assert_eq!(Cookie::parse(&cookie.to_string()), Some(cookie));
        assert_ne!(Cookie::next(), cookie);
        for text in ["", "1-2", "1-2-", "-2-3", "1-2-3-4", "+1-2-3", "1- 2-3", "a-2-3", "99999999999-2-3"] {
            assert_eq!(Cookie::parse(text), None, "{text}");
        }
    }
}
