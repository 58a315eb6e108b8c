//! The line of a document that a diagnostic is about.
//!
//! Output of a check ends up in logs, so no value is repeated: strings that are no keys are shown
//! as `"…"`, but for the very one that the diagnostic is about where that cannot be a secret.

use portcullis::{
    diagnostic::{Code, Diagnostic},
    display::escape,
};
use unicode_width::UnicodeWidthStr;

/// Widest line that is shown, in columns.
const WIDTH: usize = 100;

/// One line and where in it to point.
#[derive(Debug, PartialEq, Eq)]
pub struct Excerpt {
    /// The line, safe to show.
    pub line: String,
    /// Columns before the mark.
    pub before: usize,
    /// Columns of the mark.
    pub width: usize,
}

/// The line of `found` in `source`; nothing for an empty one.
#[must_use]
pub fn of(source: &str, found: &Diagnostic) -> Option<Excerpt> {
    let line = source.split('\n').nth(found.line.checked_sub(1)?)?.trim_end_matches('\r');
    let start = line.as_ptr() as usize - source.as_ptr() as usize;
    let column = line.char_indices().nth(found.column.saturating_sub(1)).map_or(line.len(), |(at, _)| at);
    let at = start + column;
    let end = if found.span.contains(&at) { found.span.end.min(start + line.len()) } else { at + 1 };
    let marked = column..(end - start).max(column + 1);
    if line.trim().is_empty() {
        return None;
    }
    let open = !may_be_secret(found);
    let (mut shown, mut before, mut until) = (String::new(), None, None);
    for (from, text, value) in pieces(line) {
        let to = from + text.len();
        let about = from < marked.end && marked.start < to;
        let hidden = value && !(open && about);
        if before.is_none() && marked.start < to {
            let inside = if hidden { "" } else { text.get(..marked.start.saturating_sub(from)).unwrap_or_default() };
            before = Some(shown.width() + escape(inside).width());
        }
        if until.is_none() && marked.end <= to {
            let inside = if hidden { "\"…\"" } else { text.get(..marked.end.saturating_sub(from)).unwrap_or(text) };
            until = Some(shown.width() + escape(inside).width());
        }
        shown.push_str(&if hidden { "\"…\"".to_owned() } else { escape(&text.replace('\t', " ")).into_owned() });
    }
    let before = before.unwrap_or_else(|| shown.width());
    let width = until.unwrap_or_else(|| shown.width()).saturating_sub(before).max(1);
    Some(fit(Excerpt { line: shown, before, width }))
}

/// Cuts a long line to what surrounds the mark.
fn fit(excerpt: Excerpt) -> Excerpt {
    if excerpt.line.width() <= WIDTH {
        return excerpt;
    }
    let from = excerpt.before.saturating_sub(WIDTH / 3);
    let (mut line, mut column, mut skipped) = (String::new(), 0, 0);
    for character in excerpt.line.chars() {
        let mut buffer = [0; 4];
        let width = (*character.encode_utf8(&mut buffer)).width();
        if column < from {
            skipped = column + width;
        } else if column < from + WIDTH {
            line.push(character);
        }
        column += width;
    }
    let (head, tail) = (if from > 0 { "…" } else { "" }, if column > from + WIDTH { "…" } else { "" });
    let before = excerpt.before - skipped.min(excerpt.before) + head.width();
    let width = excerpt.width.min((head.width() + line.width()).saturating_sub(before)).max(1);
    Excerpt { line: format!("{head}{line}{tail}"), before, width }
}

fn may_be_secret(found: &Diagnostic) -> bool {
    let codes = [Code::SecretLiteral, Code::UrlCredentials, Code::UrlInvalid, Code::Placeholder, Code::JsonSyntax];
    let fields = ["env", "headers", "auth", "args", "url", "serverUrl", "httpUrl", "inputs"];
    codes.contains(&found.code) || found.pointer.split('/').skip(3).any(|part| fields.contains(&part))
}

/// The line cut at its strings: offset, text, whether it is a string that is no key.
fn pieces(line: &str) -> Vec<(usize, &str, bool)> {
    let mut found = Vec::new();
    let (mut from, mut at) = (0, 0);
    let bytes = line.as_bytes();
    while at < bytes.len() {
        let quote = bytes[at];
        if quote != b'"' && quote != b'\'' {
            at += 1;
            continue;
        }
        let mut end = at + 1;
        while end < bytes.len() && bytes[end] != quote {
            end += if bytes[end] == b'\\' { 2 } else { 1 };
        }
        let end = (at..=(end + 1).min(bytes.len())).rev().find(|end| line.is_char_boundary(*end)).unwrap_or(at + 1);
        if from < at {
            found.push((from, &line[from..at], false));
        }
        found.push((at, &line[at..end], !line[end..].trim_start().starts_with(':')));
        (from, at) = (end, end);
    }
    if from < line.len() {
        found.push((from, &line[from..], false));
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(code: Code, pointer: &str, span: std::ops::Range<usize>) -> Diagnostic {
        Diagnostic {
            code,
            pointer: pointer.to_owned(),
            line: 1,
            column: span.start + 1,
            span,
            message: String::new(),
            help: None,
            fixes: Vec::new(),
        }
    }

    #[test]
    fn s34_a_value_beside_the_mistake_is_not_shown() {
        let line = r#"{"a":{"type":"tcp","env":{"KEY":"sk-secret"}}}"#;
        let shown = of(line, &found(Code::TypeUnknown, "/mcpServers/a/type", 13..18)).unwrap();
        assert_eq!(
            shown,
            Excerpt { line: r#"{"a":{"type":"tcp","env":{"KEY":"…"}}}"#.to_owned(), before: 13, width: 5 }
        );
        let shown = of(line, &found(Code::SecretLiteral, "/mcpServers/a/env/KEY", 32..43)).unwrap();
        assert_eq!(shown, Excerpt { line: r#"{"a":{"type":"…","env":{"KEY":"…"}}}"#.to_owned(), before: 30, width: 3 });
    }

    #[test]
    fn a_long_line_is_cut_around_the_mark() {
        let line = format!("{}\"key\": 1{}", " 1,".repeat(100), ", 2".repeat(100));
        let shown = of(&line, &found(Code::FieldIgnored, "/x", 300..305)).unwrap();
        assert!(shown.line.width() <= WIDTH + 2);
        assert_eq!(shown.line.chars().skip(shown.before).take(shown.width).collect::<String>(), "\"key\"");
    }
}
