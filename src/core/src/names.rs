//! Names that a model may see.
//!
//! People choose server names and servers choose tool names; model APIs take at most 64 characters
//! of `[A-Za-z0-9_-]`. The mapping is a function of one server and one tool alone, never of what
//! else is connected, and no two pairs share a name: a hash suffix is added exactly when the plain
//! form would have lost something.

use crate::canonical::{hex, sha256};

/// Longest name a model API takes, in characters.
pub const MODEL_NAME_LENGTH: usize = 64;

/// Least room that a model-facing name needs, in characters: what a person reads of it, and the hash.
pub const SHORTEST_NAME: usize = 20;

/// The id of a server name: lower case, every run outside `[a-z0-9]` one `-`, trimmed.
///
/// Where letters or digits outside ASCII were dropped, or nothing is left, `-` and six hexadecimal
/// digits of the name's SHA-256 follow, so that `日本` and `中国` stay apart. `foo_bar` and `foo-bar`
/// share an id, and a document holding both is refused.
#[must_use]
pub fn server_id(name: &str) -> String {
    let mut id = String::with_capacity(name.len());
    let mut lost = false;
    for character in name.chars() {
        if character.is_ascii_alphanumeric() {
            id.push(character.to_ascii_lowercase());
        } else {
            lost |= character.is_alphanumeric();
            if !id.ends_with('-') {
                id.push('-');
            }
        }
    }
    let mut id = id.trim_matches('-').to_owned();
    if lost || id.is_empty() {
        id.push('-');
        id.push_str(&hex(&sha256(name.as_bytes()))[..6]);
    }
    id
}

/// What stands between the parts of a model-facing name.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum NameStyle {
    /// `mcp__<server id>__<tool>`.
    #[default]
    Prefixed,
    /// `<server id>__<tool>`.
    Short,
}

/// The model-facing name of `tool` on the server with this `id`.
///
/// Injective: the plain form is used only where id and tool can be read back from it; all others
/// carry twelve hexadecimal digits of the pair's hash.
#[must_use]
pub fn model_name(style: NameStyle, id: &str, tool: &str) -> String {
    model_name_within(style, id, tool, MODEL_NAME_LENGTH)
}

/// The same in at most `length` characters, for a client that puts something of its own before it.
///
/// No less than [`SHORTEST_NAME`] are used.
#[must_use]
pub fn model_name_within(style: NameStyle, id: &str, tool: &str, length: usize) -> String {
    let length = length.clamp(SHORTEST_NAME, MODEL_NAME_LENGTH);
    let prefix = match style {
        NameStyle::Prefixed => "mcp__",
        NameStyle::Short => "",
    };
    let plain = format!("{prefix}{id}__{tool}");
    let allowed = |character: char| character.is_ascii_alphanumeric() || character == '_' || character == '-';
    // An id holds no `_`, so the first `__` ends it, whatever the tool begins with.
    if !looks_hashed(tool) && plain.len() <= length && plain.chars().all(allowed) {
        return plain;
    }
    let mut pair = id.as_bytes().to_vec();
    pair.push(0);
    pair.extend_from_slice(tool.as_bytes());
    let suffix = format!("_{}", &hex(&sha256(&pair))[..HASH_DIGITS]);
    let kept: String = plain
        .chars()
        .map(|character| if allowed(character) { character } else { '_' })
        .take(length - suffix.len())
        .collect();
    kept + &suffix
}

const HASH_DIGITS: usize = 12;

/// Whether a tool's own name could be taken for one with our suffix.
fn looks_hashed(tool: &str) -> bool {
    let end = tool.rsplit_once('_').map_or(tool, |(_, end)| end);
    end.len() == HASH_DIGITS && end.bytes().all(|byte| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte))
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a8_ids_follow_the_rule() {
        for (name, id) in [
            (" Context 7 ", "context-7"),
            ("foo_bar", "foo-bar"),
            ("GitHub", "github"),
            ("a//b..c", "a-b-c"),
            ("io.github/x", "io-github-x"),
        ] {
            assert_eq!(server_id(name), id);
        }
        assert!(server_id("Wetter-日本").starts_with("wetter-"));
        assert_eq!(server_id("日本").len(), 7);
        assert_ne!(server_id("日本"), server_id("中国"));
        assert_eq!(server_id("--"), format!("-{}", &hex(&sha256(b"--"))[..6]));
        // Punctuation outside ASCII is no letter: nothing but the look was lost.
        assert_eq!(server_id("a…b"), "a-b");
    }

    #[test]
    fn s25_names_that_imitate_each_other_stay_apart() {
        let long = "x".repeat(70);
        let mut seen = HashMap::new();
        for (id, tool) in [
            ("a", "b__c"),
            ("a-b", "c"),
            ("a", "_b"),
            ("a", "__b"),
            ("a", "B"),
            ("a", "b"),
            ("a", "b.c"),
            ("a", "b/c"),
            ("a", "b_c"),
            ("a", &long),
            ("a", &format!("{long}y")),
            ("foo-bar", "t"),
            ("foo", "bar__t"),
        ] {
            for style in [NameStyle::Prefixed, NameStyle::Short] {
                let name = model_name(style, id, tool);
                assert!(name.len() <= 64, "{name}");
                assert_eq!(seen.insert((style as u8, name.clone()), (id.to_owned(), tool.to_owned())), None, "{name}");
            }
        }
        assert_eq!(model_name(NameStyle::Prefixed, "files", "read_file"), "mcp__files__read_file");
        assert_eq!(model_name(NameStyle::Short, "files", "read_file"), "files__read_file");
    }

    proptest! {
        #[test]
        fn s25_model_names_are_injective_and_allowed(
            a in ("[a-z0-9]{1,6}(-[a-z0-9]{1,6})?", "[A-Za-z0-9_./ é-]{0,70}"),
            b in ("[a-z0-9]{1,6}(-[a-z0-9]{1,6})?", "[A-Za-z0-9_./ é-]{0,70}"),
        ) {
            let (left, right) = (model_name(NameStyle::Prefixed, &a.0, &a.1), model_name(NameStyle::Prefixed, &b.0, &b.1));
            prop_assert!(left.len() <= 64 && left.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_' || b == b'-'));
            prop_assert_eq!(a == b, left == right);
        }

        #[test]
        fn s25_a_name_made_to_look_hashed_is_hashed_itself(id in "[a-z]{1,4}", tool in "[a-z.]{1,60}") {
            // Take the hashed name of some tool, and offer what follows the id as a tool of its own.
            let name = model_name(NameStyle::Prefixed, &id, &tool);
            let imitation = name.trim_start_matches("mcp__").trim_start_matches(&format!("{id}__")).to_owned();
            if imitation != tool {
                prop_assert_ne!(model_name(NameStyle::Prefixed, &id, &imitation), name);
            }
        }
    }
}
