//! Files that may hold secrets: refused unless a person says otherwise.

use std::path::Path;

use globset::{GlobBuilder, GlobSet, GlobSetBuilder};

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
/// How a key in text form begins.
const BEGIN: &str = "-----BEGIN ";
/// How far behind that its first line stands, in characters, and how long that is at least.
const KEY_WITHIN: usize = 400;
const KEY_RUN: usize = 32;
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
            // `*` stays in its folder; `**` does not.
            let glob = GlobBuilder::new(pattern).literal_separator(true).build();
            set.add(glob.map_err(|error| error.to_string())?);
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
    let variables = name.starts_with(".env") || name.ends_with(".env");
    let is_example = |end| name.strip_suffix(end).is_some_and(|rest| rest.ends_with(['.', '-', '_']));
    if variables && !EXAMPLES.iter().any(|end| is_example(*end)) {
        return Some("files of this name hold variables with secrets");
    }
    if NAMES.contains(&name.as_str()) || ENDS.iter().any(|end| name.ends_with(end)) {
        return Some("files of this name hold credentials or keys");
    }
    None
}

/// Why a text is a secret, whatever its name.
pub(crate) fn by_content(text: &str) -> Option<&'static str> {
    let mut begins = text.match_indices(BEGIN).filter_map(|(at, _)| {
        let (label, rest) = text[at + BEGIN.len()..].split_once("-----")?;
        (label.len() < 64 && label.contains("PRIVATE KEY")).then_some((at, rest))
    });
    let is_key = |(at, rest): (usize, &str)| {
        let begins_line = at == 0 || text[..at].ends_with('\n');
        begins_line || holds_key(rest)
    };
    begins.any(is_key).then_some("it holds a private key")
}

/// Whether the beginning of a key follows, in whatever it is quoted or indented: words about keys hold none.
fn holds_key(rest: &str) -> bool {
    let near: String = rest.chars().take(KEY_WITHIN).collect();
    // The `n` of a line end in a quoted text is none of the key.
    let near = near.replace("\\n", "\n");
    near.split(|c: char| !(c.is_ascii_alphanumeric() || "+/=".contains(c))).any(|run| run.len() >= KEY_RUN)
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
            ".env-prod",
            ".env_local",
            ".environment",
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
            ".env-example",
            ".envrc.template",
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
    fn s52_a_private_key_is_known_wherever_it_stands() {
        let key = "MIIEvQIBADANBgkqhkiG9w0BAQEFAASCBKcwggSjAgEAAoIBAQ";
        for secret in [
            format!(r#"{{"private_key": "-----BEGIN PRIVATE KEY-----\n{key}\n-----END PRIVATE KEY-----\n"}}"#),
            format!("tls:\n  key: |\n    -----BEGIN RSA PRIVATE KEY-----\n    {key}\n"),
            format!("KEY=\"-----BEGIN EC PRIVATE KEY-----\n{key}\""),
            format!("k = \"-----BEGIN RSA PRIVATE KEY-----\\n\" +\n  \"{key}\""),
            format!(
                "  -----BEGIN RSA PRIVATE KEY-----\n  Proc-Type: 4,ENCRYPTED\n  DEK-Info: AES-128-CBC,00\n\n  {key}"
            ),
        ] {
            assert!(by_content(&secret).is_some(), "{secret}");
        }
        for plain in [
            "A key begins with `-----BEGIN PRIVATE KEY-----` on a line of its own.".to_owned(),
            r#"if text.contains("-----BEGIN RSA PRIVATE KEY-----") { return Err(refused(text)); }"#.to_owned(),
            format!("  -----BEGIN CERTIFICATE-----\n  {key}"),
        ] {
            assert!(by_content(&plain).is_none(), "{plain}");
        }
    }

    #[test]
    fn s52_a_person_allows_by_pattern() {
        let allowed = Allowed::new(["certs/*.pem", ".env.test"]).unwrap();
        assert!(allowed.has(Path::new("certs/a.pem")) && allowed.has(Path::new(".env.test")));
        assert!(
            !allowed.has(Path::new("certs/deep/a.pem"))
                && !allowed.has(Path::new("b.pem"))
                && !allowed.has(Path::new(".env"))
        );
        assert!(Allowed::new(["[a"]).unwrap_err().contains("[a"));
    }
}
