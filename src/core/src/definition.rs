//! One server of a document, normalised, and the hashes that stand for it.

use std::{fmt, sync::Arc};

use hmac::{Hmac, KeyInit, Mac};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use sha2::Sha256;

use crate::{
    canonical::{self, Hash, hex, unhex},
    names,
};

/// The transport fields of one server, in the order of its transport's field table.
pub type Fields = serde_json::Map<String, Value>;

/// Idle limit of one call, in milliseconds; of every transport.
pub const TIMEOUT_MS: &str = "timeoutMs";
/// Limit of connecting and the first list of tools, in milliseconds; of every transport.
pub const STARTUP_TIMEOUT_MS: &str = "startupTimeoutMs";

/// One server: its name as a person wrote it, its transport, and the fields of that transport.
///
/// A document makes these after all its checks; values still hold their references (`${VAR}`).
/// `Debug` prints names only, since fields hold secrets.
#[derive(Clone, PartialEq)]
pub struct Definition {
    name: String,
    kind: String,
    fields: Fields,
}

impl Definition {
    /// A definition as it is, unchecked: for readers of documents and of stores.
    #[must_use]
    pub fn new(name: impl Into<String>, kind: impl Into<String>, fields: Fields) -> Self {
        Self { name: name.into(), kind: kind.into(), fields }
    }

    /// The name in the document; its identity.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The id for model-facing names; see [`names::server_id`].
    #[must_use]
    pub fn id(&self) -> String {
        names::server_id(&self.name)
    }

    /// The name of its transport, such as `stdio`.
    #[must_use]
    pub fn kind(&self) -> &str {
        &self.kind
    }

    /// The fields of its transport, without `type`.
    #[must_use]
    pub fn fields(&self) -> &Fields {
        &self.fields
    }

    /// To fill in what a person left to the store (`${keep}`).
    pub fn fields_mut(&mut self) -> &mut Fields {
        &mut self.fields
    }

    /// A text field.
    #[must_use]
    pub fn text(&self, field: &str) -> Option<&str> {
        self.fields.get(field)?.as_str()
    }

    /// The items of a list of texts; empty where there is none.
    pub fn texts(&self, field: &str) -> impl Iterator<Item = &str> {
        self.fields.get(field).and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str)
    }

    /// The entries of an object of texts, in document order; empty where there is none.
    pub fn entries(&self, field: &str) -> impl Iterator<Item = (&str, &str)> {
        self.fields
            .get(field)
            .and_then(Value::as_object)
            .into_iter()
            .flatten()
            .filter_map(|(name, value)| Some((name.as_str(), value.as_str()?)))
    }

    /// A time limit of the definition.
    #[must_use]
    pub fn millis(&self, field: &str) -> Option<std::time::Duration> {
        self.fields.get(field)?.as_u64().map(std::time::Duration::from_millis)
    }

    /// The fingerprint under a store's key: changes with anything that affects execution, the name
    /// and every value included, and with nothing else (time limits, key order).
    #[must_use]
    pub fn fingerprint(&self, key: &StoreKey) -> Fingerprint {
        let mut bytes = Vec::new();
        canonical::value(&Value::from(self.name.as_str()), &mut bytes);
        canonical::value(&Value::from(self.kind.as_str()), &mut bytes);
        let mut fields = self.fields.clone();
        fields.retain(|field, _| field != TIMEOUT_MS && field != STARTUP_TIMEOUT_MS);
        canonical::value(&Value::Object(fields), &mut bytes);
        Fingerprint(key.mac("definition", &bytes))
    }
}

impl fmt::Debug for Definition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Definition")
            .field("name", &self.name)
            .field("kind", &self.kind)
            .field("fields", &self.fields.keys().collect::<Vec<_>>())
            .finish()
    }
}

/// The key of one store: makes fingerprints useless for guessing a secret when shown, and records
/// impossible to forge for whoever can write the store's file but not read its key.
#[derive(Clone)]
pub struct StoreKey(Arc<Keyed>);

struct Keyed {
    bytes: [u8; 32],
    /// The first half of every HMAC, done once.
    mac: Hmac<Sha256>,
}

impl StoreKey {
    /// A key from its bytes.
    #[must_use]
    pub fn new(bytes: [u8; 32]) -> Self {
        let Ok(mac) = Hmac::new_from_slice(&bytes) else { unreachable!("HMAC takes keys of every length") };
        Self(Arc::new(Keyed { bytes, mac }))
    }

    /// The bytes, to be kept where only the person can read them.
    #[must_use]
    pub fn bytes(&self) -> &[u8; 32] {
        &self.0.bytes
    }

    /// HMAC-SHA256 of `bytes` for one purpose; another purpose never gives the same.
    #[must_use]
    pub fn mac(&self, purpose: &str, bytes: &[u8]) -> Hash {
        let mut mac = self.0.mac.clone();
        mac.update(&(purpose.len() as u64).to_be_bytes());
        mac.update(purpose.as_bytes());
        mac.update(bytes);
        mac.finalize().into_bytes().into()
    }

    /// Compares in constant time.
    #[must_use]
    pub fn verify(&self, purpose: &str, bytes: &[u8], expected: &Hash) -> bool {
        let actual = self.mac(purpose, bytes);
        actual.iter().zip(expected).fold(0, |difference, (a, b)| difference | (a ^ b)) == 0
    }
}

impl fmt::Debug for StoreKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("StoreKey(…)")
    }
}

/// What trust, grants, pins and cached tools hang off; 64 hexadecimal digits when shown.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Fingerprint(Hash);

impl Fingerprint {
    /// What stands in its place where a tool is of the host itself.
    pub(crate) fn of_host(key: &StoreKey) -> Self {
        Self(key.mac("host", b""))
    }

    /// Reads the hexadecimal form; `None` unless it is exactly that.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        unhex(text).map(Self)
    }

    /// Its bytes.
    #[must_use]
    pub fn as_bytes(&self) -> &Hash {
        &self.0
    }
}

impl fmt::Display for Fingerprint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&hex(&self.0))
    }
}

impl fmt::Debug for Fingerprint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl Serialize for Fingerprint {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Fingerprint {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        Self::parse(&text).ok_or_else(|| serde::de::Error::custom("a fingerprint is 64 hexadecimal digits"))
    }
}

/// A value that a document asks a person for once; referred to as `${input:id}`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Input {
    /// Its id, unique in the document.
    pub id: String,
    /// How it is asked.
    #[serde(rename = "type")]
    pub kind: InputKind,
    /// The question.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// The answer when a person gives none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub default: Option<String>,
    /// Whether it is typed unseen.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub password: bool,
    /// What can be picked.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub options: Vec<String>,
}

/// How an [`Input`] is asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum InputKind {
    /// Typed text.
    PromptString,
    /// One of its options.
    PickString,
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    fn fields(value: &Value) -> Fields {
        value.as_object().cloned().unwrap()
    }

    fn key() -> StoreKey {
        StoreKey::new([7; 32])
    }

    fn print(name: &str, kind: &str, value: impl std::borrow::Borrow<Value>) -> Fingerprint {
        Definition::new(name, kind, fields(value.borrow())).fingerprint(&key())
    }

    #[test]
    fn s1_whatever_affects_execution_changes_the_fingerprint() {
        let base = || json!({"command": "a", "args": ["1", "2"], "cwd": "/x", "env": {"K": "v", "L": "w"}});
        let trusted = print("s", "stdio", base());
        let changes: [fn(&mut Value); 8] = [
            |v| v["command"] = json!("b"),
            |v| v["args"] = json!(["1", "3"]),
            |v| v["args"] = json!(["2", "1"]),
            |v| v["args"] = json!(["1", "2", ""]),
            |v| v["cwd"] = json!("/y"),
            |v| v["env"] = json!({"K": "v", "M": "w"}),
            |v| v["env"] = json!({"K": "v", "L": "W"}),
            |v| v["url"] = json!("http://x"),
        ];
        for change in changes {
            let mut value = base();
            change(&mut value);
            assert_ne!(print("s", "stdio", value.clone()), trusted, "{value}");
        }
        assert_ne!(print("s", "other", base()), trusted);
        assert_ne!(print("S", "stdio", base()), trusted);
    }

    #[test]
    fn s1_what_does_not_affect_execution_keeps_it() {
        let trusted = print("s", "stdio", json!({"command": "a", "env": {"K": "v", "L": "w"}}));
        let same = print(
            "s",
            "stdio",
            json!({"timeoutMs": 5, "env": {"L": "w", "K": "v"}, "command": "a", "startupTimeoutMs": 6}),
        );
        assert_eq!(same, trusted);
    }

    #[test]
    fn s2_another_store_gives_another_fingerprint() {
        let definition = Definition::new("s", "stdio", fields(&json!({"command": "a", "env": {"PIN": "123456"}})));
        assert_ne!(definition.fingerprint(&key()), definition.fingerprint(&StoreKey::new([8; 32])));
    }

    #[test]
    fn debug_shows_no_value() {
        let definition = Definition::new("s", "stdio", fields(&json!({"command": "a", "env": {"K": "canary-7f3"}})));
        assert!(!format!("{definition:?}").contains("canary-7f3"));
    }

    proptest! {
        #[test]
        fn s2_boundaries_between_arguments_and_variables_count(
            a in prop::collection::vec("[ab\n\0]{0,2}", 0..4), b in prop::collection::vec("[ab\n\0]{0,2}", 0..4),
            c in prop::collection::btree_map("[ab]{1,2}", "[ab\0]{0,2}", 0..3), d in prop::collection::btree_map("[ab]{1,2}", "[ab\0]{0,2}", 0..3),
        ) {
            let same = a == b && c == d;
            let one = print("s", "stdio", json!({"command": "x", "args": a, "env": c}));
            let two = print("s", "stdio", json!({"command": "x", "args": b, "env": d}));
            prop_assert_eq!(one == two, same);
        }
    }
}
