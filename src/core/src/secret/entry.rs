//! What a secret is called.

use std::fmt;

use crate::display::is_hidden;

/// Longest name, in bytes.
const NAME_BYTES: usize = 128;

/// One secret of one store.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct SecretEntry {
    /// The id of the store it belongs to: [`State::id`](crate::store::State::id).
    pub store: String,
    /// What kind it is.
    pub kind: SecretKind,
    /// Its name among those of its kind.
    pub name: String,
}

/// What a secret is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
#[non_exhaustive]
pub enum SecretKind {
    /// `${secret:NAME}`.
    Secret,
    /// The answer to `${input:ID}`.
    Input,
    /// The token of a group's endpoint.
    Group,
}

impl SecretKind {
    const ALL: [Self; 3] = [Self::Secret, Self::Input, Self::Group];

    fn word(self) -> &'static str {
        match self {
            Self::Secret => "secret",
            Self::Input => "input",
            Self::Group => "group",
        }
    }
}

impl fmt::Display for SecretKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.word())
    }
}

impl SecretEntry {
    /// `${secret:name}` of the store with this id.
    #[must_use]
    pub fn secret(store: &str, name: &str) -> Self {
        Self { store: store.to_owned(), kind: SecretKind::Secret, name: name.to_owned() }
    }

    /// The answer to the input `id` in the store with this id.
    #[must_use]
    pub fn input(store: &str, id: &str) -> Self {
        Self { store: store.to_owned(), kind: SecretKind::Input, name: id.to_owned() }
    }

    /// Its name in a keyring or a file: `<store>/<kind>/<name>`.
    #[must_use]
    pub fn account(&self) -> String {
        format!("{}/{}/{}", self.store, self.kind, self.name)
    }

    /// Reads an [`account`](Self::account).
    #[must_use]
    pub fn parse(account: &str) -> Option<Self> {
        let mut parts = account.splitn(3, '/');
        let (store, kind, name) = (parts.next()?, parts.next()?, parts.next()?);
        let kind = SecretKind::ALL.into_iter().find(|known| known.word() == kind)?;
        Some(Self { store: store.to_owned(), kind, name: name.to_owned() })
    }
}

impl fmt::Display for SecretEntry {
    /// As a document refers to it.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "${{{}:{}}}", self.kind, crate::display::escape(&self.name))
    }
}

/// Why a secret cannot have a name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum NameProblem {
    /// There is none.
    #[error("a name is needed")]
    Empty,
    /// A document could not refer to it.
    #[error("a name holds no `}}`, since a document writes `${{secret:NAME}}`")]
    Brace,
    /// Nobody could see what it is.
    #[error("a name holds no characters that cannot be seen, and no spaces at its ends")]
    Hidden,
    /// Keyrings have limits.
    #[error("a name has {NAME_BYTES} bytes at most")]
    Long,
}

/// What keeps `name` from being the name of a secret.
#[must_use]
pub fn name_problem(name: &str) -> Option<NameProblem> {
    if name.is_empty() {
        Some(NameProblem::Empty)
    } else if name.contains('}') {
        Some(NameProblem::Brace)
    } else if name.trim() != name || name.chars().any(is_hidden) {
        Some(NameProblem::Hidden)
    } else {
        (name.len() > NAME_BYTES).then_some(NameProblem::Long)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_account_carries_the_store_and_reads_back() {
        for entry in [SecretEntry::secret("ab12", "git/hub TOKEN"), SecretEntry::input("ab12", "a/b")] {
            assert!(entry.account().starts_with("ab12/"));
            assert_eq!(SecretEntry::parse(&entry.account()), Some(entry));
        }
        assert_eq!(SecretEntry::parse("ab12/other/x"), None);
        assert_eq!(SecretEntry::secret("ab12", "A").to_string(), "${secret:A}");
    }

    #[test]
    fn names_that_nobody_could_write_or_see_are_refused() {
        for (name, problem) in [
            ("", NameProblem::Empty),
            ("a}b", NameProblem::Brace),
            (" a", NameProblem::Hidden),
            ("a\u{200b}", NameProblem::Hidden),
            ("a\nb", NameProblem::Hidden),
        ] {
            assert_eq!(name_problem(name), Some(problem), "{name:?}");
        }
        assert_eq!(name_problem(&"x".repeat(NAME_BYTES)), None);
        assert_eq!(name_problem(&"x".repeat(NAME_BYTES + 1)), Some(NameProblem::Long));
        assert_eq!(name_problem("github.TOKEN é"), None);
    }
}
