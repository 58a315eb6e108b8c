//! What an unknown word was probably meant to be.

/// Whether one looks like a slip for the other.
pub(super) fn is_near(word: &str, known: &str) -> bool {
    // The distance takes time and room by the product of both lengths.
    if word.len() > known.len() + 3 {
        return false;
    }
    let (word, known) = (plain(word), plain(known));
    let allowed = if known.len() <= 4 { 1 } else { 2 };
    word == known || (known.len() > 2 && strsim::damerau_levenshtein(&word, &known) <= allowed)
}

/// The nearest of `known`, if one is near.
pub(super) fn nearest<'k>(word: &str, known: impl Iterator<Item = &'k str>) -> Option<&'k str> {
    known
        .filter(|known| is_near(word, known))
        .min_by_key(|known| strsim::damerau_levenshtein(&plain(word), &plain(known)))
}

fn plain(word: &str) -> String {
    word.chars().filter(|c| !matches!(c, '_' | '-' | ' ')).flat_map(char::to_lowercase).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slips_are_near_and_other_words_are_not() {
        for (word, known) in [
            ("comand", "command"),
            ("Command", "command"),
            ("headres", "headers"),
            ("mcp-servers", "mcpServers"),
            ("arg", "args"),
        ] {
            assert!(is_near(word, known), "{word}");
        }
        for (word, known) in [("dev", "env"), ("trusted", "timeout"), ("roots", "url")] {
            assert!(!is_near(word, known), "{word}");
        }
        assert!(!is_near(&"x".repeat(1 << 20), "url"));
        assert_eq!(nearest("haeders", ["url", "headers"].into_iter()), Some("headers"));
    }
}
