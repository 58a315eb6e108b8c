//! Results as the server wrote them, byte by byte.

use serde::Deserialize;

/// A result exactly as the server wrote it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RawResult {
    text: String,
    untouched: bool,
}

impl RawResult {
    /// JSON that was read as such.
    pub(crate) fn new(text: String, untouched: bool) -> Self {
        Self { text, untouched }
    }

    /// A result that another gate handed on.
    #[must_use]
    pub fn from_text(text: String) -> Self {
        Self { text, untouched: true }
    }

    /// The JSON text.
    #[must_use]
    pub fn get(&self) -> &str {
        &self.text
    }

    /// The JSON text.
    #[must_use]
    pub fn into_string(self) -> String {
        self.text
    }

    /// Whether it is what the server wrote, byte by byte; not so on a link that only hands over
    /// rmcp's typed model.
    #[must_use]
    pub fn is_untouched(&self) -> bool {
        self.untouched
    }

    /// Whether the tool itself reports a failure (`isError`).
    #[must_use]
    pub fn is_error(&self) -> bool {
        #[derive(Deserialize)]
        struct Flag {
            #[serde(default, rename = "isError")]
            is_error: bool,
        }
        // Most results are no failure and need not be read again; a name may be written with escapes.
        let has = |part: &str| memchr::memmem::find(self.text.as_bytes(), part.as_bytes()).is_some();
        (has("isError") || has(r"\u00")) && serde_json::from_str::<Flag>(&self.text).is_ok_and(|flag| flag.is_error)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failure_is_a_member_of_the_result_itself() {
        for (text, expected) in [
            (r#"{"content":[],"isError":true}"#, true),
            (r#"{"content":[],"isError" : true}"#, true),
            (r#"{"content":[],"isError":false}"#, false),
            (r#"{"content":[{"isError":true}]}"#, false),
            (r#"{"content":["\"isError\":true"]}"#, false),
            (r#"{"content":[]}"#, false),
            (r#"{"content":[],"is\u0045rror":true}"#, true),
        ] {
            assert_eq!(RawResult::new(text.to_owned(), true).is_error(), expected, "{text}");
        }
    }
}
