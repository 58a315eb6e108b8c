//! Secrets, by name.

use portcullis::{
    gate::SecretView,
    secret::{Secret, SecretKind},
};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};

use super::{Nothing, text};

operations! {
    "secrets.list" Read Get "/secrets" "secret" "The names of secrets, where each lies and which servers use it; never a value"
    Nothing => |gateway, _| {
        text(&gateway.0.gate.secrets().await?.iter().map(SecretView::to_json).collect::<Vec<_>>())
    };
    "secrets.set" Dangerous Post "/secrets/{kind}/{name}" "secret" "Keeps a secret, or the answer to an input"
    SetsSecret => |gateway, SetsSecret { kind, name, value }| {
        let gate = &gateway.0.gate;
        let place = match kind {
            OfSecret::Secret => gate.set_secret(&name, value.0).await?,
            OfSecret::Input => gate.set_input(&name, value.0).await?,
        };
        text(&json!({"name": name, "kind": SecretKind::from(kind).to_string(), "place": place.to_string()}))
    };
    "secrets.remove" Dangerous Delete "/secrets/{kind}/{name}" "secret" "Forgets a secret, or the answer to an input"
    OneSecret => |gateway, OneSecret { kind, name }| {
        text(&gateway.0.gate.remove_secret(kind.into(), &name).await?.to_json())
    };
}

/// What a secret is for.
#[derive(Debug, Clone, Copy, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
enum OfSecret {
    /// `${secret:NAME}`
    Secret,
    /// `${input:ID}`
    Input,
}

impl From<OfSecret> for SecretKind {
    fn from(kind: OfSecret) -> Self {
        match kind {
            OfSecret::Secret => Self::Secret,
            OfSecret::Input => Self::Input,
        }
    }
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct OneSecret {
    /// `secret` or `input`.
    kind: OfSecret,
    /// Its name, or the id of the input.
    name: String,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct SetsSecret {
    /// `secret` or `input`.
    kind: OfSecret,
    /// Its name, or the id of the input.
    name: String,
    /// Its value; it is never given out again.
    #[schemars(with = "String")]
    value: Unseen,
}

/// A value that no error repeats.
#[derive(Debug)]
struct Unseen(Secret);

impl<'de> Deserialize<'de> for Unseen {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        match Value::deserialize(deserializer)? {
            Value::String(text) => Ok(Self(Secret::new(text))),
            _ => Err(serde::de::Error::custom("`value` is a text")),
        }
    }
}
