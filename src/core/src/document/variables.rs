//! `${…}` in a value: whether it will be filled in, and from where.

use super::{
    Step,
    findings::{Path, shown},
    node::Node,
    value::Place,
};
use crate::{
    diagnostic::Code,
    reference::{Reference, Template},
    transport::FieldValue,
};

/// Kinds of other hosts. Any other word may be a piece of a secret and is not repeated.
const FOREIGN: &[&str] = &["cmd", "command", "config", "exec", "file", "op", "prompt", "sh", "shell", "vault"];

/// Checks every reference in `text`.
pub(super) fn check(step: &mut Step<'_, '_>, node: &Node<'_>, text: &str, path: &Path<'_>, place: Place<'_>) {
    if !text.contains('$') {
        return;
    }
    let mut at = 0;
    while let Some(found) = text[at..].find("${") {
        let start = at + found;
        let end = text[start..].find('}').map(|length| start + length + 1);
        at = end.unwrap_or(text.len());
        let (written, span) = (&text[start..at], node.within(start..at));
        let template = Template::parse(written);
        match template.as_ref().ok().and_then(|template| template.references().next()) {
            Some(reference) => {
                let whole = written.len() == text.len();
                if let Some((code, message, help)) = problem(step, reference, whole, place) {
                    let _ = step.findings.say(code, span, path, message).help(help);
                } else {
                    // As it is written, unless that holds a default, which may be a secret.
                    let name = match reference {
                        Reference::Variable { default: Some(_), .. } => shown(&reference.to_string()),
                        _ => shown(written),
                    };
                    let message = format!("{name} in {place} {}", source(reference));
                    let _ = step.findings.say(Code::Variable, span, path, message);
                }
            }
            None => {
                let (message, help) = unsupported(written, end.is_some(), place);
                let _ = step.findings.say(Code::VariableUnsupported, span, path, message).help(help);
            }
        }
    }
    if matches!(place.value, FieldValue::Environment | FieldValue::Headers) {
        suspect(step, node, text, path, place);
    }
}

fn source(reference: &Reference) -> &'static str {
    match reference {
        Reference::Variable { .. } => "is filled in from your environment at start",
        Reference::Input(_) => "is asked for at start",
        Reference::Secret(_) => "is filled in from the secret store at start",
        Reference::WorkspaceFolder => "is filled in with the folder of the project at start",
        Reference::UserHome => "is filled in with your home folder at start",
        Reference::Keep => "keeps the value that is stored already",
    }
}

/// Why a reference cannot stand here.
fn problem(
    step: &mut Step<'_, '_>,
    reference: &Reference,
    whole: bool,
    place: Place<'_>,
) -> Option<(Code, String, String)> {
    let name = shown(&reference.to_string());
    match reference {
        Reference::Keep | Reference::Secret(_) if !place.secret => Some((
            Code::VariableUnsupported,
            format!("{name} in {place} is filled in only in `env`, `headers` and `auth`"),
            match place.value {
                _ if *reference == Reference::Keep => "write the value itself; only those of secret fields are kept",
                FieldValue::Texts => "pass the secret in `env` where the program reads it there; arguments can be seen by every program of this machine",
                FieldValue::Url => "send the secret in `headers`; an address ends up in logs",
                _ => "write the value itself, or `${NAME}` for a variable of your environment",
            }
            .to_owned(),
        )),
        Reference::Keep if !whole => Some((
            Code::VariableUnsupported,
            format!("{name} in {place} stands for a whole stored value and cannot be a part of one"),
            "write `${keep}` alone, or the whole value".to_owned(),
        )),
        Reference::Input(id) if !step.inputs.refer(id) => Some((
            Code::InputUndeclared,
            format!("{name} in {place} refers to an input that `inputs` does not declare"),
            "declare it beside the servers: `\"inputs\": [{\"id\": \"…\", \"type\": \"promptString\"}]`".to_owned(),
        )),
        _ => None,
    }
}

fn unsupported(written: &str, closed: bool, place: Place<'_>) -> (String, &'static str) {
    const HELP: &str =
        "write `${NAME}` or `${NAME:-default}` for a variable, `${input:ID}`, `${workspaceFolder}` or `${userHome}`";
    if !closed {
        return (format!("a `${{` without `}}` in {place}"), "write `}` behind the name");
    }
    let kind = written[2..].split_once(':').map(|(kind, _)| kind).filter(|kind| FOREIGN.contains(kind));
    match kind {
        Some(kind @ ("cmd" | "command" | "exec" | "sh" | "shell")) => (
            format!("`${{{kind}:…}}` in {place} would run a program to make the value, which is never done"),
            "put the secret into the secret store and write `${secret:NAME}` in `env` or `headers`, or set a variable and write `${NAME}`",
        ),
        Some(kind) => (format!("`${{{kind}:…}}` in {place} is not filled in here"), HELP),
        None => (format!("a `${{…}}` in {place} is not a reference that can be filled in"), HELP),
    }
}

/// `$NAME` without braces. The name may be a piece of a password and is not repeated.
fn suspect(step: &mut Step<'_, '_>, node: &Node<'_>, text: &str, path: &Path<'_>, place: Place<'_>) {
    let bytes = text.as_bytes();
    let found = bytes.windows(2).enumerate().find(|(at, pair)| {
        pair[0] == b'$' && (pair[1].is_ascii_alphabetic() || pair[1] == b'_') && (*at == 0 || bytes[at - 1] != b'$')
    });
    if let Some((at, _)) = found {
        let name = bytes[at + 1..].iter().take_while(|byte| byte.is_ascii_alphanumeric() || **byte == b'_').count();
        let _ = step
            .findings
            .say(
                Code::VariableSuspect,
                node.within(at..at + 1 + name),
                path,
                format!("a `$` with a name behind it in {place} is sent as it is, since it has no braces"),
            )
            .help("write `${NAME}` if a variable is meant");
    }
}
