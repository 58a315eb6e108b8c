//! Rules that a snapshot would not show well.

use portcullis::document::{Document, ExportFormat, ExportSecrets, ParseOptions, Parsed, TimeoutUnit, export, parse};
use serde_json::{Value, json};

use super::{KINDS, codes, read, render};

fn server(value: impl Into<Value>) -> Parsed {
    let value: Value = value.into();
    read(json!({ "mcpServers": { "a": value } }).to_string())
}

fn fields(value: Value) -> Value {
    let parsed = server(value);
    let document = parsed.document.unwrap_or_else(|| panic!("{}", render(&parsed.diagnostics)));
    Value::Object(document.servers[0].fields().clone())
}

fn document(text: &str) -> Document {
    read(text).document.unwrap()
}

#[test]
fn a8_missing_and_empty_are_the_same_and_null_is_neither() {
    let bare = fields(json!({"command": "x"}));
    assert_eq!(bare, json!({"command": "x"}));
    assert_eq!(fields(json!({"command": "x", "args": [], "env": {}})), bare);
    for field in ["args", "env", "cwd", "command", "timeoutMs", "type"] {
        let mut value = json!({"command": "x"});
        value[field] = Value::Null;
        assert!(codes(&server(value)).contains(&"value-type"), "{field}");
    }
}

#[test]
fn a2_a_kind_is_inferred_and_its_spellings_mean_it() {
    let kind = |value: Value| server(value).document.map(|document| document.servers[0].kind().to_owned());
    assert_eq!(kind(json!({"command": "x"})).unwrap(), "stdio");
    assert_eq!(kind(json!({"type": "local", "command": "x"})).unwrap(), "stdio");
    for spelling in ["http", "streamableHttp", "streamable_http", "streamable-http"] {
        for key in ["type", "transport", "transportType"] {
            assert_eq!(kind(json!({key: spelling, "url": "https://x"})).unwrap(), "streamable-http");
        }
    }
    assert_eq!(kind(json!({"url": "https://x"})).unwrap(), "streamable-http");
}

#[test]
fn a5_a_time_limit_without_a_unit_takes_the_one_that_is_stated() {
    let read = |value: Value, unit| {
        let text = json!({"mcpServers": {"a": {"command": "x", "timeout": value}}}).to_string();
        let parsed = parse(text.as_bytes(), KINDS, &ParseOptions { timeout_unit: Some(unit) });
        let millis = parsed.document.as_ref().map(|document| document.servers[0].fields()["timeoutMs"].clone());
        (millis, codes(&parsed)[0])
    };
    assert_eq!(read(json!(60), TimeoutUnit::Seconds), (Some(json!(60_000)), "alias-translated"));
    assert_eq!(read(json!(60), TimeoutUnit::Milliseconds), (Some(json!(60)), "alias-translated"));
    assert_eq!(read(json!("60"), TimeoutUnit::Seconds), (None, "value-type"));
    assert_eq!(read(json!(0), TimeoutUnit::Seconds), (None, "value-type"));
}

#[test]
fn s3_a_document_cannot_vote_for_itself() {
    for vote in ["trusted", "trust", "fingerprint", "approval", "approved", "autoStart", "enabledTools", "grants"] {
        let mut value = json!({"command": "x"});
        value[vote] = json!(true);
        let parsed = server(value);
        let refused = codes(&parsed) == ["field-unsupported"] && parsed.document.is_none();
        // Dropped: nothing of it is in the definition.
        let dropped = codes(&parsed) == ["approval-dropped"]
            && parsed.document.is_some_and(|document| document.servers[0].fields().len() == 1);
        assert!(refused || dropped, "{vote}");
    }
}

#[test]
fn a7_values_are_kept_back_references_are_not() {
    let text = r#"{"servers": {
        "z": {"command": "x", "env": {"A": "literal", "B": "x${C}", "E": ""}},
        "a": {"type": "http", "url": "https://x/é", "headers": {"H": "literal"}, "auth": {"type": "bearer", "token": "literal"}, "timeoutMs": 5}
    }}"#;
    let shown = export(&document(text), KINDS, ExportFormat::VsCode, ExportSecrets::Keep);
    let expected = r#"{
  "servers": {
    "z": {
      "type": "stdio",
      "command": "x",
      "env": {
        "A": "${keep}",
        "B": "x${C}",
        "E": "${keep}"
      }
    },
    "a": {
      "type": "http",
      "url": "https://x/é",
      "headers": {
        "H": "${keep}"
      },
      "auth": {
        "type": "bearer",
        "token": "${keep}"
      },
      "timeoutMs": 5
    }
  }
}
"#;
    assert_eq!(shown, expected);
    assert!(!export(&document(text), &[], ExportFormat::Canonical, ExportSecrets::Keep).contains("literal"));
    assert!(export(&document(text), KINDS, ExportFormat::Canonical, ExportSecrets::Reveal).contains("literal"));
}

#[test]
fn a6_offsets_count_the_mark_and_columns_do_not() {
    let found = read("\u{feff}{\"mcpServers\": {\"a\": {}}}").diagnostics;
    assert_eq!((found[0].line, found[0].column, found[0].span.clone()), (1, 17, 19..22));
}
