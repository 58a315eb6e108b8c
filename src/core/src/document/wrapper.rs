//! Finds the object that holds the servers, and tells another host's document by its content.

use super::{
    Step, fields,
    findings::{Findings, Path, insert, replace, shown},
    node::{Member, Node},
    suggest,
    tables::{self, Treated},
};
use crate::diagnostic::Code;

/// The wrappers of a document.
pub(super) const WRAPPERS: [&str; 2] = ["mcpServers", "servers"];

/// Another host's wrapper, and the host.
const FOREIGN: &[(&str, &str)] = &[
    ("context_servers", "Zed"),
    ("mcp", "opencode"),
    ("mcp_servers", "Codex"),
    ("amp.mcpServers", "Amp"),
    ("augment.advanced", "Augment"),
    ("extensions", "Goose"),
    ("mcp.servers", "VS Code settings"),
];

pub(super) fn is_wrapper(name: &str) -> bool {
    WRAPPERS.contains(&name)
}

/// Whether it reads like one server.
pub(super) fn looks_like_server(node: &Node<'_>) -> bool {
    ["command", "url", "httpUrl", "serverUrl", "baseUrl"]
        .iter()
        .any(|name| node.member(name).is_some_and(|member| !member.value.says_nothing()))
}

fn holds_servers(node: &Node<'_>) -> bool {
    node.members()
        .is_some_and(|members| !members.is_empty() && members.iter().all(|member| looks_like_server(&member.value)))
}

/// The objects with servers, or `None` where that is refused. A wrapper that stands twice counts twice.
pub(super) fn find<'n, 'a>(root: &'n Node<'a>, findings: &mut Findings<'_>) -> Option<Vec<&'n Member<'a>>> {
    let Some(members) = root.members() else {
        not_config(root, findings);
        return None;
    };
    let found: Vec<_> = members.iter().filter(|member| is_wrapper(&member.name)).collect();
    match found.as_slice() {
        [] => {
            if !other_purpose(root, findings) {
                no_wrapper(root, members, findings);
            }
            None
        }
        [first, rest @ ..] if rest.iter().any(|member| member.name != first.name) => {
            let _ = findings
                .say(Code::BothWrappers, 0..0, &Path::ROOT, "the document has both `mcpServers` and `servers`")
                .help("move all servers into one of them and remove the other; no host reads both");
            None
        }
        _ => Some(found),
    }
}

fn not_config(root: &Node<'_>, findings: &mut Findings<'_>) {
    let servers =
        root.items().is_some_and(|items| !items.is_empty() && items.iter().all(|item| item.members().is_some()));
    let message = if servers {
        "a list of servers, where a document is an object".to_owned()
    } else {
        format!("{} is not a document", root.describe())
    };
    let _ = findings
        .say(Code::NotConfig, 0..0, &Path::ROOT, message)
        .help("write `{\"mcpServers\": {\"name\": {…}}}`, with a name of your choice for each server");
}

/// JSON that belongs to MCP and is no client configuration.
fn other_purpose(root: &Node<'_>, findings: &mut Findings<'_>) -> bool {
    let has = |name: &str| root.member(name).is_some();
    let schema = root.member("$schema").and_then(|member| member.value.text()).unwrap_or_default();
    let (message, help) = if schema.ends_with("/server.schema.json")
        || (has("name") && (has("remotes") || has("packages")))
    {
        (
            "a registry's `server.json`, which describes a server to be published",
            "write `{\"mcpServers\": {\"name\": {…}}}` with the `url` of one of its `remotes`, or a `command` that runs one of its `packages`",
        )
    } else if has("manifest_version") || has("dxt_version") {
        (
            "the manifest of an MCPB (DXT) bundle, which is installed by the host it was made for",
            "unpack the bundle and write `{\"mcpServers\": {\"name\": {…}}}` with the `command` and `args` of its `mcp_config`",
        )
    } else {
        return false;
    };
    let _ = findings.say(Code::NotConfig, 0..0, &Path::ROOT, message).help(help);
    true
}

fn no_wrapper(root: &Node<'_>, members: &[Member<'_>], findings: &mut Findings<'_>) {
    const MISSING: &str = "the document has neither `mcpServers` nor `servers`";
    let known = members.iter().find_map(|member| {
        let (_, host) = FOREIGN.iter().find(|(name, _)| *name == member.name)?;
        Some((member, Some(*host)))
    });
    let near = || {
        let near =
            |member: &&Member<'_>| member.value.members().is_some() && suggest::is_near(&member.name, "mcpServers");
        members.iter().find(near).map(|member| (member, None))
    };
    if let Some((member, host)) = known.or_else(near) {
        let name = shown(&member.name);
        let nested = member.value.members().and_then(|inner| inner.iter().find(|inner| is_wrapper(&inner.name)));
        let message = match (nested, host) {
            (Some(inner), _) => format!("{MISSING}; {} is inside {name}, one level too deep", shown(&inner.name)),
            (None, Some(host)) => format!("{MISSING}; {name} is the wrapper of {host}"),
            (None, None) => format!("{MISSING}; {name} is not spelled like either"),
        };
        let said = findings.say(Code::NoWrapper, 0..0, &Path::ROOT, message);
        if let Some(inner) = nested {
            let _ = said.help(format!(
                "remove {name} and its braces, so that {} stands at the top of the document",
                shown(&inner.name)
            ));
        } else {
            let _ = said
                .help(format!("rename {name} to `mcpServers`, then each server is checked"))
                .fix("rename it to `mcpServers`", vec![replace(&member.span, "\"mcpServers\"")]);
        }
        return;
    }
    let (start, end) = (root.span.start, root.span.end);
    let said = findings.say(Code::NoWrapper, 0..0, &Path::ROOT, MISSING);
    if looks_like_server(root) {
        let _ = said
            .help("this is one server; write `{\"mcpServers\": {\"name\": {…}}}` around it, with a name of your choice")
            .fix(
                "wrap it as a server named `my-server`",
                vec![insert(start, "{\"mcpServers\": {\"my-server\": "), insert(end, "}}")],
            );
    } else if holds_servers(root) {
        let _ = said
            .help("these are servers; write `{\"mcpServers\": {…}}` around them")
            .fix("wrap them in `mcpServers`", vec![insert(start, "{\"mcpServers\": "), insert(end, "}")]);
    } else {
        let _ = said.help("write the servers as `{\"mcpServers\": {\"name\": {\"command\": …}}}`");
    }
}

/// Everything beside the wrapper.
pub(super) fn beside(step: &mut Step<'_, '_>, members: &[Member<'_>]) {
    for member in members.iter().filter(|member| !is_wrapper(&member.name) && member.name != "inputs") {
        let path = Path::ROOT.key(&member.name);
        match tables::treat(&member.name, &member.value) {
            Some(Treated::Refused { code, message, help }) => {
                fields::refuse(step, member, &path, code, message, help, "at the top of the document");
            }
            _ => {
                let other = FOREIGN.iter().find(|(name, _)| *name == member.name);
                let what = match other {
                    Some((_, host)) => format!("; servers in it are for {host} and are not read"),
                    None => String::new(),
                };
                let _ = step.findings.say(
                    Code::FieldIgnored,
                    member.span.clone(),
                    &path,
                    format!("{} beside the servers changes nothing here{what}", shown(&member.name)),
                );
            }
        }
    }
}
