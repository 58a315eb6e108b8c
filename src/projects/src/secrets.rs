//! Files that may hold secrets: refused unless a person says otherwise.

use std::path::Path;

use globset::{Glob, GlobSet, GlobSetBuilder};

/// Folders of which nothing is given out.
const FOLDERS: &[&str] = &[".git", ".ssh", ".gnupg", ".aws", ".azure", ".kube", ".docker", ".terraform"];
/// Names of files.
const NAMES: &[&str] = &[
    ".npmrc",
    ".yarnrc.yml",
    ".netrc",
    "_netrc",
    ".pypirc",
    ".git-credentials",
    ".htpasswd",
    ".pgpass",
    ".my.cnf",
    ".dockercfg",
    "credentials.json",
    "service-account.json",
    "terraform.tfstate",
    "id_rsa",
    "id_dsa",
    "id_ecdsa",
    "id_ed25519",
];
/// Ends of names.
const ENDS: &[&str] =
    &[".pem", ".key", ".p12", ".pfx", ".jks", ".keystore", ".kdbx", ".ppk", ".tfstate", ".tfvars", ".age", ".gpg"];
/// Files of variables that are there to be shown.
const EXAMPLES: &[&str] = &["example", "sample", "template", "dist"];

/// What a person allows nevertheless.
#[derive(Debug, Clone, Default)]
pub struct Allowed(GlobSet);

impl Allowed {
    /// From patterns of paths below the project's folder, such as `certs/*.pem`.
    ///
    /// # Errors
    ///
    /// The pattern that is none, and why.
    pub fn new<'p>(patterns: impl IntoIterator<Item = &'p str>) -> Result<Self, String> {
        let mut set = GlobSetBuilder::new();
        for pattern in patterns {
            set.add(Glob::new(pattern).map_err(|error| error.to_string())?);
        }
        Ok(Self(set.build().map_err(|error| error.to_string())?))
    }

    pub(crate) fn has(&self, path: &Path) -> bool {
        self.0.is_match(path)
    }
}

/// Why a file of this path may hold secrets.
pub(crate) fn by_name(path: &Path) -> Option<&'static str> {
    let mut parts = path.iter().map(|part| part.to_string_lossy().to_lowercase()).collect::<Vec<_>>();
    let name = parts.pop().unwrap_or_default();
    // A file may be called like a folder of theirs.
    if parts.iter().any(|part| FOLDERS.contains(&part.as_str())) || name == ".git" {
        return Some("it lies in a folder of credentials or of version control");
    }
    let variables = name == ".env" || name == ".envrc" || name.starts_with(".env.") || name.ends_with(".env");
    if variables && !EXAMPLES.iter().any(|end| name.ends_with(&format!(".{end}"))) {
        return Some("files of this name hold variables with secrets");
    }
    if NAMES.contains(&name.as_str()) || ENDS.iter().any(|end| name.ends_with(end)) {
        return Some("files of this name hold credentials or keys");
    }
    None
}

/// Why a text is a secret, whatever its name.
pub(crate) fn by_content(text: &str) -> Option<&'static str> {
    let begins = text.lines().filter(|line| line.starts_with("-----BEGIN "));
    begins.into_iter().any(|line| line.contains("PRIVATE KEY")).then_some("it holds a private key")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn s52_files_of_secrets_are_known_by_their_names() {
        for secret in [
            ".env",
            ".env.local",
            "a/.env.production",
            "prod.env",
            ".envrc",
            ".git/config",
            "a/.git/HEAD",
            ".ssh/config",
            "id_rsa",
            "keys/server.pem",
            "a.KEY",
            ".NPMRC",
            ".aws/credentials",
            "terraform.tfstate",
            ".git",
        ] {
            assert!(by_name(Path::new(secret)).is_some(), "{secret}");
        }
        for plain in [
            ".env.example",
            ".env.sample",
            "src/env.rs",
            ".gitignore",
            ".github/workflows/ci.yml",
            "id_rsa.pub",
            "keyboard.rs",
            "environment.md",
        ] {
            assert!(by_name(Path::new(plain)).is_none(), "{plain}");
        }
        assert!(by_content("x\n-----BEGIN OPENSSH PRIVATE KEY-----\n").is_some());
        assert!(by_content("-----BEGIN CERTIFICATE-----\n").is_none());
    }

    #[test]
    fn s52_a_person_allows_by_pattern() {
        let allowed = Allowed::new(["certs/*.pem", ".env.test"]).unwrap();
        assert!(allowed.has(Path::new("certs/a.pem")) && allowed.has(Path::new(".env.test")));
        assert!(!allowed.has(Path::new("b.pem")) && !allowed.has(Path::new(".env")));
        assert!(Allowed::new(["[a"]).unwrap_err().contains("[a"));
    }
}
