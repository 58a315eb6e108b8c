//! Which transport a server means.

use super::{
    Step,
    fields::{Server, Slots},
    findings::shown,
    node::Node,
    suggest,
};
use crate::{diagnostic::Code, transport::TransportKind};

/// What a server turned out to be.
pub(super) struct Resolved {
    /// `None` where it is left open; reported.
    pub(super) kind: Option<&'static TransportKind>,
    /// Whether the document says so, with `type`.
    pub(super) explicit: bool,
}

/// The kind that a value of `type` means.
pub(super) fn named(kinds: &[&'static TransportKind], text: &str) -> Option<&'static TransportKind> {
    kinds.iter().copied().find(|kind| kind.name == text || kind.vscode == Some(text) || kind.spellings.contains(&text))
}

/// Whether two values of `type` mean the same.
pub(super) fn same(kinds: &[&'static TransportKind], one: &Node<'_>, two: &Node<'_>) -> bool {
    let kind = |node: &Node<'_>| node.text().and_then(|text| named(kinds, text)).map(|kind| kind.name);
    one == two || kind(one).is_some_and(|name| kind(two) == Some(name))
}

/// The kinds whose main field is there.
pub(super) fn implied(kinds: &[&'static TransportKind], slots: &Slots<'_, '_>) -> Vec<&'static TransportKind> {
    kinds.iter().copied().filter(|kind| kind.implied_by.is_some_and(|field| slots.get(field).is_some())).collect()
}

/// Tells the kind, and says what stands against it.
pub(super) fn resolve(step: &mut Step<'_, '_>, server: Server<'_>, slots: &Slots<'_, '_>) -> Resolved {
    let implied = implied(step.kinds, slots);
    let stated = slots.get("type").is_some();
    let explicit = if stated { explicit(step, server, slots) } else { None };
    if let Some(kind) = explicit.filter(|kind| kind.refusal.is_some()) {
        return Resolved { kind: Some(kind), explicit: true };
    }
    let kind = match (implied.as_slice(), explicit) {
        ([one, two, ..], _) => {
            both(step, server, slots, one, two);
            None
        }
        (_, Some(kind)) if !has_main(kind, slots) => {
            conflict(step, server, slots, kind, implied.first().copied());
            None
        }
        (_, Some(kind)) => Some(kind),
        (_, None) if stated => None,
        ([one], None) => Some(*one),
        ([], None) => {
            neither(step, server, slots);
            None
        }
    };
    if slots.nested.is_some() && kind.is_some() {
        nested_beside(step, server, slots);
    }
    Resolved { kind, explicit: stated }
}

fn has_main(kind: &TransportKind, slots: &Slots<'_, '_>) -> bool {
    match kind.implied_by {
        Some(field) => slots.get(field).is_some(),
        None => true,
    }
}

/// The kind that `type` names.
fn explicit(step: &mut Step<'_, '_>, server: Server<'_>, slots: &Slots<'_, '_>) -> Option<&'static TransportKind> {
    let slot = slots.get("type")?;
    let (path, on) = (server.path.key(&slot.member.name), server.shown);
    let name = &slot.member.name;
    let usable = || {
        let names = step.kinds.iter().filter(|kind| kind.refusal.is_none()).map(|kind| format!("`{}`", kind.name));
        names.collect::<Vec<_>>().join(" or ")
    };
    let Some(text) = slot.node.text() else {
        let help = format!("write {}, or remove it where `command` or `url` says it", usable());
        let message = format!("`{name}` on {on} must be a text, not {}", slot.node.describe());
        let _ = step.findings.say(Code::ValueType, slot.node.span.clone(), &path, message).help(help);
        return None;
    };
    if text.trim().is_empty() {
        let help = format!("write {}, or remove it where `command` or `url` says it", usable());
        let message = format!("`{name}` on {on} is empty");
        let _ = step.findings.say(Code::ValueBlank, slot.node.span.clone(), &path, message).help(help);
        return None;
    }
    let Some(kind) = named(step.kinds, text) else {
        let spellings = step.kinds.iter().flat_map(|kind| {
            let others = kind.spellings.iter().copied().map(|spelling| (spelling, kind.name));
            std::iter::once((kind.name, kind.name)).chain(others).filter(|_| kind.refusal.is_none())
        });
        let near = suggest::nearest(text.trim(), spellings.clone().map(|(spelling, _)| spelling));
        let near = near.and_then(|near| spellings.clone().find(|(spelling, _)| *spelling == near));
        let help = match near {
            Some((_, kind)) => format!("write `\"{kind}\"`"),
            None => format!("write {}", usable()),
        };
        let message = format!("{on} has the type {}, which is no transport here", shown(text));
        let _ = step.findings.say(Code::TypeUnknown, slot.node.span.clone(), &path, message).help(help);
        return None;
    };
    if let Some(refusal) = kind.refusal {
        let message = format!("{on} cannot be used: {}", refusal.message);
        let _ = step.findings.say(refusal.code, slot.node.span.clone(), &path, message).help(refusal.help);
    } else if text != kind.name {
        let message = format!("the type {} of {on} is read as `{}`", shown(text), kind.name);
        let _ = step.findings.say(Code::AliasTranslated, slot.node.span.clone(), &path, message);
    }
    Some(kind)
}

fn both(step: &mut Step<'_, '_>, server: Server<'_>, slots: &Slots<'_, '_>, one: &TransportKind, two: &TransportKind) {
    let mut main: Vec<_> = [one, two].iter().filter_map(|kind| slots.get(kind.implied_by?)).collect();
    main.sort_by_key(|slot| slot.member.span.start);
    let [first, second] = main.as_slice() else { return };
    let (path, on) = (server.path.key(&second.member.name), server.shown);
    let (first, name) = (&first.member.name, &second.member.name);
    let message =
        format!("{on} has both `{first}` and `{name}`: it is a program on this machine or an address, not both");
    let _ = step
        .findings
        .say(Code::CommandAndUrl, second.member.span.clone(), &path, message)
        .help(format!("remove `{first}` or `{name}`, or make two servers of it"));
}

fn conflict(
    step: &mut Step<'_, '_>,
    server: Server<'_>,
    slots: &Slots<'_, '_>,
    kind: &TransportKind,
    other: Option<&TransportKind>,
) {
    let Some(slot) = slots.get("type") else { return };
    let (path, on, main) = (server.path.key(&slot.member.name), server.shown, kind.implied_by.unwrap_or_default());
    let stated = &slot.member.name;
    let found = other.and_then(|other| Some((other, slots.get(other.implied_by?)?)));
    let (message, help) = match found {
        Some((other, slot)) => {
            let has = &slot.member.name;
            (
                format!("`{stated}` of {on} says `{}`, which needs `{main}`, but it has `{has}`", kind.name),
                format!("remove `{stated}` if it is {}, or write `{main}` instead of `{has}`", other.summary),
            )
        }
        None => (
            format!("`{stated}` of {on} says `{}`, which needs `{main}`, and there is none", kind.name),
            format!(
                "write `{main}`: {}",
                kind.fields.iter().find(|field| field.name == main).map_or("", |field| field.doc)
            ),
        ),
    };
    let _ = step.findings.say(Code::TypeConflict, slot.node.span.clone(), &path, message).help(help);
}

fn neither(step: &mut Step<'_, '_>, server: Server<'_>, slots: &Slots<'_, '_>) {
    let on = server.shown;
    if let Some(member) = slots.nested {
        let name = &member.name;
        let message = format!("{on} holds everything inside `{name}`, where it is not read");
        let _ = step
            .findings
            .say(Code::NeitherCommandNorUrl, member.span.clone(), &server.path.key(name), message)
            .help(format!("move what is in `{name}` up one level, and remove `{name}`"));
        return;
    }
    let message = format!("{on} has neither `command` nor `url`");
    let _ = step
        .findings
        .say(Code::NeitherCommandNorUrl, server.span.clone(), server.path, message)
        .help("write `command` for a program on this machine, or `url` for a server on the network");
}

fn nested_beside(step: &mut Step<'_, '_>, server: Server<'_>, slots: &Slots<'_, '_>) {
    let Some(member) = slots.nested else { return };
    let (name, on) = (&member.name, server.shown);
    let message = format!("`{name}` on {on} holds an object, which is not read");
    let _ = step
        .findings
        .say(Code::FieldUnsupported, member.span.clone(), &server.path.key(name), message)
        .help(format!("move what is in `{name}` up one level, and remove `{name}`"));
}
