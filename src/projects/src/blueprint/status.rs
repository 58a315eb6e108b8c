//! How far a project is, and what in its blueprint does not fit.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use serde::Serialize;

use super::{Card, MODULES, MODULES_READ, Manifest, RULES, Rules, State, cards, module_path, rules};
use crate::{Folder, ProjectError};

/// One part of a project.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Module {
    /// Its name.
    pub name: String,
    /// How many cards it has.
    pub cards: usize,
    /// How many of each status.
    pub by_status: BTreeMap<&'static str, usize>,
}

/// Something that does not fit.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Problem {
    /// The file, from the project's folder.
    pub file: String,
    /// The line, from 1.
    pub line: usize,
    /// A stable code.
    pub code: &'static str,
    /// What does not fit.
    pub message: String,
    /// What to do.
    pub help: &'static str,
}

/// How far a project is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Status {
    /// What the manifest calls it.
    pub name: String,
    /// How many cards it has.
    pub cards: usize,
    /// How many of each status.
    pub by_status: BTreeMap<&'static str, usize>,
    /// Its parts, in the order of the manifest.
    pub modules: Vec<Module>,
    /// What does not fit, by file and line.
    pub problems: Vec<Problem>,
}

/// Looks at the blueprint of a project; `rules` are those of its groups.
///
/// # Errors
///
/// [`ProjectError::NoBlueprint`], [`ProjectError::Manifest`]. Everything else that is wrong is a [`Problem`].
pub fn status(folder: &Folder, rules: &[Rules]) -> Result<Status, ProjectError> {
    let (manifest, _) = super::manifest(folder)?;
    let mut problems = Problems(folder, Vec::new());
    let mut modules = Vec::new();
    let mut all = Vec::new();
    for name in &manifest.modules {
        let cards = problems.module(name);
        modules.push(Module { name: name.clone(), cards: cards.len(), by_status: by_status(&cards) });
        all.extend(cards.into_iter().map(|card| (name.clone(), card)));
    }
    problems.unlisted(&manifest);
    problems.cards(&all);
    problems.cycles(&all);
    problems.rules(rules);
    let mut found = problems.1;
    found.sort();
    let cards: Vec<_> = all.into_iter().map(|(_, card)| card).collect();
    Ok(Status { name: manifest.name, cards: cards.len(), by_status: by_status(&cards), modules, problems: found })
}

fn by_status(cards: &[Card]) -> BTreeMap<&'static str, usize> {
    let mut counts = BTreeMap::new();
    for card in cards {
        *counts.entry(card.status.as_ref().map_or("unknown", |state| state.name())).or_insert(0) += 1;
    }
    counts
}

/// How cards are told apart: by their titles, whatever their spelling.
fn id(title: &str) -> String {
    title.split_whitespace().collect::<Vec<_>>().join(" ").to_lowercase()
}

struct Problems<'f>(&'f Folder, Vec<Problem>);

impl Problems<'_> {
    fn add(&mut self, file: &str, line: usize, code: &'static str, message: String, help: &'static str) {
        self.1.push(Problem { file: file.to_owned(), line, code, message, help });
    }

    fn module(&mut self, name: &str) -> Vec<Card> {
        let path = module_path(name);
        match self.0.text(&path) {
            Ok(text) => cards::parse(&text),
            Err(ProjectError::NotFound) => {
                let message = format!("the manifest names the module `{name}`, and its file is not there");
                self.add(&path, 1, "missing-module", message, "write the file, or take the module out of the manifest");
                Vec::new()
            }
            Err(error) => {
                self.add(&path, 1, "unreadable-module", error.to_string(), "make it a text that is not too long");
                Vec::new()
            }
        }
    }

    fn unlisted(&mut self, manifest: &Manifest) {
        for file in self.0.files(MODULES, MODULES_READ) {
            let Some(name) = file.strip_suffix(".md") else { continue };
            if !manifest.modules.iter().any(|module| module == name) {
                let message = format!("the module `{name}` is not in the manifest, so its cards do not count");
                let path = module_path(name);
                self.add(
                    &path,
                    1,
                    "unlisted-module",
                    message,
                    "add it to `modules` in the manifest, or remove the file",
                );
            }
        }
    }

    fn cards(&mut self, all: &[(String, Card)]) {
        let known: BTreeSet<String> = all.iter().map(|(_, card)| id(&card.title)).collect();
        let mut seen: HashMap<String, String> = HashMap::new();
        for (module, card) in all {
            let (path, line, title) = (module_path(module), card.line, &card.title);
            if let Some(first) = seen.insert(id(title), format!("{path}:{line}")) {
                let message = format!("there are two cards `{title}`; the other one is at {first}");
                self.add(&path, line, "duplicate-card", message, "rename one of them: others depend on titles");
            }
            match &card.status {
                Ok(_) => {}
                Err(text) if text.is_empty() => {
                    let message = format!("the card `{title}` has no status");
                    self.add(
                        &path,
                        line,
                        "missing-status",
                        message,
                        "write `status: todo`, doing, done, blocked or concept",
                    );
                }
                Err(text) => {
                    let message = format!("the card `{title}` has the unknown status `{text}`");
                    self.add(&path, line, "unknown-status", message, "it is todo, doing, done, blocked or concept");
                }
            }
            // What is only planned has no files yet.
            if matches!(card.status, Ok(State::Doing | State::Done)) {
                for file in card.files.iter().filter(|file| !self.0.has(file)).cloned().collect::<Vec<_>>() {
                    let message = format!("the card `{title}` names the file `{file}`, which is not there");
                    self.add(&path, line, "missing-file", message, "correct the path, or the status of the card");
                }
            }
            for other in card.depends.iter().filter(|other| !known.contains(&id(other))) {
                let message = format!("the card `{title}` depends on `{other}`, and there is no such card");
                self.add(&path, line, "unknown-dependency", message, "name another card by its title");
            }
            if card.status == Ok(State::Done) && card.acceptance.is_empty() {
                let message = format!("the card `{title}` is done and does not say what shows it");
                self.add(
                    &path,
                    line,
                    "done-without-acceptance",
                    message,
                    "write what shows that it is done in `acceptance`",
                );
            }
        }
    }

    /// Each circle is told once, at the card where it is met first.
    fn cycles(&mut self, all: &[(String, Card)]) {
        let by_id: HashMap<String, usize> =
            all.iter().enumerate().map(|(at, (_, card))| (id(&card.title), at)).collect();
        let next =
            |at: usize| all[at].1.depends.iter().filter_map(|title| by_id.get(&id(title)).copied()).collect::<Vec<_>>();
        // 0: not met, 1: on the way, 2: done.
        let mut met = vec![0_u8; all.len()];
        for start in 0..all.len() {
            let mut way: Vec<(usize, Vec<usize>)> = Vec::new();
            if met[start] == 0 {
                met[start] = 1;
                way.push((start, next(start)));
            }
            while let Some((at, rest)) = way.last_mut() {
                let at = *at;
                match rest.pop() {
                    Some(other) if met[other] == 0 => {
                        met[other] = 1;
                        way.push((other, next(other)));
                    }
                    Some(other) if met[other] == 1 => {
                        let from = way.iter().position(|(card, _)| *card == other).unwrap_or_default();
                        let titles: Vec<_> = way[from..].iter().map(|(card, _)| all[*card].1.title.as_str()).collect();
                        let message = format!(
                            "cards depend on each other in a circle: {} → {}",
                            titles.join(" → "),
                            all[other].1.title
                        );
                        let path = module_path(&all[other].0);
                        self.add(
                            &path,
                            all[other].1.line,
                            "dependency-cycle",
                            message,
                            "take one of these dependencies out",
                        );
                    }
                    Some(_) => {}
                    None => {
                        met[at] = 2;
                        way.pop();
                    }
                }
            }
        }
    }

    fn rules(&mut self, rules: &[Rules]) {
        let text = self.0.text(RULES).unwrap_or_default();
        for own in rules {
            if !rules::are_current(&text, own) {
                let message = format!("the rules of the group `{}` are not those that stand here", own.group);
                self.add(
                    RULES,
                    1,
                    "rules-out-of-date",
                    message,
                    "sync the rules: `portcullis projects sync`, or the tool `sync_blueprint_rules`",
                );
            }
        }
    }
}
