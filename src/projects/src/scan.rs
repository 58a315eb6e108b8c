//! Projects that nobody registered yet.

use std::{
    fs,
    path::{Path, PathBuf},
};

use serde::Serialize;

use crate::{
    Folder,
    detect::{TechStack, is_manifest, stack},
};

/// How deep below a root is looked, in folders.
pub const SCAN_DEPTH: usize = 4;
/// Most folders that are looked at.
const FOLDERS: usize = 20_000;
/// Most entries of one folder.
const ENTRIES: usize = 10_000;
/// Most projects of one scan.
const PROJECTS: usize = 1000;
/// Folders in which others put what they made or fetched.
const BUILT: &[&str] = &[
    "node_modules",
    "target",
    "build",
    "dist",
    "out",
    "vendor",
    "venv",
    "env",
    "__pycache__",
    "bin",
    "obj",
    "coverage",
    "site-packages",
    "Pods",
    "DerivedData",
];

/// A folder that is a project.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Found {
    /// The name of the folder.
    pub name: String,
    /// Where it is.
    pub path: PathBuf,
    /// What it is made of.
    pub tech_stack: TechStack,
}

/// What a scan came to.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Scanned {
    /// The projects, by path.
    pub projects: Vec<Found>,
    /// Whether there was more than is looked at in one go.
    pub cut: bool,
    /// Roots that cannot be read.
    pub unreadable: Vec<PathBuf>,
}

/// Looks for projects below `roots` that are not among `registered`, `depth` folders deep. Links are not followed; a
/// project is not looked into.
#[must_use]
pub fn scan(roots: &[PathBuf], registered: &[PathBuf], depth: usize) -> Scanned {
    let mut scanned = Scanned::default();
    let mut seen = 0;
    let mut waiting: Vec<(PathBuf, usize)> = Vec::new();
    for root in roots {
        match fs::canonicalize(root) {
            Ok(root) if root.is_dir() => waiting.push((root, 0)),
            _ => scanned.unreadable.push(root.clone()),
        }
    }
    while let Some((folder, level)) = waiting.pop() {
        seen += 1;
        if seen > FOLDERS || scanned.projects.len() >= PROJECTS {
            scanned.cut = true;
            break;
        }
        let (is_project, below) = look(&folder);
        // A root may hold a manifest for all that is below it.
        if is_project && level > 0 {
            let known = registered.contains(&folder) || scanned.projects.iter().any(|found| found.path == folder);
            if !known {
                scanned.projects.extend(found(folder));
            }
        } else if level < depth && !registered.contains(&folder) {
            waiting.extend(below.into_iter().map(|folder| (folder, level + 1)));
        }
    }
    scanned.projects.sort_by(|a, b| a.path.cmp(&b.path));
    scanned
}

/// Whether it is a project, and the folders in it that may hold some.
fn look(folder: &Path) -> (bool, Vec<PathBuf>) {
    let (mut is_project, mut below) = (false, Vec::new());
    for entry in fs::read_dir(folder).into_iter().flatten().flatten().take(ENTRIES) {
        let name = entry.file_name();
        let (name, Ok(kind)) = (name.to_string_lossy(), entry.file_type()) else { continue };
        is_project |= name == ".git" || (!kind.is_dir() && is_manifest(&name));
        if kind.is_dir() && !name.starts_with('.') && !BUILT.contains(&&*name) {
            below.push(entry.path());
        }
    }
    (is_project, below)
}

fn found(path: PathBuf) -> Option<Found> {
    let name = path.file_name()?.to_string_lossy().into_owned();
    let tech_stack = Folder::open(&path).map(|folder| stack(&folder)).unwrap_or_default();
    Some(Found { name, path, tech_stack })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn c4_projects_are_found_and_build_folders_links_and_registered_ones_left_out() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().canonicalize().unwrap();
        let make = |path: &str, file: &str| {
            fs::create_dir_all(root.join(path)).unwrap();
            fs::write(root.join(path).join(file), "").unwrap();
        };
        make("a", "Cargo.toml");
        make("a/inner", "Cargo.toml");
        make("known", "go.mod");
        make("group/b", "package.json");
        make("group/node_modules/c", "package.json");
        make("group/.hidden/d", "package.json");
        make("1/2/3/deep", "go.mod");
        make("1/2/3/4/deeper", "go.mod");
        make("notes", "readme.md");
        fs::create_dir_all(root.join("git/.git")).unwrap();
        #[cfg(unix)]
        std::os::unix::fs::symlink(root.join("group/b"), root.join("link")).unwrap();
        let scanned = scan(&[root.clone(), root.join("none")], &[root.join("known")], SCAN_DEPTH);
        let paths: Vec<_> =
            scanned.projects.iter().map(|found| found.path.strip_prefix(&root).unwrap().to_str().unwrap()).collect();
        assert_eq!(paths, ["1/2/3/deep", "a", "git", "group/b"]);
        assert_eq!(scanned.projects[1].tech_stack, ["Rust"]);
        assert_eq!((scanned.cut, scanned.unreadable), (false, vec![root.join("none")]));
    }
}
