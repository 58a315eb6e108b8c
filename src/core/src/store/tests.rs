//! What every store promises, and what the file store does with a file that others wrote.

mod faults;
mod permissions;
mod processes;
mod secrets;

use std::{
    convert::Infallible,
    fs,
    path::{Path, PathBuf},
    sync::Arc,
};

use serde_json::{Value, json};
use tempfile::TempDir;

use super::*;
use crate::{
    canonical::{hex, sha256},
    definition::{Definition, Fields, Fingerprint, Input, InputKind},
    tools::Pin,
    trust::{Resolution, TrustRecord},
};

fn fields(value: &Value) -> Fields {
    value.as_object().cloned().unwrap()
}

fn server(name: &str, command: &str) -> Definition {
    Definition::new(name, "stdio", fields(&json!({"command": command, "env": {"TOKEN": "canary-91c"}})))
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

fn decided(fingerprint: Fingerprint) -> Runtime {
    let pin = Pin::of(r#"{"name":"read"}"#).unwrap();
    Runtime {
        enabled: true,
        enabled_tools: [("read".to_owned(), pin)].into(),
        mode: Mode::AllowReadOnly,
        trust: Some(TrustRecord {
            fingerprint,
            resolution: Resolution { target: "/bin/a".into(), arguments: "00".into(), directory: None, reads: vec![] },
            at: "2026-01-01T00:00:00Z".into(),
            host: "test".into(),
        }),
        grants: vec![Grant {
            id: "g1".into(),
            tool: "read".into(),
            pin,
            caller: None,
            at: "2026-01-01T00:00:00Z".into(),
        }],
        unknown: Fields::new(),
    }
}

/// Two servers, of which `a` was decided on, and an input that `a` refers to.
async fn filled(store: &dyn StateStore) -> State {
    let key = store.key().await.unwrap();
    let (state, ()) = change(store, |state| {
        let mut a = server("a", "run");
        a.fields_mut().insert("args".into(), json!(["${input:region}"]));
        let runtime = decided(a.fingerprint(&key));
        state.definitions = vec![a, server("b", "other")];
        state.inputs = vec![input("region", "eu")];
        state.runtime.insert("a".into(), runtime);
        Ok::<_, Infallible>(())
    })
    .await
    .unwrap();
    state
}

fn in_folder() -> (TempDir, FileStore) {
    let home = tempfile::tempdir().unwrap();
    let store = FileStore::open(home.path().join("portcullis"));
    (home, store)
}

fn json_of(store: &FileStore) -> Value {
    serde_json::from_slice(&fs::read(store.state_path()).unwrap()).unwrap()
}

fn rewrite(store: &FileStore, edit: impl FnOnce(&mut Value)) {
    let mut whole = json_of(store);
    edit(&mut whole);
    fs::write(store.state_path(), whole.to_string()).unwrap();
}

fn leftovers(folder: &Path) -> Vec<PathBuf> {
    let paths = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    paths.filter(|path| path.file_name().unwrap().to_str().unwrap().starts_with(".state-")).collect()
}

/// What every store promises.
async fn contract(store: &(impl StateStore + ToolCache)) {
    assert_eq!(StateStore::load(store).await.unwrap().definitions, vec![]);
    let key = store.key().await.unwrap();
    assert_eq!(store.key().await.unwrap().bytes(), key.bytes());

    let state = filled(store).await;
    assert_eq!((state.revision, state.id.len()), (1, 32));
    assert_eq!(*StateStore::load(store).await.unwrap(), state);

    // A change with an error of its own is not saved.
    let refused = change(store, |state| {
        state.definitions.clear();
        Err::<(), _>("not on Fridays")
    })
    .await;
    assert!(matches!(refused, Err(ChangeError::Refused("not on Fridays"))));
    assert_eq!(*StateStore::load(store).await.unwrap(), state);

    // Nor is one that changes nothing.
    let (same, answer) = change(store, |state| Ok::<_, Infallible>(state.definitions.len())).await.unwrap();
    assert_eq!((same, answer), (state.clone(), 2));

    // An edited definition takes every decision with it, even where the change forgot.
    let (edited, ()) = change(store, |state| {
        state.definitions[0].fields_mut().insert("command".into(), json!("evil"));
        Ok::<_, Infallible>(())
    })
    .await
    .unwrap();
    assert_eq!(edited.runtime("a"), &Runtime::default());
    assert_eq!(*StateStore::load(store).await.unwrap(), edited);

    // A whole document over a newer revision says what changed meanwhile.
    let mut whole = state.clone();
    whole.definitions.remove(1);
    match store.compare_and_swap(state.revision, whole.clone()).await {
        Err(StoreError::Conflict { found: 2, expected: 1, changed, .. }) => assert_eq!(changed, ["a"]),
        other => panic!("{other:?}"),
    }
    let saved = store.compare_and_swap(2, whole).await.unwrap();
    assert_eq!((saved.revision, saved.definitions.len()), (3, 1));
    assert_eq!(*StateStore::load(store).await.unwrap(), saved);

    let fingerprint = server("a", "run").fingerprint(&key);
    let text = "{ \"name\":\"read\",\r\n \"x\": 1.0, \"x\" : 9007199254740993, \"e\":\"\\u00e9\" }";
    let tools = CachedTools {
        listed: vec![serde_json::value::RawValue::from_string(text.into()).unwrap()],
        pinned: [("read".to_owned(), serde_json::value::RawValue::from_string("[1e5]".into()).unwrap())].into(),
        at: "2026-01-01T00:00:00Z".into(),
        headers: true,
        revision: Some("2026-07-28".into()),
    };
    assert_eq!(ToolCache::load(store, fingerprint).await, None);
    store.save(fingerprint, &tools).await.unwrap();
    assert_eq!(ToolCache::load(store, fingerprint).await.as_ref(), Some(&tools));
    store.remove(fingerprint).await.unwrap();
    store.remove(fingerprint).await.unwrap();
    assert_eq!(ToolCache::load(store, fingerprint).await, None);
}

#[tokio::test]
async fn a_store_in_memory_keeps_the_contract() {
    contract(&MemoryStore::new().unwrap()).await;
}

#[tokio::test]
async fn a_store_in_a_folder_keeps_the_contract() {
    contract(&in_folder().1).await;
}

#[tokio::test]
async fn a_mocked_store_can_be_changed() {
    let mut store = MockStateStore::new();
    store.expect_update().once().returning(|change| {
        let mut state = State::default();
        change(&mut state).map(|()| state).map_err(|Refused| StoreError::Refused)
    });
    let (state, ()) = change(&store, |state| {
        state.definitions.push(server("a", "run"));
        Ok::<_, Infallible>(())
    })
    .await
    .unwrap();
    assert_eq!(state.definitions.len(), 1);
}

#[tokio::test]
async fn reading_makes_nothing() {
    let (_home, store) = in_folder();
    assert_eq!(*StateStore::load(&store).await.unwrap(), State::default());
    assert!(!store.folder().exists());
}

#[tokio::test]
async fn r8_a_store_whose_folder_cannot_be_made_reads_as_empty_and_says_so_when_saving() {
    let home = tempfile::tempdir().unwrap();
    fs::write(home.path().join("file"), "").unwrap();
    let store = FileStore::open(home.path().join("missing/deep"));
    assert_eq!(*StateStore::load(&store).await.unwrap(), State::default());
    let store = FileStore::open(home.path().join("file/portcullis"));
    assert_eq!(*StateStore::load(&store).await.unwrap(), State::default());
    let error = change(&store, |_| Ok::<_, Infallible>(())).await.unwrap_err().to_string();
    assert!(error.contains("while making its folder") && error.contains("file/portcullis"), "{error}");
}

#[tokio::test]
async fn conflicts_that_are_too_old_to_tell_are_told_by_what_differs() {
    let (_home, store) = in_folder();
    let first = filled(&store).await;
    for turn in 0..70 {
        change(&store, |state| {
            state.runtime_mut("b").unwrap().enabled = turn % 2 == 0;
            state.runtime_mut("b").unwrap().mode = Mode::Deny;
            Ok::<_, Infallible>(())
        })
        .await
        .unwrap();
    }
    match store.compare_and_swap(first.revision, first.clone()).await {
        Err(StoreError::Conflict { changed, .. }) => assert_eq!(changed, ["b"]),
        other => panic!("{other:?}"),
    }
    assert_eq!(json_of(&store)["recent"].as_array().unwrap().len(), 64);
}

#[tokio::test]
async fn r6_what_is_no_state_is_refused_and_left_as_it_is() {
    let (_home, store) = in_folder();
    filled(&store).await;
    let whole = fs::read(store.state_path()).unwrap();
    let deep = "[".repeat(100_000);
    let cases: Vec<(Vec<u8>, &str)> = vec![
        (b"".to_vec(), "empty"),
        (b" \n".to_vec(), "empty"),
        (whole[..whole.len() / 2].to_vec(), "ends in the middle"),
        (b"{}{".to_vec(), "not valid JSON"),
        (b"\xff\xfe\x00".to_vec(), "not valid JSON"),
        (deep.into_bytes(), "not valid JSON"),
        (b"[]".to_vec(), "not a JSON object"),
        (b"{}".to_vec(), "no `version`"),
        (br#"{"version":1,"servers":{}}"#.to_vec(), "version 1"),
        (br#"{"version":3,"revision":1}"#.to_vec(), "version 3"),
        (br#"{"version":"2","revision":1}"#.to_vec(), "no number"),
        (br#"{"version":2}"#.to_vec(), "`revision`"),
        (br#"{"version":2,"revision":1,"definitions":{}}"#.to_vec(), "`definitions`"),
        (br#"{"version":2,"revision":1,"definitions":[{"name":"a"}]}"#.to_vec(), "entry 1"),
        (br#"{"version":2,"revision":1,"inputs":[7]}"#.to_vec(), "entry 1"),
        (br#"{"version":2,"revision":1,"runtime":[]}"#.to_vec(), "`runtime`"),
        (
            br#"{"version":2,"revision":1,"definitions":[{"name":"a","type":"x","fields":{}},{"name":"a","type":"x","fields":{}}]}"#.to_vec(),
            "`a` twice",
        ),
    ];
    for (bytes, expected) in cases {
        fs::write(store.state_path(), &bytes).unwrap();
        let error = StateStore::load(&store).await.unwrap_err().to_string();
        assert!(error.contains(expected), "{error} / {expected}");
        assert!(error.contains(store.state_path().to_str().unwrap()) && error.contains("left untouched"), "{error}");
        assert!(change(&store, |_| Ok::<_, Infallible>(())).await.is_err());
        assert!(store.compare_and_swap(1, State::default()).await.is_err());
        assert_eq!(fs::read(store.state_path()).unwrap(), bytes);
    }
    fs::File::create(store.state_path()).unwrap().set_len(1 << 30).unwrap();
    let error = StateStore::load(&store).await.unwrap_err().to_string();
    assert!(error.contains("larger than 64 MiB"), "{error}");
    fs::remove_file(store.state_path()).unwrap();
    fs::create_dir(store.state_path()).unwrap();
    assert!(StateStore::load(&store).await.unwrap_err().to_string().contains("not a file"));
}

#[tokio::test]
async fn r6_an_error_never_shows_what_stands_in_the_file() {
    let (_home, store) = in_folder();
    filled(&store).await;
    for text in
        [r#"{"version":2,"env":{"TOKEN":"canary-91c}"#, r#"{"version":2,canary-91c"#, r#"{"version":"canary-91c"}"#]
    {
        fs::write(store.state_path(), text).unwrap();
        let error = StateStore::load(&store).await.unwrap_err();
        assert!(!format!("{error} {error:?}").contains("canary"), "{error:?}");
    }
}

#[tokio::test]
async fn r6_a_key_that_is_none_is_refused_and_left_as_it_is() {
    let (_home, store) = in_folder();
    filled(&store).await;
    fs::write(store.key_path(), "not a key").unwrap();
    assert!(matches!(store.key().await, Err(StoreError::Key { .. })));
    assert!(matches!(StateStore::load(&store).await, Err(StoreError::Key { .. })));
    assert!(change(&store, |_| Ok::<_, Infallible>(())).await.is_err());
    assert_eq!(fs::read(store.key_path()).unwrap(), b"not a key");
}

#[tokio::test]
async fn r7_what_a_newer_version_wrote_survives() {
    let (_home, store) = in_folder();
    filled(&store).await;
    change(&store, |state| {
        state.runtime_mut("a").unwrap().unknown.insert("pinnedBy".into(), json!({"x": [1, 2.5]}));
        Ok::<_, Infallible>(())
    })
    .await
    .unwrap();
    rewrite(&store, |whole| {
        whole["theme"] = json!({"b": 1, "a": null});
        whole["definitions"][1]["label"] = json!("B");
        whole["inputs"][0]["hint"] = json!("x");
    });
    change(&store, |state| {
        assert_eq!(state.distrusted, Vec::<String>::new());
        state.definitions.push(server("c", "new"));
        Ok::<_, Infallible>(())
    })
    .await
    .unwrap();
    let mine = State { definitions: vec![server("b", "other")], ..State::default() };
    let whole = json_of(&store);
    assert_eq!(whole["theme"].to_string(), r#"{"b":1,"a":null}"#);
    assert_eq!(whole["definitions"][1]["label"], "B");
    assert_eq!(whole["inputs"][0]["hint"], "x");
    assert_eq!(whole["runtime"]["a"]["pinnedBy"], json!({"x": [1, 2.5]}));
    assert_eq!(StateStore::load(&store).await.unwrap().distrusted, Vec::<String>::new());
    // A whole document leaves them, too, except those of what is gone.
    store.compare_and_swap(3, mine).await.unwrap();
    let whole = json_of(&store);
    assert_eq!((&whole["theme"]["b"], &whole["definitions"][0]["label"]), (&json!(1), &json!("B")));
}

#[tokio::test]
async fn s20_a_rewritten_store_gains_nothing() {
    type Edit = (&'static str, fn(&mut Value));

    let (_home, store) = in_folder();
    filled(&store).await;
    let whole = fs::read(store.state_path()).unwrap();
    let edits: [Edit; 11] = [
        ("a", |whole| whole["runtime"]["a"]["mode"] = json!("allow")),
        ("a", |whole| whole["runtime"]["a"]["grants"][0]["tool"] = json!("delete")),
        ("a", |whole| whole["runtime"]["a"]["enabledTools"]["delete"] = json!("0".repeat(64))),
        ("a", |whole| whole["runtime"]["a"]["trust"]["resolution"]["target"] = json!("/bin/evil")),
        ("a", |whole| whole["runtime"]["a"]["anything"] = json!(1)),
        ("a", |whole| whole["runtime"]["a"]["seal"] = json!("0".repeat(64))),
        ("a", |whole| {
            whole["runtime"]["a"].as_object_mut().unwrap().remove("seal");
        }),
        ("a", |whole| whole["definitions"][0]["fields"]["command"] = json!("evil")),
        ("a", |whole| whole["inputs"][0]["default"] = json!("evil")),
        ("b", |whole| whole["runtime"]["b"] = whole["runtime"]["a"].clone()),
        ("b", |whole| whole["runtime"]["b"] = json!({"enabled": true, "mode": "allow", "grants": []})),
    ];
    for (number, (name, edit)) in edits.into_iter().enumerate() {
        fs::write(store.state_path(), &whole).unwrap();
        rewrite(&store, edit);
        let state = StateStore::load(&store).await.unwrap();
        assert_eq!(state.runtime(name), &Runtime::default(), "{number}");
        assert_eq!(state.distrusted, [name], "{number}");
        assert_eq!(state.runtime("a").enabled, name == "b", "{number}");
        // The next save does not lend it our seal.
        let (saved, ()) = change(&store, |state| {
            state.definitions.push(server("c", "new"));
            Ok::<_, Infallible>(())
        })
        .await
        .unwrap();
        assert_eq!(saved.distrusted, Vec::<String>::new());
        assert_eq!(StateStore::load(&store).await.unwrap().runtime(name), &Runtime::default(), "{number}");
    }
}

/// Right after a change the store reads again whatever its stamp says, and relies on what it verified before.
#[tokio::test]
async fn s20_what_was_verified_under_one_key_holds_under_no_other() {
    let (_home, store) = in_folder();
    filled(&store).await;
    let before = StateStore::load(&store).await.unwrap();
    assert!(before.runtime.values().any(|runtime| runtime.trust.is_some()));
    assert!(Arc::ptr_eq(&before, &StateStore::load(&store).await.unwrap()), "it was verified twice");
    let key = fs::read_to_string(store.key_path()).unwrap();

    fs::write(store.key_path(), format!("{}\n", hex(&[7; 32]))).unwrap();
    let fresh = StateStore::load(&FileStore::open(store.folder())).await;
    let other = StateStore::load(&store).await;
    assert_eq!(format!("{other:?}"), format!("{fresh:?}"));
    assert!(other.is_err() || other.unwrap().runtime.values().all(|runtime| runtime.trust.is_none()));

    fs::write(store.key_path(), key).unwrap();
    assert_eq!(StateStore::load(&store).await.unwrap(), before);
}

#[tokio::test]
async fn s3_a_record_with_the_right_fingerprint_and_no_seal_of_ours_is_no_trust() {
    let (home, store) = in_folder();
    let state = filled(&store).await;
    let whole = json_of(&store);
    let key = store.key().await.unwrap();
    assert_eq!(whole["runtime"]["a"]["fingerprint"], json!(state.definitions[0].fingerprint(&key)));
    // The same file beside another key, and beside none.
    let other = FileStore::open(home.path().join("other"));
    filled(&other).await;
    fs::copy(store.state_path(), other.state_path()).unwrap();
    let state = StateStore::load(&other).await.unwrap();
    assert_eq!((state.runtime("a"), &*state.distrusted), (&Runtime::default(), &["a".to_owned()][..]));
    fs::remove_file(other.key_path()).unwrap();
    let state = StateStore::load(&other).await.unwrap();
    assert_eq!((state.runtime("a"), state.distrusted.len(), state.definitions.len()), (&Runtime::default(), 1, 2));
}

#[tokio::test]
async fn s18_decisions_do_not_come_back_with_a_server_that_was_removed_and_added_again() {
    let (_home, store) = in_folder();
    let before = filled(&store).await;
    let again = before.definitions[0].clone();
    for step in 0..2 {
        change(&store, |state| {
            if step == 0 {
                state.definitions.remove(0)
            } else {
                state.definitions.insert(0, again.clone());
                again.clone()
            };
            Ok::<_, Infallible>(())
        })
        .await
        .unwrap();
    }
    let state = StateStore::load(&store).await.unwrap();
    assert_eq!((state.definition("a"), state.runtime("a")), (Some(&again), &Runtime::default()));
}

#[tokio::test]
async fn a_declared_input_that_changes_takes_the_decisions_of_those_that_read_it() {
    let (_home, store) = in_folder();
    filled(&store).await;
    let (state, ()) = change(&store, |state| {
        state.runtime_mut("b").unwrap().enabled = true;
        state.inputs[0].default = Some("us".into());
        Ok::<_, Infallible>(())
    })
    .await
    .unwrap();
    assert_eq!((state.runtime("a").enabled, state.runtime("b").enabled), (false, true));
    assert_eq!(*StateStore::load(&store).await.unwrap(), state);
}

#[tokio::test]
async fn known_tools_that_cannot_be_read_are_not_there() {
    let (_home, store) = in_folder();
    let fingerprint = server("a", "run").fingerprint(&store.key().await.unwrap());
    store.save(fingerprint, &CachedTools::default()).await.unwrap();
    let path = store.folder().join("tools").join(format!("{fingerprint}.json"));
    for text in ["", "{", "[]", r#"{"listed":[{]}"#] {
        fs::write(&path, text).unwrap();
        assert_eq!(ToolCache::load(&store, fingerprint).await, None);
    }
    fs::remove_file(&path).unwrap();
    fs::create_dir(&path).unwrap();
    assert_eq!(ToolCache::load(&store, fingerprint).await, None);
}

#[test]
fn the_key_shows_in_no_debug_output() {
    let (_home, store) = in_folder();
    let key = StoreKey::new(sha256(b"x"));
    let store = FileStore::with_key(store.folder(), key.clone());
    assert!(!format!("{store:?}").contains(&hex(key.bytes())[..8]));
}
