//! The hash of a tool's whole definition.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::{
    canonical::{self, CanonicalError, Hash, hex, sha256, unhex},
    limits::MESSAGE_DEPTH,
};

/// Hash of everything a server says about one tool (name, title, description, schemas,
/// annotations, icons, `_meta`, and whatever else), in canonical form.
///
/// One character more or less is another pin; another order of keys is not.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Pin(Hash);

impl Pin {
    /// The pin of a definition as the server wrote it.
    ///
    /// # Errors
    ///
    /// [`CanonicalError`] where readers could differ in what it says, or it is nested too deep.
    pub fn of(definition: &str) -> Result<Self, CanonicalError> {
        Ok(Self(sha256(&canonical::text(definition, MESSAGE_DEPTH)?)))
    }

    /// Reads the hexadecimal form.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        unhex(text).map(Self)
    }
}

impl fmt::Display for Pin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&hex(&self.0))
    }
}

impl fmt::Debug for Pin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl Serialize for Pin {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Pin {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        Self::parse(&text).ok_or_else(|| serde::de::Error::custom("a pin is 64 hexadecimal digits"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn s24_one_character_anywhere_is_another_pin() {
        let base = r#"{"name":"t","description":"d","inputSchema":{"type":"object"},"annotations":{"readOnlyHint":true},"_meta":{"a":1}}"#;
        let pin = Pin::of(base).unwrap();
        for changed in [
            base.replace("\"d\"", "\"d \""),
            base.replace("object", "Object"),
            base.replace("true", "false"),
            base.replace(":1}", ":1.0}"),
            base.replace("{\"name\"", "{\"title\":\"x\",\"name\""),
        ] {
            assert_ne!(Pin::of(&changed).unwrap(), pin, "{changed}");
        }
        assert_eq!(Pin::of(&base.replace("{\"name\":\"t\",", "{ ").replace("1}}", "1},\"name\":\"t\"}")).unwrap(), pin);
    }
}
