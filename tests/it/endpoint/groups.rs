//! Groups and projects at the endpoint: each group sees itself and nothing else.

use std::fs;

use portcullis::{
    approval::Answer,
    audit::AuditEvent,
    gate::Members,
    serde_json::{Value, json},
    testing::FakeServer,
    tokio,
};
use portcullis_gateway::EndpointOptions;
use portcullis_harness::Harness;
use tempfile::TempDir;

use super::{
    Endpoint, TOKEN,
    http::{self, raw, request},
    newer,
};
use crate::common::{limits, within};

/// Three groups of three projects each; the first two show one server each.
pub(super) struct Groups {
    pub(super) endpoint: Endpoint,
    pub(super) tokens: Vec<String>,
    folder: TempDir,
    servers: [FakeServer; 2],
}

pub(super) const GROUPS: [&str; 3] = ["web", "ops", "lab"];

impl Groups {
    pub(super) async fn new() -> Self {
        let servers = [FakeServer::new(), FakeServer::new()];
        let [fake, other] = &servers;
        let host = Harness::new().server("fake", fake).server("other", other).waits().limits(limits());
        let host = host.start().await.unwrap();
        host.make_ready("fake").await.unwrap();
        host.make_ready("other").await.unwrap();
        let endpoint = Endpoint::new(host, EndpointOptions::default()).await;
        let folder = tempfile::tempdir().unwrap();
        let gate = endpoint.host.gate();
        let mut tokens = Vec::new();
        for (group, server) in GROUPS.into_iter().zip([Some("fake"), Some("other"), None]) {
            assert_eq!(gate.create_group(group).await.unwrap().id, group);
            let mut members =
                Members { servers: server.into_iter().map(str::to_owned).collect(), ..Members::default() };
            for number in 1..=3 {
                let path = folder.path().join(format!("{group}-{number}"));
                fs::create_dir_all(path.join(".blueprint/modules")).unwrap();
                fs::write(path.join("Cargo.toml"), "[dependencies]\naxum = \"0.8\"\n").unwrap();
                fs::write(path.join("readme.md"), format!("of {group}")).unwrap();
                fs::write(path.join(".blueprint/manifest.yaml"), format!("name: {group}\nmodules: []\n")).unwrap();
                let name = format!("{group}-{number}");
                members.projects.push(gate.register_project(path.to_str().unwrap(), &name).await.unwrap().0.id);
            }
            gate.add_to_group(group, &members).await.unwrap();
            tokens.push(gate.rotate_group_token(group).await.unwrap().reveal().to_owned());
        }
        Self { endpoint, tokens, folder, servers }
    }

    async fn raw(&self, path: &str, token: &str, method: &str, params: &Value) -> http::Answer {
        let body = newer(method, params.clone(), &json!({})).to_string();
        let authorization = format!("Bearer {token}");
        let headers = [
            ("Authorization", authorization.as_str()),
            ("MCP-Protocol-Version", "2026-07-28"),
            ("Mcp-Method", method),
            ("Mcp-Name", params["name"].as_str().unwrap_or("")),
        ];
        within(raw(self.endpoint.port, &request("POST", path, self.endpoint.port, &headers, &body))).await
    }

    /// A call of an own tool at the endpoint of a group.
    async fn call(&self, group: usize, tool: &str, arguments: Value) -> Value {
        let path = format!("/groups/{}/mcp", GROUPS[group]);
        let params = json!({"name": tool, "arguments": arguments});
        self.raw(&path, &self.tokens[group], "tools/call", &params).await.json()["result"].clone()
    }
}

fn without_date(answer: http::Answer) -> (Vec<String>, String) {
    let head: Vec<_> = answer.head.lines().filter(|line| !line.starts_with("date:")).map(str::to_owned).collect();
    (head, answer.body)
}

#[tokio::test]
async fn s48_a_token_opens_its_own_group_and_tells_nothing_of_others() {
    let groups = Groups::new().await;
    let listed = groups.raw("/groups/web/mcp", &groups.tokens[0], "tools/list", &json!({})).await.json();
    let names: Vec<_> =
        listed["result"]["tools"].as_array().unwrap().iter().map(|tool| tool["name"].as_str().unwrap()).collect();
    assert_eq!(names[..2], ["fake__echo", "fake__raw"]);
    assert!(names.contains(&"list_group_projects") && !names.contains(&"scan_unregistered_projects"), "{names:?}");
    assert!(!names.iter().any(|name| name.starts_with("other")), "{names:?}");
    let nowhere = without_date(groups.raw("/groups/nowhere/mcp", &groups.tokens[0], "tools/list", &json!({})).await);
    assert!(nowhere.0[0].contains("401"), "{nowhere:?}");
    let old = groups.tokens[0].clone();
    for (path, token) in [
        ("/groups/ops/mcp", groups.tokens[0].as_str()),
        ("/groups/web/mcp", TOKEN),
        ("/groups/web/mcp", "x"),
        ("/groups/web/mcp", "0000000000000000000000000000000000000000000"),
        ("/mcp", &old),
        ("/servers/fake/mcp", &old),
    ] {
        let answer = without_date(groups.raw(path, token, "tools/list", &json!({})).await);
        assert_eq!(answer, nowhere, "{path} {token}");
    }
    // A new token takes the place of the old one at once, and a group that is gone is opened by none.
    let gate = groups.endpoint.host.gate();
    let new = gate.rotate_group_token("web").await.unwrap();
    assert_eq!(without_date(groups.raw("/groups/web/mcp", &old, "tools/list", &json!({})).await), nowhere);
    assert_eq!(groups.raw("/groups/web/mcp", new.reveal(), "tools/list", &json!({})).await.status, 200);
    gate.remove_group("web").await.unwrap();
    assert_eq!(without_date(groups.raw("/groups/web/mcp", new.reveal(), "tools/list", &json!({})).await), nowhere);
}

#[tokio::test]
async fn s48_what_is_outside_of_a_group_does_not_exist_byte_for_byte() {
    let groups = Groups::new().await;
    let listed = groups.call(0, "list_group_projects", json!({})).await;
    let projects: Value = portcullis::serde_json::from_str(listed["content"][0]["text"].as_str().unwrap()).unwrap();
    let ids: Vec<_> = projects.as_array().unwrap().iter().map(|project| project["id"].as_str().unwrap()).collect();
    assert_eq!(ids, ["web-1", "web-2", "web-3"]);
    assert_eq!(projects[0]["techStack"], json!(["Axum", "Rust"]));
    let own = groups.call(0, "get_project_file", json!({"project_id": "web-1", "relative_path": "readme.md"})).await;
    assert_eq!(own["content"][0]["text"], "of web");
    let nothing = groups.call(0, "get_project_file", json!({"project_id": "none", "relative_path": "readme.md"})).await;
    assert_eq!((&nothing["isError"], &nothing["content"][0]["text"]), (&json!(true), &json!("it does not exist")));
    for tool in ["get_project_file", "get_project_blueprint", "get_blueprint_status", "generate_blueprint_prompt"] {
        for outside in ["ops-1", "ops-2", "ops-3", "lab-1", "none", "../ops-1", ""] {
            for group in [None, Some("web"), Some("ops"), Some("nowhere")] {
                let mut arguments = json!({"project_id": outside});
                if tool == "get_project_file" {
                    arguments["relative_path"] = "readme.md".into();
                }
                if let Some(group) = group {
                    arguments["group_id"] = group.into();
                }
                let answer = groups.call(0, tool, arguments.clone()).await;
                assert_eq!(answer["content"], nothing["content"], "{tool} {arguments}");
                assert_eq!(answer["isError"], true);
            }
        }
    }
    // Other servers neither.
    let other = groups.raw("/groups/web/mcp", &groups.tokens[0], "tools/call", &json!({"name": "other__echo"})).await;
    let none = groups.raw("/groups/web/mcp", &groups.tokens[0], "tools/call", &json!({"name": "nobody__echo"})).await;
    let blank = |answer: http::Answer, name: &str| answer.body.replace(name, "NAME");
    assert_eq!(blank(other, "other__echo"), blank(none, "nobody__echo"));
    assert!(groups.servers[1].calls().is_empty());
}

#[tokio::test]
async fn c4_unregistering_is_asked_about_and_leaves_the_folder_as_it_was() {
    let groups = Groups::new().await;
    let before = everything(groups.folder.path());
    let answered = async |answer: Answer| {
        let question = groups.endpoint.question().await;
        assert_eq!((question.server.as_str(), question.tool.as_str()), ("portcullis", "unregister_project"));
        assert!(question.arguments.contains("web-2") && question.caller.contains("group web"), "{question:?}");
        groups.endpoint.answer(&question.id, answer);
    };
    let arguments = json!({"project_id": "web-2"});
    let (denied, ()) = tokio::join!(groups.call(0, "unregister_project", arguments.clone()), answered(Answer::Deny));
    assert_eq!(denied["isError"], true);
    assert_eq!(groups.endpoint.host.gate().projects().await.unwrap().len(), 9);
    let (done, ()) = tokio::join!(groups.call(0, "unregister_project", arguments.clone()), answered(Answer::Once));
    assert_eq!(done["structuredContent"]["id"], "web-2", "{done}");
    assert_eq!(groups.endpoint.host.gate().projects().await.unwrap().len(), 8);
    assert_eq!(groups.endpoint.host.gate().group("web").await.unwrap().projects, ["web-1", "web-3"]);
    assert_eq!(everything(groups.folder.path()), before);
    let trail = groups.endpoint.host.gate().trail(3).await.unwrap();
    assert_eq!(trail.last().unwrap().outcome.as_deref(), Some("ok"));
    let events: Vec<_> = trail.iter().map(|line| (line.event, line.server.as_deref())).collect();
    let own = Some("portcullis");
    assert_eq!(events, [(AuditEvent::Answer, own), (AuditEvent::Remove, None), (AuditEvent::Call, own)]);
}

/// Every file below a folder, with what stands in it.
fn everything(folder: &std::path::Path) -> Vec<(String, String)> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            found.extend(everything(&path));
        } else {
            found.push((path.display().to_string(), fs::read_to_string(&path).unwrap()));
        }
    }
    found.sort();
    found
}

#[tokio::test]
async fn s48_a_session_of_a_group_outlives_its_changes_and_sees_no_more_than_it_holds() {
    let groups = Groups::new().await;
    let gate = groups.endpoint.host.gate();
    gate.set_mode("fake", portcullis::store::Mode::Allow).await.unwrap();
    let authorization = format!("Bearer {}", groups.tokens[0]);
    let mut session = String::new();
    let mut ask = async |method: &str, params: Value| {
        let headers = [("Authorization", authorization.as_str()), ("Mcp-Session-Id", session.as_str())];
        let headers = if session.is_empty() { &headers[..1] } else { &headers[..] };
        let body = json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params}).to_string();
        let message = request("POST", "/groups/web/mcp", groups.endpoint.port, headers, &body);
        let answer = within(raw(groups.endpoint.port, &message)).await;
        session = answer.header("mcp-session-id").unwrap_or(std::mem::take(&mut session));
        answer.json()
    };
    let hello =
        json!({"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "c", "version": "1"}});
    ask("initialize", hello).await;
    let call = json!({"name": "fake__echo", "arguments": {"text": "x"}});
    assert_eq!(ask("tools/call", call.clone()).await["result"]["content"][0]["text"], "x");
    gate.unregister_project("web-2", None).await.unwrap();
    assert_eq!(ask("tools/call", call.clone()).await["result"]["content"][0]["text"], "x");
    let taken = Members { servers: vec!["fake".to_owned()], ..Members::default() };
    gate.remove_from_group("web", &taken).await.unwrap();
    let refused = ask("tools/call", call).await;
    assert_eq!(refused["error"]["code"], -32_602, "{refused}");
    assert_eq!(groups.servers[0].calls().len(), 2);
}

#[tokio::test]
async fn s48_streams_end_with_the_right_to_them() {
    let groups = Groups::new().await;
    let gate = groups.endpoint.host.gate();
    let stream = async |token: &str| {
        let authorization = format!("Bearer {token}");
        let meta = newer("subscriptions/listen", json!({"notifications": {"toolsListChanged": true}}), &json!({}));
        let headers = [
            ("Authorization", authorization.as_str()),
            ("MCP-Protocol-Version", "2026-07-28"),
            ("Mcp-Method", "subscriptions/listen"),
        ];
        let message = request("POST", "/groups/web/mcp", groups.endpoint.port, &headers, &meta.to_string());
        let mut coming = within(http::open(groups.endpoint.port, &message)).await.head().await;
        assert_eq!(within(coming.event()).await["method"], "notifications/subscriptions/acknowledged");
        coming
    };
    let mut old = stream(&groups.tokens[0]).await;
    let new = gate.rotate_group_token("web").await.unwrap();
    within(old.ends()).await;
    let mut newer = stream(new.reveal()).await;
    gate.remove_group("web").await.unwrap();
    within(newer.ends()).await;
}

#[tokio::test]
async fn s48_calls_end_with_the_right_to_them() {
    let groups = Groups::new().await;
    let gate = groups.endpoint.host.gate();
    let token = groups.tokens[0].clone();
    let call = async |token: String| {
        let call = json!({"name": "fake__echo", "arguments": {"text": "x"}});
        let headers = [
            ("Authorization", format!("Bearer {token}")),
            ("MCP-Protocol-Version", "2026-07-28".to_owned()),
            ("Mcp-Method", "tools/call".to_owned()),
            ("Mcp-Name", "fake__echo".to_owned()),
        ];
        let headers = headers.each_ref().map(|(name, value)| (*name, value.as_str()));
        let body = newer("tools/call", call, &json!({})).to_string();
        let message = request("POST", "/groups/web/mcp", groups.endpoint.port, &headers, &body);
        within(async { http::open(groups.endpoint.port, &message).await.json().await }).await
    };
    // The person is being asked, and the right to ask goes.
    let rotated = async || {
        groups.endpoint.question().await;
        gate.rotate_group_token("web").await.unwrap().reveal().to_owned()
    };
    let (answer, token) = tokio::join!(call(token), rotated());
    let removed = async || {
        groups.endpoint.question().await;
        gate.remove_group("web").await.unwrap();
    };
    let (other, ()) = tokio::join!(call(token), removed());
    for answer in [answer, other] {
        let said = answer["error"]["message"].clone();
        assert!(said.as_str().unwrap_or_default().contains("removed or given another token"), "{said}");
    }
    assert!(groups.endpoint.host.gate().questions().open().is_empty());
    assert!(groups.servers[0].calls().is_empty());
}

#[tokio::test]
async fn s48_a_group_forgets_a_project_that_another_one_holds_for_itself_alone() {
    let groups = Groups::new().await;
    let gate = groups.endpoint.host.gate();
    let shared = Members { projects: vec!["web-2".to_owned()], ..Members::default() };
    gate.add_to_group("ops", &shared).await.unwrap();
    let allowed = async || {
        let question = groups.endpoint.question().await;
        groups.endpoint.answer(&question.id, Answer::Once);
    };
    let arguments = json!({"project_id": "web-2"});
    let (done, ()) = tokio::join!(groups.call(0, "unregister_project", arguments.clone()), allowed());
    assert_eq!(done["structuredContent"]["id"], "web-2", "{done}");
    assert_eq!(gate.group("web").await.unwrap().projects, ["web-1", "web-3"]);
    assert!(gate.group("ops").await.unwrap().projects.contains(&"web-2".to_owned()));
    assert_eq!(gate.projects().await.unwrap().len(), 9);
    // The last one that holds it forgets it for all.
    let (done, ()) = tokio::join!(groups.call(1, "unregister_project", arguments), allowed());
    assert_eq!(done["structuredContent"]["id"], "web-2", "{done}");
    assert_eq!(gate.projects().await.unwrap().len(), 8);
}

#[tokio::test]
async fn c5_rules_are_synced_once_a_person_says_so() {
    let groups = Groups::new().await;
    let gate = groups.endpoint.host.gate();
    let rules = groups.folder.path().join("rules.md");
    fs::write(&rules, "No secrets.\n").unwrap();
    gate.set_group_rules("web", Some(rules.display().to_string())).await.unwrap();
    let status = groups.call(0, "get_blueprint_status", json!({"project_id": "web-1"})).await;
    assert_eq!(status["structuredContent"]["problems"][0]["code"], "rules-out-of-date", "{status}");
    let (synced, ()) = tokio::join!(groups.call(0, "sync_blueprint_rules", json!({"project_id": "web-1"})), async {
        let question = groups.endpoint.question().await;
        // From now on until the host ends: there is no server that an "always" could hang off.
        groups.endpoint.answer(&question.id, Answer::Always);
    });
    assert_eq!(synced["structuredContent"]["groups"], json!([{"group": "web", "rules": "changed"}]), "{synced}");
    let status = groups.call(0, "get_blueprint_status", json!({"project_id": "web-1"})).await;
    assert_eq!(status["structuredContent"]["problems"], json!([]), "{status}");
    let again = groups.call(0, "sync_blueprint_rules", json!({"project_id": "web-1"})).await;
    assert_eq!(again["structuredContent"]["groups"][0]["rules"], "unchanged");
    assert!(gate.grants().await.unwrap().is_empty());
}

#[tokio::test]
async fn s20_projects_and_groups_that_another_program_wrote_are_not_there() {
    use portcullis::store::{FileStore, StateStore as _};
    let folder = tempfile::tempdir().unwrap();
    let store = FileStore::open(folder.path());
    store
        .update(&mut |state| {
            state.projects.push(portcullis::store::Project { id: "a".into(), path: "/a".into(), ..Default::default() });
            state.groups.push(portcullis::store::Group {
                id: "g".into(),
                projects: vec!["a".into(), "gone".into()],
                ..Default::default()
            });
            Ok(())
        })
        .await
        .unwrap();
    let path = folder.path().join("state.json");
    let written = fs::read_to_string(&path).unwrap();
    // Another program adds a member that this one does not know: outside of the seal it stays, within it breaks it.
    fs::write(&path, written.replacen('{', r#"{"newer": 1,"#, 1)).unwrap();
    let state = FileStore::open(folder.path()).load().await.unwrap();
    assert_eq!((state.projects.len(), state.group("g").unwrap().projects.as_slice()), (1, ["a".to_owned()].as_slice()));
    for forged in [written.replace("\"/a\"", "\"/etc\""), written.replace("\"a\"\n", "\"a\", \"b\"\n")] {
        assert_ne!(forged, written);
        fs::write(&path, forged).unwrap();
        let state = FileStore::open(folder.path()).load().await.unwrap();
        assert!(state.projects.is_empty() && state.groups.is_empty());
    }
}
