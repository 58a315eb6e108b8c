//! The keys that exist, and what each takes.

use figment::value::{Dict, Num, Value};

use crate::{Origin, SettingsError};

/// One setting.
#[derive(Debug)]
pub struct SettingKey {
    /// Its name in the file and for `--set`.
    pub name: &'static str,
    /// What it takes.
    pub kind: Kind,
    /// What it is for.
    pub summary: &'static str,
}

/// What a setting takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// A whole number above zero.
    Number,
    /// A whole number; zero stands for never.
    NumberOrNever,
    /// Text.
    Text,
    /// One of these.
    OneOf(&'static [&'static str]),
    /// Texts; with commas between in the environment and on the command line.
    List,
}

const fn number(name: &'static str, summary: &'static str) -> SettingKey {
    SettingKey { name, kind: Kind::Number, summary }
}

/// All settings.
pub const KEYS: &[SettingKey] = &[
    number("limits.startMs", "from starting a server to its list of tools"),
    number("limits.idleMs", "a call without an answer and without progress"),
    number("limits.absoluteMs", "a call altogether"),
    number("limits.questionMs", "a question to you"),
    number("limits.stopGraceMs", "between asking a server to end and ending it"),
    number("limits.messageBytes", "one message of a server"),
    number("limits.pages", "pages of one list"),
    number("limits.items", "items of one list"),
    number("limits.parallelStarts", "servers that are being started at one time"),
    SettingKey { name: "mcpPort", kind: Kind::Number, summary: "where `serve` listens" },
    SettingKey {
        name: "limits.idleStopMs",
        kind: Kind::NumberOrNever,
        summary: "how long a server runs of which nobody wants anything; 0: until the host ends",
    },
    SettingKey {
        name: "startServers",
        kind: Kind::OneOf(&["on-use", "on-connect"]),
        summary: "whether the first call starts an enabled server, or you do",
    },
    SettingKey {
        name: "lifecycle",
        kind: Kind::OneOf(&["auto", "handshake", "stateless"]),
        summary: "how conversations begin with a server of which nothing is known",
    },
    SettingKey {
        name: "nameStyle",
        kind: Kind::OneOf(&["prefixed", "short"]),
        summary: "whether names for a model start with `mcp__`",
    },
    SettingKey {
        name: "secrets",
        kind: Kind::OneOf(&["auto", "keyring", "file"]),
        summary: "where secrets and the store's key are kept; `auto`: in the keyring where there is one",
    },
    SettingKey { name: "locked", kind: Kind::Text, summary: "a lock file; whatever differs from it is refused" },
    SettingKey {
        name: "loginPath",
        kind: Kind::OneOf(&["auto", "never"]),
        summary: "whether a host that was started without your shell's PATH asks your login shell for it",
    },
    SettingKey { name: "projectRoots", kind: Kind::List, summary: "folders below which `projects scan` looks" },
    SettingKey {
        name: "projectFilesAllow",
        kind: Kind::List,
        summary: "patterns of files of projects that are given out though they may hold secrets",
    },
    SettingKey { name: "log", kind: Kind::Text, summary: "filter of the log on standard error" },
];

impl SettingKey {
    /// Its variable: `PORTCULLIS_START_MS` of `limits.startMs`.
    #[must_use]
    pub fn variable(&self) -> String {
        variable(self.name)
    }

    pub(crate) fn expected(&self) -> String {
        match self.kind {
            Kind::Number => "a whole number above zero".to_owned(),
            Kind::NumberOrNever => "a whole number, 0 for never".to_owned(),
            Kind::Text => "text".to_owned(),
            Kind::List => "a list of texts".to_owned(),
            Kind::OneOf(all) => all.iter().map(|one| format!("`{one}`")).collect::<Vec<_>>().join(" or "),
        }
    }

    pub(crate) fn takes(&self, value: &Value) -> bool {
        match (self.kind, value) {
            (Kind::Number, Value::Num(_, number)) => positive(*number),
            (Kind::NumberOrNever, Value::Num(_, number)) => {
                positive(*number) || number.to_u128() == Some(0) || number.to_i128() == Some(0)
            }
            (Kind::Text, Value::String(..)) => true,
            (Kind::List, Value::Array(_, items)) => items.iter().all(|item| matches!(item, Value::String(..))),
            (Kind::OneOf(all), Value::String(_, text)) => all.contains(&text.as_str()),
            _ => false,
        }
    }

    /// Reads text of the environment or a flag.
    pub(crate) fn read(&self, text: &str, origin: impl Fn() -> Origin) -> Result<Value, SettingsError> {
        let value = match self.kind {
            Kind::Number | Kind::NumberOrNever => text.trim().parse::<u64>().ok().map(Value::from),
            Kind::Text | Kind::OneOf(_) => Some(Value::from(text)),
            Kind::List => {
                let items = text.split(',').map(str::trim).filter(|item| !item.is_empty());
                Some(Value::from(items.map(Value::from).collect::<Vec<_>>()))
            }
        };
        value.filter(|value| self.takes(value)).ok_or_else(|| SettingsError::Value {
            key: self.name.to_owned(),
            expected: self.expected(),
            origin: origin(),
        })
    }
}

fn positive(number: Num) -> bool {
    number.to_u128().is_some_and(|number| (1..=u128::from(u64::MAX)).contains(&number))
        || number.to_i128().is_some_and(|number| (1..=i128::from(u64::MAX)).contains(&number))
}

/// `PORTCULLIS_NAME_STYLE` of `nameStyle`; the group is left out.
pub(crate) fn variable(name: &str) -> String {
    let mut variable = "PORTCULLIS_".to_owned();
    for character in name.rsplit('.').next().unwrap_or(name).chars() {
        if character.is_ascii_uppercase() {
            variable.push('_');
        }
        variable.push(character.to_ascii_uppercase());
    }
    variable
}

/// The name that looks most like `name`, if any does.
pub(crate) fn nearest(name: &str, of: impl Fn(&SettingKey) -> String) -> Option<&'static str> {
    let last = |text: &str| text.rsplit('.').next().unwrap_or(text).to_lowercase();
    let wanted = last(name);
    KEYS.iter()
        .map(|key| (strsim::jaro_winkler(&wanted, &last(&of(key))), key))
        .filter(|(likeness, _)| *likeness > 0.8)
        .max_by(|a, b| a.0.total_cmp(&b.0))
        .map(|(_, key)| key.name)
}

/// Puts a value under a name with dots.
pub(crate) fn put(values: &mut Dict, name: &str, value: Value) {
    match name.split_once('.') {
        None => {
            values.insert(name.to_owned(), value);
        }
        Some((group, rest)) => {
            let group = values.entry(group.to_owned()).or_insert_with(|| Value::from(Dict::new()));
            if let Value::Dict(_, inner) = group {
                put(inner, rest, value);
            }
        }
    }
}

/// All values with their names, groups joined by dots.
pub(crate) fn flat(values: &Dict) -> Vec<(String, &Value)> {
    let mut found = Vec::new();
    for (name, value) in values {
        match value {
            Value::Dict(_, inner) => {
                found.extend(flat(inner).into_iter().map(|(rest, value)| (format!("{name}.{rest}"), value)));
            }
            _ => found.push((name.clone(), value)),
        }
    }
    found
}
