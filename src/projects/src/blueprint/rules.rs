//! The rules of a group in a project, between marks: what stands around them is the project's own.

use std::{
    io,
    sync::{Mutex, PoisonError},
};

use serde::Serialize;

use super::{FOLDER, RULES};
use crate::{Folder, ProjectError};

/// How often a sync is tried where others write the file.
const TRIES: u32 = 5;

/// The rules of one group.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rules {
    /// The group's id.
    pub group: String,
    /// Markdown.
    pub text: String,
}

/// What a sync came to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Synced {
    /// They stood there already.
    Unchanged,
    /// They stand there now.
    Changed,
}

fn marks(group: &str) -> (String, String) {
    (format!("<!-- portcullis: rules of {group} -->"), format!("<!-- portcullis: end of the rules of {group} -->"))
}

/// Where the rules stand, with their marks.
fn range(text: &str, group: &str) -> Result<Option<std::ops::Range<usize>>, ProjectError> {
    let (begin, end) = marks(group);
    match (text.find(&begin), text.find(&end)) {
        (Some(from), Some(to)) if from < to => Ok(Some(from..to + end.len())),
        (None, None) => Ok(None),
        _ => Err(ProjectError::Marks),
    }
}

fn block(rules: &Rules) -> String {
    let (begin, end) = marks(&rules.group);
    // A mark within would end them early.
    let body = rules.text.replace("\r\n", "\n").replace("<!-- portcullis:", "<!-- portcullis :");
    format!("{begin}\n{}\n{end}", body.trim_end())
}

pub(super) fn are_current(text: &str, rules: &Rules) -> bool {
    let text = text.replace("\r\n", "\n");
    matches!(range(&text, &rules.group), Ok(Some(range)) if text[range.clone()] == block(rules))
}

/// Writes the rules of a group into `.blueprint/RULES.md` of a project. What stands outside of the marks stays as it
/// is, its ends of lines too.
///
/// # Errors
///
/// [`ProjectError::Marks`], or what keeps the file from being read or written; it is as it was.
pub fn sync(folder: &Folder, rules: &Rules) -> Result<Synced, ProjectError> {
    // One at a time in this process; of another one it is seen whether it wrote in between.
    static ONE: Mutex<()> = Mutex::new(());
    let _one = ONE.lock().unwrap_or_else(PoisonError::into_inner);
    for _ in 0..TRIES {
        let before = current(folder)?;
        let Some(after) = synced(&before, rules)? else { return Ok(Synced::Unchanged) };
        if folder.write(FOLDER, "RULES.md", &after, || Ok(current(folder)? == before))? {
            return Ok(Synced::Changed);
        }
    }
    let busy = io::Error::new(io::ErrorKind::ResourceBusy, "others write it all the time");
    Err(ProjectError::Io { attempt: "written", source: busy })
}

fn current(folder: &Folder) -> Result<String, ProjectError> {
    match folder.text(RULES) {
        Err(ProjectError::NotFound) => Ok(String::new()),
        text => text,
    }
}

/// The file with the rules in it; nothing where they stand there already.
fn synced(before: &str, rules: &Rules) -> Result<Option<String>, ProjectError> {
    if are_current(before, rules) {
        return Ok(None);
    }
    let ends = before.matches('\n').count();
    let crlf = ends > 0 && ends == before.matches("\r\n").count();
    let block = if crlf { block(rules).replace('\n', "\r\n") } else { block(rules) };
    let end = if crlf { "\r\n" } else { "\n" };
    Ok(Some(match range(before, &rules.group)? {
        Some(range) => [&before[..range.start], &block, &before[range.end..]].concat(),
        None if before.is_empty() => format!("{block}{end}"),
        None => format!("{}{end}{end}{block}{end}", before.trim_end()),
    }))
}
