//! The table of operations.

macro_rules! operations {
    (@tool $tool:literal) => { Some($tool) };
    (@tool) => { None };
    ($($id:literal $grade:ident $verb:ident $path:literal $command:literal $(as $tool:literal)? $summary:literal $input:ty => |$gateway:ident, $in:pat_param| $body:expr;)+) => {
        pub(super) const TABLE: &[super::Operation] = &[$(super::Operation {
            id: $id,
            summary: $summary,
            grade: super::Grade::$grade,
            verb: super::Verb::$verb,
            path: $path,
            command: $command,
            tool: operations!(@tool $($tool)?),
            input: || schemars::schema_for!($input).to_value(),
            run: |$gateway, input| Box::pin(async move {
                let $in: $input = super::read(input)?;
                $body
            }),
        },)+];
    };
}

mod decisions;
mod groups;
mod offers;
mod projects;
mod secrets;
mod servers;

use futures::future::BoxFuture;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize, de::DeserializeOwned};
use serde_json::Value;

use super::ApiError;
use crate::routes::Gateway;

/// How much harm an operation can do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Grade {
    /// Changes nothing.
    Read,
    /// Changes something that a person can change back; an agent needs an approval.
    Write,
    /// Decides what may run or be called: a person's alone, never offered to an agent.
    Dangerous,
}

impl Grade {
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Read => "read",
            Self::Write => "write",
            Self::Dangerous => "dangerous",
        }
    }
}

/// The method of a route.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verb {
    /// `GET`
    Get,
    /// `POST`
    Post,
    /// `DELETE`
    Delete,
}

impl Verb {
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Get => "get",
            Self::Post => "post",
            Self::Delete => "delete",
        }
    }
}

/// Carries an operation out on its input; JSON text.
type Run = fn(Gateway, Value) -> BoxFuture<'static, Result<String, ApiError>>;

/// Something that can be done.
#[derive(Debug, Clone, Copy)]
pub struct Operation {
    /// Its stable name.
    pub id: &'static str,
    /// What it does.
    pub summary: &'static str,
    /// How much harm it can do.
    pub grade: Grade,
    /// The method of its route.
    pub verb: Verb,
    /// Its route, below the root of the API.
    pub path: &'static str,
    /// The command that does the same.
    pub command: &'static str,
    /// The tool by which an agent does the same, if it may.
    pub tool: Option<&'static str>,
    /// The JSON Schema of its input: parameters of path and query, members of the body.
    pub input: fn() -> Value,
    run: Run,
}

impl Operation {
    /// Carries it out on its input: parameters of path and query and members of the body as one object. JSON text.
    ///
    /// # Errors
    ///
    /// [`ApiError`]
    pub async fn carry_out(&self, gateway: &Gateway, input: Value) -> Result<String, ApiError> {
        (self.run)(gateway.clone(), input).await
    }
}

fn read<T: DeserializeOwned>(input: Value) -> Result<T, ApiError> {
    serde_json::from_value(input).map_err(|error| ApiError::usage(format!("the input does not fit: {error}")))
}

fn text(value: &impl Serialize) -> Result<String, ApiError> {
    serde_json::to_string(value).map_err(|error| ApiError::usage(error.to_string()))
}

/// Nothing to say.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Nothing {}

/// One server.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct OneServer {
    /// Its name in the document.
    name: String,
}

/// Everything that can be done through the management API.
pub fn operations() -> impl Iterator<Item = &'static Operation> {
    [servers::TABLE, offers::TABLE, decisions::TABLE, secrets::TABLE, projects::TABLE, groups::TABLE]
        .into_iter()
        .flatten()
}
