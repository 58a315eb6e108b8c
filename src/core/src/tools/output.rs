//! Whether the structured part of a result fits what its tool says of it.
//!
//! Servers write schemas, so whatever a schema costs is bounded: its length, the references in it, the steps
//! of a pattern, and the time of all of it together. Nothing is ever fetched. What could not be checked does
//! not fit.

use std::{
    collections::BTreeSet,
    fmt,
    sync::{Arc, OnceLock},
};

use jsonschema::{PatternOptions, Retrieve, Uri, ValidationError, Validator, error::ValidationErrorKind};
use serde::Deserialize;
use serde_json::{Value, value::RawValue};
use tokio::sync::{Semaphore, oneshot};

use crate::{display, limits};

/// Schemas that the checker brings along.
const KNOWN: [&str; 2] = ["http://json-schema.org/draft-", "https://json-schema.org/draft/"];
/// Enough for as many levels of schemas and values as the limits leave room for.
const STACK: usize = 128 << 20;
/// Checks of one tool's results at one time.
const PARALLEL: usize = 4;
/// Bytes of what a message says of a place; the names in it are the server's.
const PLACE_BYTES: usize = 200;

/// Why a result is not handed on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Misfit {
    /// There is no structured part.
    Missing,
    /// It differs from the schema.
    Differs {
        /// Where in the structured part, as a JSON pointer.
        at: String,
        /// What is wrong there; no value is repeated.
        what: String,
    },
    /// It could not be checked.
    Unchecked(String),
}

impl fmt::Display for Misfit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Missing => f.write_str("it has no `structuredContent`"),
            Self::Differs { at, what } if at.is_empty() => write!(f, "`structuredContent` {what}"),
            Self::Differs { at, what } => write!(f, "`structuredContent` at `{at}` {what}"),
            Self::Unchecked(why) => write!(f, "it could not be checked: {why}"),
        }
    }
}

/// The checker of one tool, made when it is first needed and kept as long as the definition.
#[derive(Clone)]
pub(crate) struct OutputCheck {
    made: Arc<OnceLock<Result<Arc<Validator>, String>>>,
    /// Checks that go on after their time count too.
    running: Arc<Semaphore>,
}

impl Default for OutputCheck {
    fn default() -> Self {
        Self { made: Arc::default(), running: Arc::new(Semaphore::new(PARALLEL)) }
    }
}

impl fmt::Debug for OutputCheck {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("OutputCheck").field(&self.made.get().map(Result::is_ok)).finish()
    }
}

impl OutputCheck {
    /// Makes the checker, unless it is there.
    ///
    /// # Errors
    ///
    /// Why no result could be checked by this schema.
    pub(crate) async fn prepare(&self, schema: &Arc<RawValue>) -> Result<(), String> {
        self.validator(schema).await.map(drop)
    }

    async fn validator(&self, schema: &Arc<RawValue>) -> Result<Arc<Validator>, String> {
        if let Some(known) = self.made.get() {
            return known.clone();
        }
        let schema = schema.clone();
        let made = self.apart(move || compile(schema.get()).map(Arc::new)).await.and_then(|made| made);
        self.made.get_or_init(|| made).clone()
    }

    /// Whether `result` has a structured part that fits. One that says that it is an error needs none.
    pub(crate) async fn judge(&self, schema: &Arc<RawValue>, result: &str) -> Result<(), Misfit> {
        #[derive(Deserialize)]
        #[serde(rename_all = "camelCase")]
        struct Parts<'a> {
            #[serde(borrow, default)]
            structured_content: Option<&'a RawValue>,
            #[serde(default)]
            is_error: Option<bool>,
        }
        let unreadable = |_| Misfit::Unchecked("it holds what cannot be read".to_owned());
        let parts: Parts<'_> = serde_json::from_str(result).map_err(unreadable)?;
        if parts.is_error == Some(true) {
            return Ok(());
        }
        let content = parts.structured_content.ok_or(Misfit::Missing)?;
        let content: Value = serde_json::from_str(content.get()).map_err(unreadable)?;
        let validator = self.validator(schema).await.map_err(Misfit::Unchecked)?;
        let judged = self.apart(move || validator.validate(&content).map_err(|error| differs(&error))).await;
        judged.map_err(Misfit::Unchecked)?
    }

    /// Does work whose cost a server decides in a thread of its own, for as long as there is time. A thread
    /// that takes longer ends with the program at the latest, and nobody waits for it.
    async fn apart<T: Send + 'static>(&self, work: impl FnOnce() -> T + Send + 'static) -> Result<T, String> {
        let running = self.running.clone();
        let working = async move {
            let turn = running.acquire_owned().await.map_err(|_| "the check failed".to_owned())?;
            let (done, result) = oneshot::channel();
            let thread = std::thread::Builder::new().name("output-schema".to_owned()).stack_size(STACK);
            let spawned = thread.spawn(move || {
                let _ = done.send(work());
                drop(turn);
            });
            spawned.map_err(|error| format!("no thread can be started: {error}"))?;
            result.await.map_err(|_| "the check failed".to_owned())
        };
        let limit = limits::OUTPUT_CHECK_TIME;
        tokio::time::timeout(limit, working)
            .await
            .unwrap_or_else(|_| Err(format!("it takes more than {} ms", limit.as_millis())))
    }
}

struct FetchesNothing;

impl Retrieve for FetchesNothing {
    fn retrieve(&self, _uri: &Uri<String>) -> Result<Value, Box<dyn std::error::Error + Send + Sync>> {
        Err("references to other places are not followed".into())
    }
}

fn compile(schema: &str) -> Result<Validator, String> {
    let schema: Value = serde_json::from_str(schema).map_err(|_| "it cannot be read".to_owned())?;
    jsonschema::options()
        .with_retriever(FetchesNothing)
        .with_pattern_options(PatternOptions::fancy_regex().backtrack_limit(limits::PATTERN_STEPS))
        .build(&schema)
        .map_err(|error| format!("at `{}` it {}", place(error.instance_path().as_str()), keyword(&error)))
}

fn differs(error: &ValidationError<'_>) -> Misfit {
    let at = place(error.instance_path().as_str());
    Misfit::Differs { at, what: keyword(error) }
}

/// What is wrong, without the value that it is wrong with.
fn keyword(error: &ValidationError<'_>) -> String {
    match error.kind() {
        ValidationErrorKind::Required { property: Value::String(name) } => format!("lacks `{}`", place(name)),
        kind => format!("does not fit `{}`", kind.keyword()),
    }
}

fn place(pointer: &str) -> String {
    let end = (0..=PLACE_BYTES.min(pointer.len())).rev().find(|at| pointer.is_char_boundary(*at));
    let shown = display::escape(&pointer[..end.unwrap_or_default()]).into_owned();
    if pointer.len() > PLACE_BYTES { format!("{shown}…") } else { shown }
}

/// Looks at a schema as it is listed, as cheaply as that can be: most have no reference.
///
/// # Errors
///
/// Why its tool is not offered.
pub(super) fn look(field: &str, schema: &str) -> Result<(), String> {
    if schema.len() > limits::SCHEMA_BYTES {
        let (is, most) = (schema.len(), limits::SCHEMA_BYTES);
        return Err(format!("its `{field}` has {is} bytes, more than {most}"));
    }
    // A key may be written with escapes.
    if !["$ref", "Ref\"", "\\u"].iter().any(|text| memchr::memmem::find(schema.as_bytes(), text.as_bytes()).is_some()) {
        return Ok(());
    }
    // What the reader cannot hold (a number beyond all bounds) is handed on as it is; it is never compiled.
    let Ok(schema) = serde_json::from_str::<Value>(schema) else { return Ok(()) };
    let mut references = References::default();
    references.collect(&schema);
    if let Some(outside) = references.targets.iter().find(|target| references.leads_out(target)) {
        return Err(format!("its `{field}` refers to `{}`, and what lies elsewhere is not fetched", place(outside)));
    }
    let count = references.targets.len();
    if count > limits::SCHEMA_REFERENCES {
        return Err(format!("its `{field}` refers to {count} schemas, more than {}", limits::SCHEMA_REFERENCES));
    }
    Ok(())
}

#[derive(Default)]
struct References<'a> {
    targets: BTreeSet<&'a str>,
    ids: BTreeSet<&'a str>,
}

impl<'a> References<'a> {
    fn collect(&mut self, value: &'a Value) {
        match value {
            Value::Object(members) => {
                for (key, value) in members {
                    match (key.as_str(), value) {
                        ("$ref" | "$dynamicRef" | "$recursiveRef", Value::String(target)) => {
                            self.targets.insert(target);
                        }
                        ("$id", Value::String(id)) => {
                            self.ids.insert(id.trim_end_matches('#'));
                        }
                        // Values, not schemas.
                        ("const" | "enum" | "default" | "examples", _) => {}
                        _ => self.collect(value),
                    }
                }
            }
            Value::Array(items) => items.iter().for_each(|item| self.collect(item)),
            _ => {}
        }
    }

    fn leads_out(&self, target: &str) -> bool {
        let document = target.split('#').next().unwrap_or_default();
        let inside = document.is_empty()
            || self.ids.iter().any(|id| *id == document || id.ends_with(&format!("/{document}")))
            || KNOWN.iter().any(|known| document.starts_with(known));
        !inside
    }
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, Instant};

    use super::*;

    async fn judged(schema: &str, result: &str) -> String {
        let schema: Arc<RawValue> = RawValue::from_string(schema.to_owned()).unwrap().into();
        match OutputCheck::default().judge(&schema, result).await {
            Ok(()) => "fits".to_owned(),
            Err(misfit) => misfit.to_string(),
        }
    }

    #[tokio::test]
    async fn a_result_fits_or_the_place_is_named_and_no_value() {
        let schema = r#"{"type":"object","properties":{"a":{"type":"array","items":{"type":"integer","maximum":5}}},"required":["a"]}"#;
        for (result, expected) in [
            (r#"{"structuredContent":{"a":[1,2]}}"#, "fits"),
            (r#"{"isError":true}"#, "fits"),
            (r#"{"content":[]}"#, "it has no `structuredContent`"),
            (r#"{"structuredContent":null}"#, "it has no `structuredContent`"),
            (r#"{"structuredContent":{"a":[1,"canary"]}}"#, "`structuredContent` at `/a/1` does not fit `type`"),
            (r#"{"structuredContent":{"a":[77]}}"#, "`structuredContent` at `/a/0` does not fit `maximum`"),
            (r#"{"structuredContent":{"b":1}}"#, "`structuredContent` lacks `a`"),
            (r#"{"structuredContent":{"a":[1e400]}}"#, "it could not be checked: it holds what cannot be read"),
        ] {
            assert_eq!(judged(schema, result).await, expected, "{result}");
        }
    }

    #[test]
    fn s27_what_lies_elsewhere_or_costs_too_much_is_refused_as_it_is_listed() {
        let begun = Instant::now();
        for (schema, expected) in [
            (r##"{"$ref":"#/$defs/a","$defs":{"a":{"type":"object"}}}"##.to_owned(), None),
            (r#"{"$id":"https://x.example/a","properties":{"next":{"$ref":"https://x.example/a"}}}"#.to_owned(), None),
            (r#"{"properties":{"$ref":{"type":"string"}}}"#.to_owned(), None),
            (r#"{"const":{"$ref":"https://x.example/"}}"#.to_owned(), None),
            (r#"{"items":{"$ref":"http://127.0.0.1:1/a"}}"#.to_owned(), Some("refers to `http://127.0.0.1:1/a`")),
            (r#"{"items":{"\u0024ref":"file:///etc/passwd"}}"#.to_owned(), Some("refers to `file:///etc/passwd`")),
            (
                format!("{{{}}}", (0..100_000).map(|n| format!("\"{n}\":{{}}")).collect::<Vec<_>>().join(",")),
                Some("more than 262144"),
            ),
            (
                format!(
                    "[{}]",
                    (0..=limits::SCHEMA_REFERENCES)
                        .map(|n| format!("{{\"$ref\":\"#/$defs/{n}\"}}"))
                        .collect::<Vec<_>>()
                        .join(",")
                ),
                Some("refers to 129 schemas, more than 128"),
            ),
        ] {
            let seen = look("outputSchema", &schema);
            match expected {
                None => assert_eq!(seen, Ok(()), "{schema}"),
                Some(words) => assert!(seen.clone().unwrap_err().contains(words), "{seen:?}"),
            }
        }
        assert!(begun.elapsed() < Duration::from_secs(1));
    }

    #[tokio::test]
    async fn s27_cycles_and_patterns_end_in_time() {
        let chain: String = (0..127).map(|n| format!(r##""{n}":{{"$ref":"#/$defs/{}"}},"##, n + 1)).collect();
        let deep = format!(
            r##"{{"$ref":"#/$defs/0","$defs":{{{chain}"127":{{"type":"object","properties":{{"a":{{"$ref":"#/$defs/0"}}}}}}}}}}"##
        );
        let value = format!("{}{{}}{}", r#"{"a":"#.repeat(120), "}".repeat(120));
        let doubling = r##"{"$ref":"#/$defs/a","$defs":{"a":{"allOf":[{"properties":{"a":{"$ref":"#/$defs/a"}}},{"properties":{"a":{"$ref":"#/$defs/a"}}}]}}}"##;
        let letters = format!("{}!", "a".repeat(5_000));
        for (schema, value) in [
            (r##"{"$ref":"#"}"##, "{}"),
            (r##"{"$ref":"#/$defs/a","$defs":{"a":{"$ref":"#/$defs/b"},"b":{"allOf":[{"$ref":"#/$defs/a"}]}}}"##, "{}"),
            (r##"{"$dynamicAnchor":"x","not":{"$dynamicRef":"#x"}}"##, "{}"),
            (&deep, &value),
            (doubling, &value),
            (r#"{"properties":{"t":{"pattern":"^(a+)+$"}}}"#, &format!(r#"{{"t":"{letters}"}}"#)),
            (r#"{"properties":{"t":{"pattern":"^(?=(a+)+$)(a|aa)+$"}}}"#, &format!(r#"{{"t":"{letters}"}}"#)),
            (r#"{"properties":{"t":{"pattern":"((a{0,99}){0,99}){0,99}"}}}"#, r#"{"t":"a"}"#),
        ] {
            let begun = Instant::now();
            let said = judged(schema, &format!(r#"{{"structuredContent":{value}}}"#)).await;
            // Making the checker and using it have the limit each.
            assert!(begun.elapsed() < 2 * limits::OUTPUT_CHECK_TIME + Duration::from_millis(200), "{said}: {schema}");
        }
        assert_eq!(
            judged(r#"{"properties":{"t":{"pattern":"("}}}"#, r#"{"structuredContent":{}}"#).await,
            "it could not be checked: at `/properties/t/pattern` it does not fit `format`"
        );
    }
}
