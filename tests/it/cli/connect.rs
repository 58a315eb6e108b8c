//! `connect` and `disconnect`: the files of other applications.

use std::{fs, process::Stdio};

use serde_json::Value;

use super::program::{Home, Run};

const CURSOR: &str = r#"{
  // mine
  "mcpServers": {
    "git": { "command": "uvx", "args": ["mcp-server-git"] }
  },
  "unknown": [1.50]
}
"#;

/// Runs it as somebody whose home folder is the folder of `home`.
fn run(home: &Home, arguments: &[&str]) -> Run {
    Run::of(home.command(arguments).env("HOME", home.path("")).stdin(Stdio::null()).output().unwrap())
}

fn with_cursor(text: Option<&str>) -> Home {
    let home = Home::new();
    fs::create_dir(home.path(".cursor")).unwrap();
    if let Some(text) = text {
        fs::write(home.path(".cursor/mcp.json"), text).unwrap();
    }
    home
}

fn text(home: &Home, name: &str) -> String {
    fs::read_to_string(home.path(name)).unwrap()
}

fn token(home: &Home) -> String {
    text(home, "home/mcp-token").trim().to_owned()
}

#[test]
fn c6_what_connects_is_shown_and_nothing_is_changed() {
    let home = with_cursor(Some(CURSOR));
    let shown = run(&home, &["connect", "cursor"]).ends(0);
    let token = token(&home);
    snapshot!(home, shown.out.replace(&token, "[TOKEN]"), @r#"
    {
      "mcpServers": {
        "portcullis": {
          "url": "http://127.0.0.1:27190/mcp",
          "headers": {
            "Authorization": "Bearer [TOKEN]"
          }
        }
      }
    }
    "#);
    snapshot!(home, shown.err, @"
    this belongs into [FOLDER]/.cursor/mcp.json
    `portcullis connect cursor --write` puts it there
    it holds the token of the endpoint: whoever has it can ask for calls as this client
    `portcullis serve` has to run for it
    ");
    assert_eq!(text(&home, ".cursor/mcp.json"), CURSOR);
    let shown = run(&home, &["connect", "codex", "--token-from", "GATE_TOKEN"]).ends(0);
    assert!(!shown.out.contains(&token) && !shown.err.contains(&token));
    snapshot!(home, shown.out, @r#"
    [mcp_servers.portcullis]
    url = "http://127.0.0.1:27190/mcp"
    bearer_token_env_var = "GATE_TOKEN"
    "#);
    let shown = run(&home, &["connect", "claude-desktop"]).ends(0);
    let snippet: Value = serde_json::from_str(&shown.out).unwrap();
    let entry = &snippet["mcpServers"]["portcullis"];
    assert_eq!(entry["args"], serde_json::json!(["serve", "--stdio"]));
    assert_eq!(entry["env"]["PORTCULLIS_HOME"], home.text("home"));
    assert_eq!(
        run(&home, &["--json", "connect", "claude-desktop", "--token-from", "X"]).ends(2).error_code(),
        "no-token"
    );
}

#[test]
fn c6_a_file_is_changed_after_a_copy_and_becomes_what_it_was() {
    let home = with_cursor(Some(CURSOR));
    let written = run(&home, &["connect", "cursor", "--write"]).ends(0);
    snapshot!(home, written.out, @"Cursor is connected: [FOLDER]/.cursor/mcp.json");
    assert!(!(written.out + &written.err).contains(&token(&home)));
    let connected = text(&home, ".cursor/mcp.json");
    assert!(connected.contains("// mine") && connected.contains("1.50") && connected.contains(&token(&home)));
    assert_eq!(text(&home, ".cursor/mcp.json.before-portcullis"), CURSOR);
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt as _;
        let mode = fs::metadata(home.path(".cursor/mcp.json.before-portcullis")).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
    }
    snapshot!(home, run(&home, &["connect", "cursor", "--write"]).ends(0).out, @"Cursor is connected already: [FOLDER]/.cursor/mcp.json");
    // A second write keeps the copy of what was there before the first.
    run(&home, &["connect", "cursor", "--write", "--stdio"]).ends(0);
    assert_eq!(text(&home, ".cursor/mcp.json.before-portcullis"), CURSOR);
    snapshot!(home, run(&home, &["disconnect", "cursor"]).ends(0).out, @"Cursor is disconnected, and its file is as it was: [FOLDER]/.cursor/mcp.json");
    assert_eq!(text(&home, ".cursor/mcp.json"), CURSOR);
    assert_eq!(fs::read_dir(home.path(".cursor")).unwrap().count(), 1);
    snapshot!(home, run(&home, &["disconnect", "cursor"]).ends(0).out, @"Cursor is not connected: [FOLDER]/.cursor/mcp.json");
}

#[test]
fn c6_what_somebody_else_changed_meanwhile_stays() {
    let home = with_cursor(Some(CURSOR));
    run(&home, &["connect", "cursor", "--write"]).ends(0);
    let file = home.path(".cursor/mcp.json");
    fs::write(&file, text(&home, ".cursor/mcp.json").replace("// mine", "// mine, and more")).unwrap();
    run(&home, &["disconnect", "cursor"]).ends(0);
    assert_eq!(text(&home, ".cursor/mcp.json"), CURSOR.replace("// mine", "// mine, and more"));
}

#[test]
fn c6_a_file_that_was_not_there_is_closed_to_others_and_goes_again() {
    let home = with_cursor(None);
    run(&home, &["connect", "cursor", "--write"]).ends(0);
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt as _;
        let mode = fs::metadata(home.path(".cursor/mcp.json")).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
    }
    run(&home, &["disconnect", "cursor"]).ends(0);
    assert_eq!(fs::read_dir(home.path(".cursor")).unwrap().count(), 0);
}

#[test]
fn c6_a_file_that_cannot_be_read_or_made_is_left_alone() {
    let home = with_cursor(Some("{\"mcpServers\": {"));
    let failed = run(&home, &["connect", "cursor", "--write"]).ends(2);
    snapshot!(home, failed.err, @"
    error: `[FOLDER]/.cursor/mcp.json` is left as it is: it is not valid JSON
    help: correct it there, or put in by hand what `portcullis connect` prints for an empty file (`--file`)
    ");
    assert_eq!(text(&home, ".cursor/mcp.json"), "{\"mcpServers\": {");
    let failed = run(&home, &["connect", "gemini", "--write"]).ends(2);
    snapshot!(home, failed.err, @"
    error: `[FOLDER]/.gemini/settings.json` cannot be written, since its folder is not there
    help: start the application once, or name another file with `--file`
    ");
    assert_eq!(fs::read_dir(home.path(".cursor")).unwrap().count(), 1);
}

#[test]
fn c6_an_entry_that_a_person_wrote_comes_back() {
    let own = CURSOR.replace("\"git\":", "\"portcullis\": { \"command\": \"mine\" },\n    \"git\":");
    let home = with_cursor(Some(&own));
    run(&home, &["connect", "cursor", "--write"]).ends(0);
    assert_eq!(text(&home, ".cursor/mcp.json.before-portcullis"), own);
    // A second write does not take ours for theirs.
    run(&home, &["connect", "cursor", "--write", "--stdio"]).ends(0);
    assert_eq!(text(&home, ".cursor/mcp.json.before-portcullis"), own);
    run(&home, &["disconnect", "cursor"]).ends(0);
    assert_eq!(text(&home, ".cursor/mcp.json"), own);
    // Also where something else changed meanwhile.
    run(&home, &["connect", "cursor", "--write"]).ends(0);
    let file = home.path(".cursor/mcp.json");
    fs::write(&file, text(&home, ".cursor/mcp.json").replace("// mine", "// mine, and more")).unwrap();
    run(&home, &["disconnect", "cursor"]).ends(0);
    let back = text(&home, ".cursor/mcp.json");
    assert!(back.contains("\"command\": \"mine\"") && back.contains("and more"), "{back}");
    assert_eq!(fs::read_dir(home.path(".cursor")).unwrap().count(), 1);
}

#[test]
fn c6_a_file_that_was_empty_or_made_twice_becomes_what_it_was() {
    let home = with_cursor(Some(""));
    run(&home, &["connect", "cursor", "--write"]).ends(0);
    run(&home, &["disconnect", "cursor"]).ends(0);
    assert_eq!(text(&home, ".cursor/mcp.json"), "");
    fs::remove_file(home.path(".cursor/mcp.json")).unwrap();
    run(&home, &["connect", "cursor", "--write"]).ends(0);
    run(&home, &["connect", "cursor", "--write", "--stdio"]).ends(0);
    run(&home, &["disconnect", "cursor"]).ends(0);
    assert_eq!(fs::read_dir(home.path(".cursor")).unwrap().count(), 0);
}

#[cfg(unix)]
#[test]
fn c6_a_token_in_a_file_that_others_read_is_told() {
    use std::os::unix::fs::PermissionsExt as _;
    let home = with_cursor(Some(CURSOR));
    for (mode, told) in [(0o644, true), (0o600, false)] {
        fs::set_permissions(home.path(".cursor/mcp.json"), fs::Permissions::from_mode(mode)).unwrap();
        let written = run(&home, &["connect", "cursor", "--write"]).ends(0);
        assert!(written.err.contains("the file holds the token"), "{}", written.err);
        assert_eq!(written.err.contains("others of this machine may read it"), told, "{}", written.err);
        run(&home, &["disconnect", "cursor"]).ends(0);
    }
}
