//! Who may use whom, and what core does not contain.

use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
};

use cargo_metadata::{DependencyKind, MetadataCommand};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap().to_owned()
}

/// Our crates, each with its folder and those of ours that it uses to run.
fn crates() -> BTreeMap<String, (PathBuf, Vec<String>)> {
    let metadata = MetadataCommand::new()
        .manifest_path(root().join("Cargo.toml"))
        .no_deps()
        .other_options(["--offline".to_owned()])
        .exec()
        .unwrap();
    let ours: Vec<_> = metadata.packages.iter().map(|package| package.name.to_string()).collect();
    let uses = |package: &cargo_metadata::Package| {
        let normal = package.dependencies.iter().filter(|dependency| dependency.kind != DependencyKind::Development);
        normal.map(|dependency| dependency.name.clone()).filter(|name| ours.contains(name)).collect::<Vec<_>>()
    };
    let folder = |package: &cargo_metadata::Package| {
        let folder = package.manifest_path.parent().unwrap().as_std_path();
        folder.strip_prefix(root()).unwrap_or(folder).to_owned()
    };
    let packages = metadata.packages.iter();
    packages.map(|package| (package.name.to_string(), (folder(package), uses(package)))).collect()
}

#[test]
fn e3_dependencies_point_one_way() {
    let crates = crates();
    let core = "portcullis";
    assert!(crates.len() > 5, "{crates:?}");
    for (name, (folder, uses)) in &crates {
        let allowed = |other: &str| {
            let lies_in = |part: &str| crates.get(other).is_some_and(|(folder, _)| folder.starts_with(part));
            if folder.starts_with("src/core") || folder.starts_with("src/projects") {
                false
            } else if folder.starts_with("src/transports")
                || folder.starts_with("plugins")
                || folder.starts_with("src/hosts/settings")
                || folder.starts_with("src/hosts/apps")
                || folder.starts_with("src/hosts/keyring")
            {
                other == core
            } else if folder.starts_with("src/hosts") {
                // The gateway is embedded by what runs it; otherwise a host uses no host.
                let runs_it = ["src/hosts/tauri", "src/hosts/cli"].iter().any(|host| folder.starts_with(host));
                let embeds = runs_it && lies_in("src/hosts/gateway");
                let lent = ["settings", "keyring", "apps"].iter().any(|part| lies_in(&format!("src/hosts/{part}")));
                other == core
                    || lies_in("src/projects")
                    || lies_in("src/transports")
                    || lies_in("plugins")
                    || lent
                    || embeds
            } else if folder.starts_with("fixtures") {
                false
            } else {
                ["tests", "benches", "examples"].iter().any(|part| folder.starts_with(part))
            }
        };
        for other in uses {
            assert!(allowed(other), "`{name}` must not use `{other}`");
        }
    }
}

/// Every Rust file below `folder` without its tests.
fn sources(folder: &Path, found: &mut Vec<(PathBuf, String)>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        if path.is_dir() && name != "tests" {
            sources(&path, found);
        } else if name.ends_with(".rs") && name != "tests.rs" {
            let text = fs::read_to_string(&path).unwrap();
            let code = text.split("#[cfg(test)]\nmod tests {").next().unwrap_or_default();
            let code = code.lines().filter(|line| !line.trim_start().starts_with("//")).collect::<Vec<_>>();
            found.push((path, code.join("\n")));
        }
    }
}

fn contain_none_of(folder: &str, words: &[&str]) {
    let mut found = Vec::new();
    sources(&root().join(folder), &mut found);
    assert!(!found.is_empty(), "`{folder}` has no sources");
    for (path, code) in found {
        for word in words {
            assert!(!code.contains(word), "`{}` contains `{word}`", path.display());
        }
    }
}

#[test]
fn core_starts_nothing_opens_nothing_reads_no_environment_and_prints_nothing() {
    contain_none_of(
        "src/core/src",
        &[
            "std::process::Command",
            "process::Command",
            "Command::new",
            "std::env::",
            "env::var",
            "TcpStream",
            "TcpListener",
            "UdpSocket",
            "UnixStream",
            "println!",
            "eprintln!",
            "print!(",
        ],
    );
}

#[test]
fn documents_are_read_by_pure_code() {
    contain_none_of(
        "src/core/src/document",
        &["tokio", "rmcp", "process", "socket", "std::env", "env::", "std::fs", "std::net"],
    );
}
