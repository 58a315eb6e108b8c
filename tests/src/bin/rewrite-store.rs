//! Rewrites one server of a store, over and over, as another program would.
//!
//! `rewrite-store FOLDER TIMES DEFINITION…`: each definition in its turn, as `mcpServers` would hold it under the
//! name `target`. Prints a line once it begins.

#![allow(clippy::print_stdout, clippy::unwrap_used, reason = "a helper of tests")]

use portcullis::{
    Definition,
    serde_json::{self, Value},
    store::{FileStore, How, StateStore, change, reconcile},
    tokio,
};

#[tokio::main(flavor = "current_thread")]
async fn main() {
    let mut arguments = std::env::args().skip(1);
    let store = FileStore::open(arguments.next().unwrap());
    let times: usize = arguments.next().unwrap().parse().unwrap();
    let definitions: Vec<Definition> = arguments
        .map(|text| {
            let fields: Value = serde_json::from_str(&text).unwrap();
            Definition::new("target", "stdio", fields.as_object().cloned().unwrap())
        })
        .collect();
    let key = store.key().await.unwrap();
    println!("begins");
    for time in 0..times {
        let definition = definitions[time % definitions.len()].clone();
        change(&store, |state| {
            reconcile(state, vec![definition.clone()], Vec::new(), How::Merge, &key).map(drop).map_err(|_| ())
        })
        .await
        .unwrap();
    }
}
