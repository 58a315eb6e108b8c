//! The `auth` object: `none`, `bearer` or `oauth`.

use serde_json::Value as Json;

use super::{
    Step, address,
    findings::{Path, shown},
    node::{Node, Value},
    suggest,
    value::{self, Place},
};
use crate::diagnostic::Code;

const BEARER: &[&str] = &["token"];
const OAUTH: &[&str] =
    &["scopes", "clientId", "clientSecret", "authorizationEndpoint", "tokenEndpoint", "registrationEndpoint", "issuer"];
const HELP: &str =
    "write `{\"type\": \"oauth\"}`, `{\"type\": \"bearer\", \"token\": \"${secret:NAME}\"}` or `{\"type\": \"none\"}`";

/// Reads `auth`; another host's shape is refused.
pub(super) fn read(step: &mut Step<'_, '_>, node: &Node<'_>, path: &Path<'_>, place: Place<'_>) -> Option<Json> {
    if matches!(node.value, Value::Null) {
        let _ = step
            .findings
            .say(Code::ValueType, node.span.clone(), path, format!("{place} must be an object, not `null`"))
            .help("remove it for a server without a login");
        return None;
    }
    let stated = node.member("type").and_then(|member| member.value.text());
    let (kind, own) = match stated {
        Some("none") => ("none", &[][..]),
        Some("bearer") => ("bearer", BEARER),
        Some("oauth") => ("oauth", OAUTH),
        _ => {
            let message = format!("{place} is another host's way to log in, which is not read here");
            let _ = step.findings.say(Code::FieldUnsupported, node.span.clone(), path, message).help(HELP);
            return None;
        }
    };
    let mut fields = serde_json::Map::new();
    fields.insert("type".to_owned(), kind.into());
    for member in node.members().unwrap_or_default().iter().filter(|member| !member.repeated && member.name != "type") {
        let (name, path) = (&*member.name, path.key(&member.name));
        let place = Place { key: Some(name), ..place };
        if !own.contains(&name) {
            let near = suggest::nearest(name, own.iter().copied());
            let message = format!("{} in `auth` on {} is not a field of `{kind}`", shown(name), place.server.shown);
            let said = step.findings.say(Code::FieldUnsupported, member.span.clone(), &path, message);
            let _ = match near {
                Some(near) => said.help(format!("did you mean `{near}`?")),
                None => said.help("remove it"),
            };
        } else if name == "scopes" {
            let place = Place { field: "auth.scopes", key: None, value: crate::transport::FieldValue::Texts, ..place };
            if let Some(scopes) = value::texts(step, &member.value, &path, place) {
                fields.insert(name.to_owned(), scopes);
            }
        } else if let Some(text) = value::not_blank(step, &member.value, &path, place) {
            if name.ends_with("Endpoint") || name == "issuer" {
                address::check(step, &member.value, &text, &path, place);
            }
            fields.insert(name.to_owned(), text.into());
        }
    }
    if kind == "bearer" && node.member("token").is_none() {
        let message = format!("{place} says `bearer`, which needs `token`, and there is none");
        let _ = step
            .findings
            .say(Code::TypeConflict, node.span.clone(), path, message)
            .help("write `\"token\": \"${secret:NAME}\"`, or `${NAME}` for a variable of your environment");
    }
    Some(Json::Object(fields))
}
