//! Reads JSON with comments and trailing commas, keeps where everything stands, and goes on after
//! a mistake, so that one run names every problem.
//!
//! Every byte is looked at a bounded number of times, nesting is bounded before it is entered, and
//! no text makes it fail. What is reported stands where the mistake is: a missing comma right
//! behind the value before it, not at the token after it.

mod space;
mod string;
mod word;

use std::{borrow::Cow, collections::HashMap, ops::Range};

use super::{
    findings::{Findings, Pointer, Said, insert, push_index, push_key, replace, shown},
    node::{Member, Node, Value},
};
use crate::{diagnostic::Code, limits::DOCUMENT_DEPTH};

/// Reads one document; `None` where a mistake leaves open what was meant (everything is reported).
pub(super) fn read<'a>(text: &'a str, findings: &mut Findings<'_>) -> Option<Node<'a>> {
    let start = if text.starts_with('\u{feff}') { 3 } else { 0 };
    let mut reader = Reader {
        text,
        at: start,
        last: start,
        open: Vec::new(),
        path: Vec::new(),
        findings,
        broken: false,
        ended: false,
        forgiving: false,
        confused: false,
    };
    reader.space();
    if reader.at == text.len() {
        let _ = reader.say(0..0, "the document is empty").help("write `{\"mcpServers\": {}}` for one without servers");
        return None;
    }
    let node = reader.value();
    reader.space();
    if reader.at < text.len() && !reader.ended {
        reader.trailing();
    }
    (!reader.broken).then_some(node)
}

enum Step<'a> {
    Key(Cow<'a, str>),
    Index(usize),
}

impl Pointer for Vec<Step<'_>> {
    fn write(&self, out: &mut String) {
        for step in self {
            match step {
                Step::Key(name) => push_key(out, name),
                Step::Index(index) => push_index(out, *index),
            }
        }
    }
}

struct Reader<'a, 'f, 't> {
    text: &'a str,
    at: usize,
    /// Behind the last token, before the white space that follows it.
    last: usize,
    /// The brackets that are open.
    open: Vec<u8>,
    path: Vec<Step<'a>>,
    findings: &'f mut Findings<'t>,
    broken: bool,
    /// The text ended too early, which was reported once.
    ended: bool,
    /// A text without its end may have swallowed the comma.
    forgiving: bool,
    /// After some mistakes a value may look like a name without quotes; it is not repeated then.
    confused: bool,
}

impl<'a> Reader<'a, '_, '_> {
    fn say(&mut self, span: Range<usize>, message: impl Into<String>) -> Said<'_> {
        self.broken = true;
        self.findings.say(Code::JsonSyntax, span, &self.path, message)
    }

    fn peek(&self) -> Option<u8> {
        self.text.as_bytes().get(self.at).copied()
    }

    fn eat(&mut self) {
        self.at += 1;
        self.last = self.at;
    }

    fn value(&mut self) -> Node<'a> {
        let start = self.at;
        let value = match self.peek() {
            Some(b'{' | b'[') if self.open.len() == DOCUMENT_DEPTH => self.too_deep(),
            Some(b'{') => self.object(),
            Some(b'[') => self.array(),
            Some(quote @ (b'"' | b'\'')) => Value::Text(self.string(quote)),
            Some(_) => self.word(),
            None => Value::Broken,
        };
        self.last = self.last.max(start);
        Node { span: start..self.last, value }
    }

    fn array(&mut self) -> Value<'a> {
        let (mut items, open) = (Vec::new(), self.at);
        self.open.push(b'[');
        self.eat();
        loop {
            self.space();
            match self.peek() {
                None => {
                    self.unclosed(open);
                    break;
                }
                Some(b']') => {
                    self.eat();
                    break;
                }
                Some(b'}') => {
                    self.mismatch(open);
                    break;
                }
                Some(b',') => self.extra_comma(),
                Some(b':') => {
                    let _ = self
                        .say(self.at..self.at + 1, "a `:` in a list: only an object, in `{` and `}`, has names")
                        .help("use `{` and `}` around names with values, or write a list of texts");
                    self.eat();
                }
                Some(_) => {
                    self.path.push(Step::Index(items.len()));
                    items.push(self.value());
                    self.path.pop();
                    self.comma();
                }
            }
        }
        self.open.pop();
        Value::Array(items)
    }

    fn object(&mut self) -> Value<'a> {
        let (mut members, open) = (Vec::new(), self.at);
        self.open.push(b'{');
        self.eat();
        loop {
            self.space();
            match self.peek() {
                None => {
                    self.unclosed(open);
                    break;
                }
                Some(b'}') => {
                    self.eat();
                    break;
                }
                Some(b']') => {
                    self.mismatch(open);
                    break;
                }
                Some(b',') => self.extra_comma(),
                Some(b':') => {
                    let _ = self.say(self.at..self.at + 1, "a name is missing before `:`");
                    self.eat();
                    self.space();
                    self.nameless();
                }
                Some(b'{' | b'[') => {
                    let _ = self
                        .say(self.at..self.at + 1, "a name is missing: everything in an object has one")
                        .help("write `\"name\": ` in front of it, the name of the server if this is one");
                    self.nameless();
                }
                Some(_) => {
                    let member = self.member();
                    members.push(member);
                    self.comma();
                }
            }
        }
        self.repeated(&mut members);
        self.open.pop();
        Value::Object(members)
    }

    /// A value where a name should be; read for the mistakes in it.
    fn nameless(&mut self) {
        if !matches!(self.peek(), None | Some(b',' | b'}' | b']')) {
            self.value();
        }
        self.comma();
    }

    fn member(&mut self) -> Member<'a> {
        let start = self.at;
        let name = match self.peek() {
            Some(quote @ (b'"' | b'\'')) => self.string(quote),
            _ => self.bare_name(),
        };
        let span = start..self.last;
        // Without the colon it may be a value that lost its name: it is not repeated in a pointer.
        let named = self.colon();
        if named {
            self.path.push(Step::Key(name.clone()));
        }
        self.space();
        let value = match self.peek() {
            None => Node { span: self.last..self.last, value: Value::Broken },
            Some(b',' | b'}' | b']') => {
                let (message, help) = if named {
                    (format!("{} has no value", shown(&name)), "write a value behind `:`, or remove the name")
                } else {
                    ("a name without a value".to_owned(), "write `: ` and a value behind it, or remove it")
                };
                let _ = self.say(self.last..self.last, message).help(help);
                // What stands behind the comma may be the value, and be taken for a name.
                self.confused = true;
                Node { span: self.last..self.last, value: Value::Broken }
            }
            Some(_) => self.value(),
        };
        if named {
            self.path.pop();
        }
        Member { name, span, value, repeated: false }
    }

    /// Whether a name ends here.
    fn colon(&mut self) -> bool {
        self.space();
        match self.peek() {
            Some(b':') => {
                self.eat();
                return true;
            }
            Some(b'=') => {
                let span = self.at..self.at + 1;
                let _ = self.say(span.clone(), "`=` instead of `:`").fix("write `:`", vec![replace(&span, ":")]);
                self.eat();
            }
            // What is missing is said by the caller.
            None | Some(b',' | b'}' | b']') => {}
            Some(_) if self.forgiving => self.forgiving = false,
            Some(_) => {
                let at = self.last;
                self.confused = true;
                let _ = self
                    .say(at..at, "a `:` is missing between a name and its value")
                    .fix("insert `:`", vec![insert(at, ":")]);
            }
        }
        false
    }

    fn comma(&mut self) {
        let end = self.last;
        self.space();
        let forgiven = std::mem::take(&mut self.forgiving);
        match self.peek() {
            Some(b',') => self.eat(),
            Some(b';') => {
                let span = self.at..self.at + 1;
                let _ = self.say(span.clone(), "`;` instead of `,`").fix("write `,`", vec![replace(&span, ",")]);
                self.eat();
            }
            None | Some(b'}' | b']' | b':') => {}
            Some(_) if forgiven => {}
            Some(_) => {
                self.confused = true;
                let _ = self
                    .say(end..end, "a comma is missing")
                    .help("write `,` between one value and the next")
                    .fix("insert `,`", vec![insert(end, ",")]);
            }
        }
    }

    fn extra_comma(&mut self) {
        let span = self.at..self.at + 1;
        let _ = self.say(span.clone(), "a comma without a value before it").fix("remove it", vec![replace(&span, "")]);
        self.eat();
    }

    fn unclosed(&mut self, open: usize) {
        if !std::mem::replace(&mut self.ended, true) {
            let (bracket, close) = brackets(self.text.as_bytes()[open]);
            let _ = self
                .say(open..open + 1, format!("`{bracket}` is never closed"))
                .help(format!("write `{close}` where it ends; the document may have been cut off"));
        }
    }

    /// The other closing bracket. Where that belongs to something further out, ours was forgotten.
    fn mismatch(&mut self, open: usize) {
        let bytes = self.text.as_bytes();
        let (bracket, wanted) = brackets(bytes[open]);
        let (opener, found) = if bytes[self.at] == b'}' { (b'{', '}') } else { (b'[', ']') };
        if self.open.contains(&opener) {
            let (at, line) = (self.last, self.findings.line(open));
            let _ = self
                .say(at..at, format!("`{wanted}` is missing for the `{bracket}` on line {line}"))
                .fix(format!("insert `{wanted}`"), vec![insert(at, wanted)]);
        } else {
            let span = self.at..self.at + 1;
            let _ = self
                .say(span.clone(), format!("`{bracket}` is closed by `{found}`"))
                .fix(format!("write `{wanted}`"), vec![replace(&span, wanted)]);
            self.eat();
        }
    }

    fn trailing(&mut self) {
        let only_comma = self.text[self.at..].trim_end() == ",";
        let span = self.at..if only_comma { self.at + 1 } else { self.text.trim_end().len().max(self.at) };
        let said = self.say(span.clone(), "there is text behind the end of the document");
        if only_comma {
            let _ = said.help("remove the comma").fix("remove it", vec![replace(&span, "")]);
        } else {
            let _ = said.help("keep one document in the file; a closing bracket too many ends it early");
        }
    }

    /// Passes over what is nested too deeply, without entering it.
    fn too_deep(&mut self) -> Value<'a> {
        let start = self.at;
        self.broken = true;
        let _ = self
            .findings
            .say(Code::TooDeep, start..start + 1, &self.path, format!("nested more than {DOCUMENT_DEPTH} levels deep"))
            .help("no server needs this; remove it");
        let bytes = self.text.as_bytes();
        let mut depth = 0_usize;
        while let Some(byte) = bytes.get(self.at) {
            self.at += 1;
            match byte {
                b'{' | b'[' => depth += 1,
                b'}' | b']' => depth -= 1,
                b'"' => self.skip_string(),
                _ => {}
            }
            if depth == 0 {
                break;
            }
        }
        self.ended |= depth > 0;
        self.last = self.at;
        Value::Broken
    }

    fn skip_string(&mut self) {
        let bytes = self.text.as_bytes();
        while let Some(byte) = bytes.get(self.at) {
            self.at += 1;
            match byte {
                b'"' | b'\n' => return,
                b'\\' => self.at += usize::from(matches!(bytes.get(self.at), Some(b'"' | b'\\'))),
                _ => {}
            }
        }
    }

    fn repeated(&mut self, members: &mut [Member<'a>]) {
        let mut seen: HashMap<Cow<'a, str>, usize> = HashMap::new();
        // Most objects are small, and a table for each costs more than looking.
        let small = members.len() <= 8;
        for at in 0..members.len() {
            let (before, rest) = members.split_at_mut(at);
            let Some(member) = rest.first_mut() else { break };
            let first = if small {
                before.iter().find(|earlier| earlier.name == member.name).map(|earlier| earlier.span.start)
            } else {
                let first = seen.get(&member.name).copied();
                if first.is_none() {
                    seen.insert(member.name.clone(), member.span.start);
                }
                first
            };
            if let Some(first) = first {
                member.repeated = true;
                let message = format!(
                    "{} stands twice in one object; the first is on line {}",
                    shown(&member.name),
                    self.findings.line(first)
                );
                self.path.push(Step::Key(member.name.clone()));
                let _ = self
                    .findings
                    .say(Code::DuplicateKey, member.span.clone(), &self.path, message)
                    .help("rename or remove one of them; other programs keep one in silence");
                self.path.pop();
            }
        }
    }
}

fn brackets(open: u8) -> (char, char) {
    if open == b'{' { ('{', '}') } else { ('[', ']') }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// The tree as another library would have it; numbers as they are written.
    fn json(node: &Node<'_>) -> serde_json::Value {
        match &node.value {
            Value::Null | Value::Broken => serde_json::Value::Null,
            Value::Bool(value) => (*value).into(),
            Value::Number(written) => serde_json::from_str(written).unwrap(),
            Value::Text(text) => text.as_ref().into(),
            Value::Array(items) => items.iter().map(json).collect(),
            Value::Object(members) => {
                members.iter().map(|member| (member.name.to_string(), json(&member.value))).collect()
            }
        }
    }

    /// Line, column and message of everything that is wrong with `text`.
    fn problems(text: &str) -> Vec<(usize, usize, String)> {
        let mut findings = Findings::new(text);
        let node = read(text, &mut findings);
        let found = findings.finish();
        assert_eq!(node.is_none(), found.iter().any(|it| it.code != Code::DuplicateKey), "{text}");
        found.into_iter().map(|it| (it.line, it.column, it.message)).collect()
    }

    #[test]
    fn a6_comments_trailing_commas_marks_and_line_ends_are_fine() {
        for text in [
            "\u{feff}{}",
            "{\"a\": 1,}",
            "[1, /* x */ 2, // y\r\n]\r\n",
            "// a\n/**/ {} /* \" */ // end",
            "\"a\"",
            "[\r1\r]",
        ] {
            assert_eq!(problems(text), [], "{text}");
        }
    }

    #[test]
    fn a6_a_position_is_that_of_the_mistake() {
        for (text, line, column) in [
            ("{\"a\": 1\n\n  \"b\": 2}", 1, 8),
            ("[1 // one\n  2]", 1, 3),
            ("{\"日本\": \"x\" \"b\": 2}", 1, 11),
            ("{\"a\"\n  1}", 1, 5),
            ("{\"a\":\n}", 1, 6),
            ("{\"a\": [1, 2\n}", 1, 12),
            ("[1,\n,2]", 2, 1),
            ("{\n  \"a\": tru\n}", 2, 8),
            ("{\"a\": \"\\q\"}", 1, 8),
            ("[\"\\ud800\"]", 1, 3),
            ("[\"\\ude00\\ud83d\"]", 1, 3),
            ("{}\n}", 2, 1),
            ("[1}", 1, 3),
        ] {
            let found = problems(text);
            assert_eq!((found[0].0, found[0].1), (line, column), "{text}: {found:?}");
        }
    }

    #[test]
    fn a5_a_key_stands_twice_however_it_is_written() {
        let text = "{\"a\": {\"x\": 1, \"\\u0078\": 2}, \"b\": 1, \"c\": 1, \"d\": 1, \"e\": 1, \"f\": 1, \"g\": 1, \"h\": 1, \"\\u0061\": 1}";
        let found = problems(text);
        assert_eq!(found.len(), 2, "{found:?}");
        assert!(found[0].2.starts_with("`x` stands twice") && found[1].2.starts_with("`a` stands twice"), "{found:?}");
    }

    fn values() -> impl Strategy<Value = serde_json::Value> {
        let leaf = prop_oneof![
            Just(serde_json::Value::Null),
            any::<bool>().prop_map(Into::into),
            any::<i64>().prop_map(Into::into),
            any::<i32>().prop_map(|number| (f64::from(number) / 8.0).into()),
            any::<String>().prop_map(Into::into),
        ];
        leaf.prop_recursive(4, 32, 6, |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..6).prop_map(Into::into),
                prop::collection::vec((any::<String>(), inner), 0..12)
                    .prop_map(|members| serde_json::Value::Object(members.into_iter().collect())),
            ]
        })
    }

    proptest! {
        #[test]
        fn a6_json_is_read_as_another_library_reads_it(value in values(), pretty in any::<bool>()) {
            let text = if pretty { format!("{value:#}") } else { value.to_string() };
            let mut findings = Findings::new(&text);
            let node = read(&text, &mut findings).unwrap();
            prop_assert_eq!(json(&node), value);
            prop_assert_eq!(node.span, 0..text.len());
            prop_assert!(findings.finish().is_empty());
        }

        #[test]
        fn a6_what_another_library_takes_is_taken(text in "[\\[\\]{},:\"0-9eE.+ \\\\u\\-nul]{0,24}") {
            if let Ok(value) = serde_json::from_str::<serde_json::Value>(&text) {
                let node = read(&text, &mut Findings::new(&text)).unwrap();
                prop_assert_eq!(json(&node), value);
            } else if !text.contains(",") {
                prop_assert!(read(&text, &mut Findings::new(&text)).is_none(), "{}", text);
            }
        }
    }
}
