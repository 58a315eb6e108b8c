use proptest::prelude::*;
use serde_json::json;

use super::*;
use crate::{
    definition::InputKind,
    store::{Mode, Runtime},
};

fn key() -> StoreKey {
    StoreKey::new([7; 32])
}

fn stdio(name: &str, fields: &Value) -> Definition {
    Definition::new(name, "stdio", fields.as_object().cloned().unwrap())
}

fn remote(name: &str, fields: &Value) -> Definition {
    Definition::new(name, "streamable-http", fields.as_object().cloned().unwrap())
}

fn input(id: &str, default: &str) -> Input {
    Input {
        id: id.into(),
        kind: InputKind::PromptString,
        description: None,
        default: Some(default.into()),
        password: false,
        options: Vec::new(),
    }
}

fn stored(definitions: Vec<Definition>) -> State {
    let runtime = definitions
        .iter()
        .map(|definition| {
            (definition.name().to_owned(), Runtime { enabled: true, mode: Mode::Deny, ..Runtime::default() })
        })
        .collect();
    State { definitions, runtime, ..State::default() }
}

fn names(names: &[&str]) -> Vec<String> {
    names.iter().map(|name| (*name).to_owned()).collect()
}

#[test]
fn a_merge_keeps_what_it_does_not_name_and_replaces_in_place() {
    let (a, b) = (stdio("a", &json!({"command": "a"})), stdio("b", &json!({"command": "b"})));
    let mut state = stored(vec![a.clone(), b.clone()]);
    let servers = vec![stdio("c", &json!({"command": "c"})), stdio("a", &json!({"command": "other"}))];
    let done = reconcile(&mut state, servers, vec![], How::Merge, &key()).unwrap();
    let expected = Reconciled {
        added: names(&["c"]),
        changed: names(&["a"]),
        stale: vec![a.fingerprint(&key())],
        ..Reconciled::default()
    };
    assert_eq!(done, expected);
    let order: Vec<_> = state.definitions.iter().map(Definition::name).collect();
    assert_eq!(order, ["a", "b", "c"]);
    assert_eq!(state.runtime("a"), &Runtime::default());
    assert!(state.runtime("b").enabled);
}

#[test]
fn a_replace_removes_what_it_does_not_name_and_takes_its_order() {
    let (a, b) = (stdio("a", &json!({"command": "a"})), stdio("b", &json!({"command": "b"})));
    let mut state = stored(vec![a.clone(), b.clone(), stdio("c", &json!({"command": "c"}))]);
    let servers = vec![b, a];
    let done = reconcile(&mut state, servers, vec![], How::Replace, &key()).unwrap();
    assert_eq!((done.unchanged, done.removed, done.stale.len()), (names(&["b", "a"]), names(&["c"]), 1));
    let order: Vec<_> = state.definitions.iter().map(Definition::name).collect();
    assert_eq!(order, ["b", "a"]);
    assert!(state.runtime("a").enabled && !state.runtime.contains_key("c"));
}

#[test]
fn s1_time_limits_are_taken_over_and_cost_nothing() {
    let mut state = stored(vec![stdio("a", &json!({"command": "a", "timeoutMs": 1}))]);
    let servers = vec![stdio("a", &json!({"timeoutMs": 2, "command": "a", "startupTimeoutMs": 3}))];
    let done = reconcile(&mut state, servers, vec![], How::Replace, &key()).unwrap();
    assert_eq!((done.unchanged, done.stale), (names(&["a"]), vec![]));
    assert_eq!(state.definitions[0].fields()["timeoutMs"], 2);
    assert!(state.runtime("a").enabled);
}

#[test]
fn s33_what_is_left_to_the_store_is_what_is_stored() {
    let before = vec![
        stdio("a", &json!({"command": "a", "env": {"T": "secret", "a/b~c": "${env:X}", "N": "1"}})),
        remote("r", &json!({"url": "https://h/x", "headers": {"A": "v"}, "auth": {"type": "bearer", "token": ["t"]}})),
    ];
    let mut state = stored(before.clone());
    let servers = vec![
        stdio("a", &json!({"command": "a", "env": {"T": "${keep}", "a/b~c": "${keep}", "N": "1"}})),
        remote(
            "r",
            &json!({"url": "https://h/x", "headers": {"A": "${keep}"}, "auth": {"type": "bearer", "token": ["${keep}"]}}),
        ),
    ];
    let done = reconcile(&mut state, servers, vec![], How::Replace, &key()).unwrap();
    assert_eq!(done.unchanged, names(&["a", "r"]));
    assert_eq!(state.definitions, before);
}

#[test]
fn what_is_not_stored_cannot_be_kept_and_every_case_is_told() {
    let mut state = stored(vec![stdio("a", &json!({"command": "a", "env": {"N": {"deep": 1}}}))]);
    let before = state.clone();
    let servers = vec![
        stdio("a", &json!({"command": "a", "env": {"x/y": "${keep}", "N": "${keep}"}})),
        stdio("new", &json!({"command": "a", "env": {"T": "${keep}"}})),
    ];
    let errors = reconcile(&mut state, servers, vec![], How::Merge, &key()).unwrap_err();
    let unknown =
        |server: &str, pointer: &str| ReconcileError::KeepUnknown { server: server.into(), pointer: pointer.into() };
    assert_eq!(errors, [unknown("a", "/env/x~1y"), unknown("a", "/env/N"), unknown("new", "/env/T")]);
    assert_eq!(
        errors[0].to_string(),
        "`a` has no stored value for `/env/x~1y` that `${keep}` could stand for; write the value itself"
    );
    assert_eq!(state, before);

    // Another transport is another definition.
    let servers = vec![remote("a", &json!({"url": "https://h", "env": {"N": "${keep}"}}))];
    assert_eq!(reconcile(&mut state, servers, vec![], How::Merge, &key()).unwrap_err(), [unknown("a", "/env/N")]);
}

#[test]
fn s36_stored_values_do_not_follow_a_url_to_another_place() {
    let at = |url: &str, header: &str| remote("r", &json!({"url": url, "headers": {"A": header}}));
    for (old, new, kept) in [
        ("https://h/x", "https://h/y?z=1", true),
        ("https://h/x", "https://H:443/x", true),
        ("https://h/x", "https://h/${VERSION}", true),
        ("https://${HOST}/x", "https://${HOST}/x", true),
        ("https://h/x", "http://h/x", false),
        ("https://h/x", "https://evil/x", false),
        ("https://h/x", "https://h:8443/x", false),
        ("https://h/x", "https://h.evil/x", false),
        ("https://h/x", "https://h\\@evil/x", true), // the backslash ends the host: still `h`
        ("https://h/x", "https://h@evil/x", false),
        ("https://h/x", "https://${HOST}/x", false),
        ("https://${HOST}/x", "https://${host}/x", false),
        ("https://${HOST}/x", "https://${HOST}.evil/x", false),
        ("https://h/x", "https:evil", false),
        ("https://h/x", "${URL}", false),
        ("${URL}", "${OTHER}", false),
        ("https:h/x", "https:evil/x", false),
        ("https:///${HOST}/x", "https:///${host}/x", false),
        ("https://h/x", "https://${A}@h/x", false),
        ("https://h/x", "https://h:${PORT}/x", false),
        ("${URL}", "${URL}", true),
    ] {
        let mut state = stored(vec![at(old, "v")]);
        let before = state.clone();
        match reconcile(&mut state, vec![at(new, "${keep}")], vec![], How::Merge, &key()) {
            Ok(_) => assert!(kept, "{old} {new}"),
            Err(errors) => {
                assert!(!kept, "{old} {new}");
                let moved = ReconcileError::KeepMoved { server: "r".into(), pointer: "/headers/A".into() };
                assert_eq!(errors, [moved]);
                assert_eq!(state, before);
            }
        }
    }
}

#[test]
fn s33_another_command_or_argument_keeps_what_is_stored() {
    let at = |command: &str, token: &str| stdio("a", &json!({"command": command, "env": {"T": token}}));
    let mut state = stored(vec![at("${HOME}/a", "v")]);
    let done = reconcile(&mut state, vec![at("${HOME}/b", "${keep}")], vec![], How::Merge, &key()).unwrap();
    assert_eq!((done.changed, &state.definitions[0]), (names(&["a"]), &at("${HOME}/b", "v")));
}

#[test]
fn s36_stored_values_do_not_follow_an_endpoint_of_the_authorization() {
    let at = |token: &str, secret: &str| {
        remote(
            "r",
            &json!({"url": "https://h/x", "auth": {"type": "oauth", "tokenUrl": token, "clientSecret": secret}}),
        )
    };
    let mut state = stored(vec![at("https://i/token", "v")]);
    let moved = vec![at("https://evil/token", "${keep}")];
    assert!(reconcile(&mut state, moved, vec![], How::Merge, &key()).is_err());
    reconcile(&mut state, vec![at("https://i/other", "${keep}")], vec![], How::Merge, &key()).unwrap();
}

#[test]
fn names_that_share_an_id_are_refused_together() {
    let mut state = stored(vec![stdio("GitHub", &json!({"command": "a"}))]);
    let servers = vec![
        stdio("github", &json!({"command": "b"})),
        stdio("x_y", &json!({"command": "b"})),
        stdio("x-y", &json!({"command": "b"})),
    ];
    let collision = |server: &str, other: &str, id: &str| ReconcileError::NameCollision {
        server: server.into(),
        other: other.into(),
        id: id.into(),
    };
    let errors = reconcile(&mut state, servers.clone(), vec![], How::Merge, &key()).unwrap_err();
    assert_eq!(errors, [collision("github", "GitHub", "github"), collision("x-y", "x_y", "x-y")]);
    let errors = reconcile(&mut state, servers[1..].to_vec(), vec![], How::Replace, &key()).unwrap_err();
    assert_eq!(errors, [collision("x-y", "x_y", "x-y")]);
    let twice = vec![stdio("a", &json!({"command": "b"})), stdio("a", &json!({"command": "c"}))];
    assert_eq!(reconcile(&mut state, twice, vec![], How::Merge, &key()).unwrap_err(), [collision("a", "a", "a")]);
    // Replacing one by the other is a renaming.
    let renamed = vec![stdio("github", &json!({"command": "a"}))];
    let done = reconcile(&mut state, renamed, vec![], How::Replace, &key()).unwrap();
    assert_eq!((done.added, done.removed), (names(&["github"]), names(&["GitHub"])));
    assert_eq!(state.runtime("github"), &Runtime::default());
}

#[test]
fn inputs_are_merged_by_id_and_conflicts_are_refused() {
    let a = stdio("a", &json!({"command": "a", "args": ["${input:region}"]}));
    let mut state = stored(vec![a.clone()]);
    state.inputs = vec![input("region", "eu"), input("unused", "x")];
    let before = state.clone();
    let conflict = ReconcileError::InputConflict { id: "region".into() };
    let errors = reconcile(&mut state, vec![], vec![input("region", "us")], How::Merge, &key()).unwrap_err();
    assert_eq!((errors, &state), (vec![conflict], &before));

    let done = reconcile(&mut state, vec![], vec![input("region", "eu"), input("n", "")], How::Merge, &key()).unwrap();
    assert_eq!((done, state.inputs.len()), (Reconciled::default(), 3));

    // The whole document may change one, and whoever reads it starts over.
    let done = reconcile(&mut state, vec![a], vec![input("region", "us")], How::Replace, &key()).unwrap();
    assert_eq!((done.changed, done.unchanged), (names(&["a"]), vec![]));
    assert_eq!((state.runtime("a"), state.inputs.len()), (&Runtime::default(), 1));
}

fn document() -> impl Strategy<Value = Vec<Definition>> {
    let fields = ("[ab]", prop::collection::vec("[ab]{0,2}", 0..3), prop::option::of(0..3_u64));
    prop::collection::btree_map("[a-d]", fields, 0..5).prop_map(|servers| {
        servers
            .into_iter()
            .map(|(name, (command, args, limit))| {
                let mut fields = json!({"command": command, "args": args});
                if let Some(limit) = limit {
                    fields["timeoutMs"] = json!(limit);
                }
                stdio(&name, &fields)
            })
            .collect()
    })
}

proptest! {
    #[test]
    fn decisions_are_kept_exactly_where_the_fingerprint_is_and_twice_changes_nothing(
        before in document(), after in document(), replace in any::<bool>(),
    ) {
        let how = if replace { How::Replace } else { How::Merge };
        let old = stored(before);
        let mut state = old.clone();
        let done = reconcile(&mut state, after.clone(), vec![], how, &key()).unwrap();
        for definition in &state.definitions {
            let name = definition.name();
            let same = old.definition(name).is_some_and(|old| old.fingerprint(&key()) == definition.fingerprint(&key()));
            prop_assert_eq!(state.runtime(name).enabled, same);
            prop_assert_eq!(state.runtime(name) == &Runtime::default(), !same);
        }
        for name in state.runtime.keys() {
            prop_assert!(state.definition(name).is_some());
        }
        prop_assert_eq!(done.stale.len(), done.changed.len() + done.removed.len());

        let once = state.clone();
        let again = reconcile(&mut state, after.clone(), vec![], how, &key()).unwrap();
        prop_assert_eq!(state, once);
        prop_assert_eq!(again.unchanged.len(), after.len());
        prop_assert!(again.added.is_empty() && again.changed.is_empty() && again.removed.is_empty());
    }
}
