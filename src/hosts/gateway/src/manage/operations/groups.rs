//! Groups: which projects and servers belong together, and what opens their endpoint.

use portcullis::{gate::Members, store::Group};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};

use super::{Nothing, text};

operations! {
    "groups.list" Read Get "/groups" "groups" "All groups" Nothing => |gateway, _| {
        text(&gateway.0.gate.groups().await?.iter().map(shown).collect::<Vec<_>>())
    };
    "groups.show" Read Get "/groups/{group_id}" "groups" "One group" OneGroup => |gateway, OneGroup { group_id }| {
        text(&shown(&gateway.0.gate.group(&group_id).await?))
    };
    "groups.create" Dangerous Post "/groups" "groups" "Makes a group with nothing in it" Creates => |gateway, Creates { name }| {
        text(&shown(&gateway.0.gate.create_group(&name).await?))
    };
    "groups.remove" Dangerous Delete "/groups/{group_id}" "groups" "Removes a group and its token; its projects and servers stay"
    OneGroup => |gateway, OneGroup { group_id }| {
        let gone = gateway.0.gate.remove_group(&group_id).await?;
        text(&shown(&gone))
    };
    "groups.add" Dangerous Post "/groups/{group_id}/members" "groups" "Puts projects and servers into a group"
    Changes => |gateway, Changes { group_id, projects, servers }| {
        text(&shown(&gateway.0.gate.add_to_group(&group_id, &Members { projects, servers }).await?))
    };
    "groups.take" Dangerous Post "/groups/{group_id}/members/remove" "groups" "Takes projects and servers out of a group"
    Changes => |gateway, Changes { group_id, projects, servers }| {
        text(&shown(&gateway.0.gate.remove_from_group(&group_id, &Members { projects, servers }).await?))
    };
    "groups.rules" Dangerous Post "/groups/{group_id}/rules" "groups" "Names the file with the rules for the projects of a group"
    Rules => |gateway, Rules { group_id, file }| {
        text(&shown(&gateway.0.gate.set_group_rules(&group_id, file).await?))
    };
    "groups.token" Dangerous Post "/groups/{group_id}/token" "groups" "The token that opens a group's endpoint"
    Token => |gateway, Token { group_id, rotate }| {
        let gate = &gateway.0.gate;
        let known = if rotate { None } else { gate.group_token(&group_id).await? };
        let token = match known {
            Some(token) => token,
            None => gate.rotate_group_token(&group_id).await?,
        };
        text(&json!({"id": group_id, "path": format!("/groups/{group_id}/mcp"), "token": token.reveal()}))
    };
}

fn shown(group: &Group) -> Value {
    json!({
        "id": group.id, "name": group.name, "projects": group.projects, "servers": group.servers, "rules": group.rules,
    })
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct OneGroup {
    /// The group's id.
    group_id: String,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Creates {
    /// What it is to be called; its id is made of that.
    name: String,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Changes {
    /// The group's id.
    group_id: String,
    /// Ids of projects.
    #[serde(default)]
    projects: Vec<String>,
    /// Names of servers.
    #[serde(default)]
    servers: Vec<String>,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Rules {
    /// The group's id.
    group_id: String,
    /// A Markdown file, by its absolute path; none without it.
    #[serde(default)]
    file: Option<String>,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Token {
    /// The group's id.
    group_id: String,
    /// Whether a new one is made; the old one opens nothing any more.
    #[serde(default)]
    rotate: bool,
}
