//! A call that waits for a person: the raw id first, the server's words as its words, and
//! everything of the arguments last, where no long description can push them away.

use portcullis::{
    approval::Question,
    display::{escape, escape_json, quote},
};

use super::their_words;

/// The question, without the line for the answer.
#[must_use]
pub fn text(question: &Question) -> String {
    let mut lines = vec![
        "May this call be made?".to_owned(),
        String::new(),
        format!("  tool       {}", quote(&question.tool)),
        match question.own {
            true => "  server     none: it is a tool of the gate itself".to_owned(),
            false => format!("  server     {}", quote(&question.server)),
        },
        format!("  asked by   {}", escape(&question.caller)),
    ];
    lines.extend(question.client.as_ref().map(|client| format!("  client     {} (as it says itself)", escape(client))));
    let mut theirs = Vec::new();
    theirs.extend(question.title.as_ref().map(|title| format!("title: {title}")));
    theirs.extend(question.description.clone());
    if !theirs.is_empty() {
        let whose = if question.own { "  what it does:" } else { "  in the server's own words:" };
        lines.push(whose.to_owned());
        lines.push(their_words(&theirs.join("\n")));
    }
    if question.claims_read_only {
        lines.push("  the server says that it changes nothing; that is not checked".to_owned());
    }
    lines.push("  arguments, exactly as they would be sent:".to_owned());
    lines.extend(escape_json(&spread(&question.arguments)).lines().map(|line| format!("    {line}")));
    lines.join("\n")
}

/// The line for the answer. Says again what it is about, since long arguments scroll.
#[must_use]
pub fn prompt(question: &Question) -> String {
    let (tool, server) = (quote(&question.tool), quote(&question.server));
    match question.own {
        // What it is granted holds no longer.
        true => format!("{tool} of the gate itself: [y] once  [s] until this program ends  [N] no: "),
        false => format!("{tool} on {server}: [y] once  [s] until this program ends  [a] always  [N] no: "),
    }
}

/// The same JSON with white space between its tokens and nothing else changed: numbers, escapes
/// and the order of keys stay as they are.
fn spread(json: &str) -> String {
    let mut out = String::with_capacity(json.len() * 2);
    let (mut depth, mut quoted, mut escaped) = (0_usize, false, false);
    let mut rest = json.chars().peekable();
    let line = |out: &mut String, depth: usize| {
        out.push('\n');
        out.push_str(&"  ".repeat(depth));
    };
    while let Some(character) = rest.next() {
        if quoted {
            out.push(character);
            quoted = escaped || character != '"';
            escaped = !escaped && character == '\\';
            continue;
        }
        match character {
            ' ' | '\n' | '\r' | '\t' => {}
            '{' | '[' => {
                out.push(character);
                while rest.next_if(|next| next.is_ascii_whitespace()).is_some() {}
                match rest.next_if(|next| matches!(next, '}' | ']')) {
                    Some(close) => out.push(close),
                    None => {
                        depth += 1;
                        line(&mut out, depth);
                    }
                }
            }
            '}' | ']' => {
                depth = depth.saturating_sub(1);
                line(&mut out, depth);
                out.push(character);
            }
            ',' => {
                out.push(',');
                line(&mut out, depth);
            }
            ':' => out.push_str(": "),
            _ => {
                out.push(character);
                quoted = character == '"';
            }
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn s21_white_space_is_all_that_changes() {
        let json = r#"{"b":[1.0,{},[ ],"a \" , { \\"],"a":{"x":1e400, "é":"\u00e9"}}"#;
        let spread = spread(json);
        assert_eq!(spread.lines().count(), 12);
        let squeeze = |text: &str| text.split_whitespace().collect::<String>();
        assert_eq!(squeeze(&spread), squeeze(json));
    }
}
