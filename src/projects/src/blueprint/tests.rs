use std::fs;

use tempfile::TempDir;

use super::{prompt::MODULE_EXAMPLE, *};
use crate::Platform;

/// A project with these files.
fn project(files: &[(&str, &str)]) -> (TempDir, Folder) {
    let home = tempfile::tempdir().unwrap();
    for (path, text) in files {
        let path = home.path().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }
    let folder = Folder::open(home.path()).unwrap();
    (home, folder)
}

fn own_rules() -> Rules {
    Rules { group: "web".to_owned(), text: "# Rules\n\nNo secrets in code.\n".to_owned() }
}

#[test]
fn c5_cards_are_counted_and_what_does_not_fit_is_told_with_its_place() {
    let (_home, folder) = project(&[
        (".blueprint/manifest.yaml", "name: Shop\nmodules: [core, gone]\nmore: kept\n"),
        (
            ".blueprint/modules/core.md",
            "# core\n\n## Not a card\n\nwords\n\n## A\n- status: done\n- files: src/a.rs, src/none.rs\n\n## B\n- **Status:** doing\n\
             - depends: C\n\n### C\n* status: todo\n* depends: [B, \"nobody\"]\n* files:\n  - src/planned.rs\n\n## a\n\
             status: finished\n\n## D\n- complexity: S\n\n```\n## E\n- status: done\n```\n",
        ),
        (".blueprint/modules/extra.md", "## X\n- status: todo\n"),
        ("src/a.rs", ""),
    ]);
    let found = status(&folder, &[own_rules()]).unwrap();
    assert_eq!((found.name.as_str(), found.cards), ("Shop", 5));
    assert_eq!(found.by_status, [("doing", 1), ("done", 1), ("todo", 1), ("unknown", 2)].into());
    assert_eq!((found.modules[0].cards, found.modules[1].cards), (5, 0));
    let lines: Vec<_> = found
        .problems
        .iter()
        .map(|problem| format!("{}:{} {}: {}", problem.file, problem.line, problem.code, problem.message))
        .collect();
    insta::assert_snapshot!(lines.join("\n"));
}

#[test]
fn c5_a_blueprint_as_the_prompt_shows_it_has_no_problem() {
    let (home, folder) = project(&[("Cargo.toml", "[package]\n")]);
    let asked = prompt(&folder, "Shop \"2\"", Platform::Linux, &[own_rules()]).unwrap();
    insta::assert_snapshot!(asked);
    let between = |open: &str| {
        let (_, rest) = asked.split_once(open).unwrap();
        rest.split_once("```").unwrap().0.to_owned()
    };
    fs::create_dir_all(home.path().join(".blueprint/modules")).unwrap();
    fs::write(home.path().join(".blueprint/manifest.yaml"), between("```yaml\n")).unwrap();
    fs::write(home.path().join(".blueprint/modules/core.md"), between("```markdown\n")).unwrap();
    assert_eq!(between("```markdown\n"), MODULE_EXAMPLE);
    assert_eq!(sync(&folder, &own_rules()).unwrap(), Synced::Changed);
    let found = status(&folder, &[own_rules()]).unwrap();
    assert_eq!((found.name.as_str(), found.cards, found.problems.as_slice()), ("Shop \"2\"", 2, [].as_slice()));
    // Asked again, it says how far things are.
    assert!(prompt(&folder, "Shop", Platform::Linux, &[]).unwrap().contains("with 2 cards in 1 modules"));
}

#[test]
fn c5_rules_are_written_between_marks_and_told_when_they_are_old() {
    let (home, folder) = project(&[]);
    let file = home.path().join(".blueprint/RULES.md");
    assert_eq!(sync(&folder, &own_rules()).unwrap(), Synced::Changed);
    assert_eq!(sync(&folder, &own_rules()).unwrap(), Synced::Unchanged);
    insta::assert_snapshot!("rules", fs::read_to_string(&file).unwrap());
    // What a person wrote around them stays, their ends of lines too.
    let own =
        format!("mine\r\n\r\n{}\r\nmore\r\n", fs::read_to_string(&file).unwrap().trim_end().replace('\n', "\r\n"));
    fs::write(&file, &own).unwrap();
    assert_eq!(sync(&folder, &own_rules()).unwrap(), Synced::Unchanged);
    let newer = Rules { text: "Other.\n".to_owned(), ..own_rules() };
    assert_eq!(sync(&folder, &newer).unwrap(), Synced::Changed);
    let text = fs::read_to_string(&file).unwrap();
    assert!(
        text.starts_with("mine\r\n\r\n<!--") && text.ends_with("-->\r\nmore\r\n") && text.contains("\r\nOther.\r\n")
    );
    assert_eq!(text.matches('\n').count(), text.matches("\r\n").count());
    // Another group has marks of its own; one mark alone is nothing to guess about.
    let other = Rules { group: "ops".to_owned(), text: "x".to_owned() };
    assert_eq!(sync(&folder, &other).unwrap(), Synced::Changed);
    assert_eq!(sync(&folder, &newer).unwrap(), Synced::Unchanged);
    fs::write(&file, "<!-- portcullis: rules of web -->\n").unwrap();
    assert!(matches!(sync(&folder, &newer), Err(ProjectError::Marks)));
    assert_eq!(fs::read_to_string(&file).unwrap(), "<!-- portcullis: rules of web -->\n");
}

#[test]
fn a_manifest_that_is_wrong_or_hostile_is_an_error_at_once() {
    let long = "x".repeat(300_000);
    for (text, code) in [
        ("name: [", "manifest"),
        ("description: x\n", "manifest"),
        ("name: a\nname: b\n", "manifest"),
        ("name: a\nmodules: [\"../x\"]\n", "manifest"),
        (long.as_str(), "too-long"),
    ] {
        let (_home, folder) = project(&[(".blueprint/manifest.yaml", text)]);
        let error = status(&folder, &[]).unwrap_err();
        assert!(error.code() == code, "{code}: {error:?}");
    }
    let (_home, folder) = project(&[]);
    assert_eq!(status(&folder, &[]).unwrap_err().code(), "no-blueprint");
    // Nine to the power of twenty texts, if they were made.
    let mut bomb = "name: x\na0: &a0 [x,x,x,x,x,x,x,x,x]\n".to_owned();
    for level in 1..20 {
        let alias = format!("*a{},", level - 1).repeat(9);
        bomb.push_str(&format!("a{level}: &a{level} [{alias}]\n"));
    }
    let (_home, folder) = project(&[(".blueprint/manifest.yaml", &bomb)]);
    let begun = std::time::Instant::now();
    assert_eq!(status(&folder, &[]).unwrap_err().code(), "manifest");
    assert!(begun.elapsed() < std::time::Duration::from_secs(1));
}
