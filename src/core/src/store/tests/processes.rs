//! Several hosts on one store, and hosts that are killed.

use std::{
    collections::BTreeSet,
    io::{BufRead as _, BufReader, Read as _},
    process::{Child, Command, Stdio},
    time::Duration,
};

use super::*;

const TASK: &str = "PORTCULLIS_STORE_TEST";

/// Starts this test program again, to do `task` in [`a_child_does_its_task`].
pub(super) fn child(task: &str, folder: &Path, name: &str) -> Child {
    Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "store::tests::processes::a_child_does_its_task", "--nocapture"])
        .env(TASK, task)
        .env("PORTCULLIS_STORE_TEST_FOLDER", folder)
        .env("PORTCULLIS_STORE_TEST_NAME", name)
        .stdout(Stdio::piped())
        .spawn()
        .unwrap()
}

#[tokio::test]
async fn a_child_does_its_task() {
    let Ok(task) = std::env::var(TASK) else { return };
    let folder = PathBuf::from(std::env::var("PORTCULLIS_STORE_TEST_FOLDER").unwrap());
    let name = std::env::var("PORTCULLIS_STORE_TEST_NAME").unwrap();
    let store = FileStore::open(&folder);
    match &*task {
        "count" => loop {
            let (_, count) = change(&store, |state| {
                let counter = state.definitions[1].fields_mut();
                let count = counter["count"].as_u64().unwrap() + 1;
                counter["count"] = json!(count);
                Ok::<_, Infallible>(count)
            })
            .await
            .unwrap();
            println!("ack {count}");
        },
        "edit" => {
            for _ in 0..100 {
                let edit = change(&store, |state| {
                    let mine = state.definitions.iter_mut().find(|definition| definition.name() == name).unwrap();
                    let count = mine.fields()["count"].as_u64().unwrap() + 1;
                    mine.fields_mut().insert("count".into(), json!(count));
                    let pin = Pin::of(&count.to_string()).unwrap();
                    state.runtime_mut("a").unwrap().enabled_tools.insert(name.clone(), pin);
                    Ok::<_, Infallible>(())
                });
                edit.await.unwrap();
            }
        }
        "key" => println!("ack {}", hex(store.key().await.unwrap().bytes())),
        #[cfg(unix)]
        "umask" => permissions::save_with_an_open_umask(&folder).await,
        _ => panic!("{task}"),
    }
}

fn acknowledged(line: &str) -> Option<String> {
    // The test harness writes its own words before the first.
    line.split("ack ").nth(1).map(|rest| rest.trim().to_owned())
}

#[tokio::test]
async fn r1_a_host_that_is_killed_leaves_a_whole_store_with_all_that_it_acknowledged() {
    let (_home, store) = in_folder();
    filled(&store).await;
    change(&store, |state| {
        state.definitions[1] =
            Definition::new("b", "counter", fields(&json!({"count": 0, "bulk": "x".repeat(20_000)})));
        Ok::<_, Infallible>(())
    })
    .await
    .unwrap();
    let mut before = 0;
    for turn in 0..100_u64 {
        let mut child = child("count", store.folder(), "");
        let mut lines = BufReader::new(child.stdout.take().unwrap());
        let mut last = before;
        // Wait for the first save, then kill it somewhere in the following ones.
        let mut line = String::new();
        while last == before && lines.read_line(&mut line).unwrap() > 0 {
            last = acknowledged(&line).map_or(last, |count| count.parse().unwrap());
            line.clear();
        }
        let pause = u64::from(sha256(&turn.to_be_bytes())[0]) * 40;
        tokio::time::sleep(Duration::from_micros(pause)).await;
        child.kill().unwrap();
        child.wait().unwrap();
        let mut rest = String::new();
        lines.read_to_string(&mut rest).unwrap();
        // The last line may be cut.
        for line in rest.split_inclusive('\n').filter(|line| line.ends_with('\n')) {
            last = acknowledged(line).map_or(last, |count| count.parse().unwrap());
        }
        let state = StateStore::load(&store).await.unwrap();
        let count = state.definitions[1].fields()["count"].as_u64().unwrap();
        assert!(count == last || count == last + 1, "{count} is kept, {last} was acknowledged");
        assert!(last > before, "it saved");
        assert!(state.runtime("a").enabled && state.distrusted.is_empty());
        before = count;
    }
}

#[tokio::test]
async fn r5_ten_hosts_with_a_hundred_edits_each_lose_none() {
    let (_home, store) = in_folder();
    filled(&store).await;
    let names: Vec<_> = (0..10).map(|number| format!("host {number}")).collect();
    change(&store, |state| {
        let counter = |name: &String| Definition::new(name, "counter", fields(&json!({"count": 0})));
        state.definitions.extend(names.iter().map(counter));
        Ok::<_, Infallible>(())
    })
    .await
    .unwrap();
    let children: Vec<_> = names.iter().map(|name| child("edit", store.folder(), name)).collect();
    for mut child in children {
        let mut output = String::new();
        child.stdout.take().unwrap().read_to_string(&mut output).unwrap();
        assert!(child.wait().unwrap().success(), "{output}");
    }
    let state = StateStore::load(&store).await.unwrap();
    for name in &names {
        assert_eq!(state.definition(name).unwrap().fields()["count"], 100);
        assert_eq!(state.runtime("a").enabled_tools[name], Pin::of("100").unwrap());
    }
    assert_eq!((state.revision, &*state.distrusted), (1002, &[][..]));
    assert_eq!(leftovers(store.folder()), Vec::<PathBuf>::new());
}

#[test]
fn hosts_that_make_the_key_at_once_agree() {
    for _ in 0..5 {
        let home = tempfile::tempdir().unwrap();
        let folder = home.path().join("portcullis");
        let children: Vec<_> = (0..8).map(|_| child("key", &folder, "")).collect();
        let keys: BTreeSet<_> = children
            .into_iter()
            .map(|child| {
                let output = child.wait_with_output().unwrap();
                assert!(output.status.success());
                String::from_utf8(output.stdout).unwrap().lines().find_map(acknowledged).unwrap()
            })
            .collect();
        assert_eq!(keys.len(), 1);
        assert_eq!(fs::read_to_string(folder.join("key")).unwrap().trim(), keys.first().unwrap());
    }
}

#[test]
fn threads_of_one_host_lose_no_update() {
    let (_home, store) = in_folder();
    let runtime = || tokio::runtime::Builder::new_current_thread().build().unwrap();
    runtime().block_on(filled(&store));
    std::thread::scope(|scope| {
        for thread in 0..4 {
            let store = &store;
            scope.spawn(move || {
                for number in 0..25 {
                    runtime()
                        .block_on(change(store, |state| {
                            state.definitions.push(server(&format!("{thread}.{number}"), "x"));
                            Ok::<_, Infallible>(())
                        }))
                        .unwrap();
                }
            });
        }
    });
    let state = runtime().block_on(StateStore::load(&store)).unwrap();
    assert_eq!(state.definitions.len(), 102);
}
