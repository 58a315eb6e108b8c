//! What went wrong, with a code for programs and words for the person.

use http::StatusCode;
use portcullis::{GateError, gate::ErrorClass};
use serde_json::{Value, json};

/// Why an operation did not happen.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ApiError {
    /// The kind: `internal`, `usage`, `authorization`, `unreachable`, `blocked`, `unknown`.
    pub class: String,
    /// Stable, as the command line has it.
    pub code: String,
    /// What was attempted and did not work. Safe to show.
    pub message: String,
    /// What to do.
    pub help: Option<String>,
}

impl ApiError {
    pub(crate) fn usage(message: impl Into<String>) -> Self {
        Self { class: "usage".to_owned(), code: "usage".to_owned(), message: message.into(), help: None }
    }

    pub(crate) fn unknown(message: impl Into<String>) -> Self {
        Self { class: "unknown".to_owned(), code: "unknown-id".to_owned(), message: message.into(), help: None }
    }

    /// The status of the response.
    #[must_use]
    pub fn status(&self) -> StatusCode {
        match self.class.as_str() {
            "usage" => StatusCode::BAD_REQUEST,
            "authorization" | "blocked" => StatusCode::FORBIDDEN,
            "unknown" => StatusCode::NOT_FOUND,
            "unreachable" => StatusCode::BAD_GATEWAY,
            _ => StatusCode::INTERNAL_SERVER_ERROR,
        }
    }

    /// As the body of a response.
    #[must_use]
    pub fn to_json(&self) -> Value {
        let Self { class, code, message, help } = self;
        json!({"error": {"class": class, "code": code, "message": message, "help": help}})
    }

    /// From the body of a response.
    #[must_use]
    pub fn from_json(body: &Value) -> Option<Self> {
        let error = &body["error"];
        let text = |name: &str| error[name].as_str().map(str::to_owned);
        Some(Self { class: text("class")?, code: text("code")?, message: text("message")?, help: text("help") })
    }
}

impl From<GateError> for ApiError {
    fn from(error: GateError) -> Self {
        let mut message = error.to_string();
        let mut source = std::error::Error::source(&error);
        while let Some(cause) = source {
            let text = cause.to_string();
            if !message.contains(&text) {
                message = format!("{message}: {text}");
            }
            source = cause.source();
        }
        let class = match error {
            // It is no id of anything that waits.
            GateError::Question(portcullis::approval::QuestionError::Unknown { .. }) => ErrorClass::Unknown,
            ref other => other.class(),
        };
        Self { class: class.to_string(), code: error.code().to_owned(), message, help: error.help() }
    }
}
