//! `manifest.yaml`.

use serde::{Deserialize, Serialize};

/// What a project is.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Manifest {
    /// What it is called.
    pub name: String,
    /// What it is for.
    #[serde(default)]
    pub description: String,
    /// Where it runs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub platform: Option<String>,
    /// What it is made of.
    #[serde(default, alias = "tech_stack")]
    pub tech_stack: Vec<String>,
    /// Its parts, each a file of cards.
    #[serde(default)]
    pub modules: Vec<String>,
}

impl Manifest {
    /// Reads it. What it does not know is left alone.
    pub(super) fn parse(text: &str) -> Result<Self, String> {
        // A manifest repeats little: what repeats itself without end is no manifest.
        let bounded = serde_saphyr::options! {
            alias_limits: serde_saphyr::alias_limits! { max_total_replayed_events: 10_000 },
        };
        let manifest: Self = serde_saphyr::from_str_with_options(text, bounded).map_err(|error| {
            let line = error.location().map_or(1, |location| location.line());
            format!("the mistake is on line {line}")
        })?;
        match manifest.modules.iter().find(|module| !is_module(module)) {
            Some(_) => Err("the name of a module is letters, digits, `-` and `_`".to_owned()),
            None => Ok(manifest),
        }
    }
}

/// Whether it is a name that is a file's as well.
fn is_module(name: &str) -> bool {
    !name.is_empty() && name.len() <= 64 && name.chars().all(|c| c.is_alphanumeric() || matches!(c, '-' | '_'))
}
