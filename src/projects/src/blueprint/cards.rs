//! Task cards in Markdown: a heading, and fields below it.

use serde::Serialize;

/// Where a task stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum State {
    /// To be done.
    Todo,
    /// Under way.
    Doing,
    /// Done.
    Done,
    /// Something is in its way.
    Blocked,
    /// Thought of.
    Concept,
}

impl State {
    /// All of them.
    pub const ALL: [Self; 5] = [Self::Todo, Self::Doing, Self::Done, Self::Blocked, Self::Concept];

    /// As it is written.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Todo => "todo",
            Self::Doing => "doing",
            Self::Done => "done",
            Self::Blocked => "blocked",
            Self::Concept => "concept",
        }
    }

    fn of(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|state| state.name().eq_ignore_ascii_case(text))
    }
}

/// One task.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Card {
    /// Its heading.
    pub title: String,
    /// The line of its heading, from 1.
    pub line: usize,
    /// Where it stands, or what is written there instead.
    pub status: Result<State, String>,
    /// How much it is, in the words of whoever wrote it.
    pub complexity: String,
    /// The files that it is about.
    pub files: Vec<String>,
    /// The cards that have to be done first, by their titles.
    pub depends: Vec<String>,
    /// What shows that it is done.
    pub acceptance: String,
}

const FIELDS: [&str; 5] = ["status", "complexity", "files", "depends", "acceptance"];

/// The cards of a module. A heading without any field is no card; what stands between is left alone.
pub(super) fn parse(text: &str) -> Vec<Card> {
    let mut cards: Vec<(Card, bool)> = Vec::new();
    let mut field: Option<usize> = None;
    let mut fenced = false;
    for (number, line) in text.lines().enumerate() {
        let trimmed = line.trim();
        if trimmed.starts_with("```") || trimmed.starts_with("~~~") {
            fenced = !fenced;
            field = None;
        }
        if fenced {
            continue;
        }
        if let Some(title) = heading(line) {
            cards.push((empty(title, number + 1), false));
            field = None;
            continue;
        }
        let Some((card, is_card)) = cards.last_mut() else { continue };
        if let Some((known, value)) = self::field(trimmed) {
            *is_card = true;
            field = Some(known);
            set(card, known, value);
        } else if let (Some(known), Some(item)) = (field, item(line)) {
            // An item of a list below `files:`, or another line of words.
            set(card, known, item);
        } else if !trimmed.is_empty() {
            field = None;
        }
    }
    cards.into_iter().filter(|(_, is_card)| *is_card).map(|(card, _)| card).collect()
}

/// The text of a heading of the second level or below.
fn heading(line: &str) -> Option<&str> {
    let level = line.bytes().take_while(|byte| *byte == b'#').count();
    let text = line.get(level..)?.strip_prefix(' ')?;
    (2..=6).contains(&level).then(|| text.trim().trim_end_matches('#').trim_end())
}

/// `- status: done`, with or without the dash and stars.
fn field(line: &str) -> Option<(usize, &str)> {
    let line = line.strip_prefix("- ").or_else(|| line.strip_prefix("* ")).unwrap_or(line);
    let (name, value) = line.split_once(':')?;
    let name = name.trim_matches(|c| matches!(c, '*' | '_' | '`' | ' '));
    let known = FIELDS.iter().position(|field| field.eq_ignore_ascii_case(name))?;
    Some((known, value.trim_start_matches("**").trim()))
}

/// An item that stands further in than its field.
fn item(line: &str) -> Option<&str> {
    let inner = line.strip_prefix("  ").or_else(|| line.strip_prefix('\t'))?.trim_start();
    inner.strip_prefix("- ").or_else(|| inner.strip_prefix("* ")).map(str::trim)
}

fn empty(title: &str, line: usize) -> Card {
    Card {
        title: title.to_owned(),
        line,
        status: Err(String::new()),
        complexity: String::new(),
        files: Vec::new(),
        depends: Vec::new(),
        acceptance: String::new(),
    }
}

fn set(card: &mut Card, field: usize, value: &str) {
    let value = value.trim_matches('`');
    let add = |list: &mut Vec<String>| {
        let value = value.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')).unwrap_or(value);
        let items = value.split(',').map(|item| item.trim().trim_matches(|c| matches!(c, '`' | '"' | '\'')));
        list.extend(items.filter(|item| !matches!(*item, "" | "-" | "none")).map(str::to_owned));
    };
    match field {
        0 => card.status = State::of(value).ok_or_else(|| value.to_owned()),
        1 => value.clone_into(&mut card.complexity),
        2 => add(&mut card.files),
        3 => add(&mut card.depends),
        _ if card.acceptance.is_empty() => value.clone_into(&mut card.acceptance),
        _ => {
            card.acceptance.push_str("; ");
            card.acceptance.push_str(value);
        }
    }
}
