use proptest::prelude::*;

use super::*;

fn http(token: Token) -> Reach {
    Reach::Http(Http { url: "http://127.0.0.1:27190/mcp".to_owned(), token })
}

fn text() -> Token {
    Token::Text(Secret::new("tkn"))
}

fn of(id: &str) -> &'static Client {
    client(id).unwrap()
}

#[test]
fn c6_each_client_gets_what_it_reads() {
    let command = Reach::Command {
        program: "/bin/portcullis".to_owned(),
        args: vec!["serve".to_owned(), "--stdio".to_owned()],
        env: vec![("PORTCULLIS_HOME".to_owned(), "/h".to_owned())],
    };
    let mut said = String::new();
    for client in CLIENTS {
        let reaches = [http(text()), http(Token::Variable("TOKEN".to_owned())), http(Token::None), command.clone()];
        for reach in reaches.iter().filter(|reach| client.speaks_http || matches!(reach, Reach::Command { .. })) {
            let entry = client.entry(reach);
            let snippet = client.snippet("portcullis", &entry).unwrap();
            said.push_str(&format!("# {}\n{snippet}\n", client.app.id));
            assert_eq!(super::entry(client, snippet.as_bytes(), "portcullis").unwrap(), Some(entry));
        }
    }
    insta::assert_snapshot!(said);
}

/// What each client gets is what `import` reads of that client: the address, the header, the command.
#[test]
fn what_is_put_in_is_read_again_as_the_same_server() {
    for client in CLIENTS.iter().filter(|client| client.speaks_http) {
        let snippet = client.snippet("portcullis", &client.entry(&http(text()))).unwrap();
        let reading = crate::read(client.app, snippet.as_bytes()).unwrap();
        let server = &reading.servers["portcullis"];
        assert_eq!(server["url"], "http://127.0.0.1:27190/mcp", "{}", client.app.id);
        assert_eq!(server["headers"]["Authorization"], "Bearer tkn", "{}", client.app.id);
        assert_eq!(reading.remarks, [], "{}", client.app.id);
    }
}

const WITH_COMMENTS: &str = r#"{
  // mine
  "theme": "dark", /* unknown here */
  "mcpServers": {
    "git": { "command": "uvx", "args": ["mcp-server-git"], }, // the last one
  },
  "permissions": {"allow": []}
}
"#;

const TABLES: &str = r#"# mine
model = "o5"   # fast

[mcp_servers.git]  # the first one
command = "uvx"
args = ["mcp-server-git"]

[projects."/x"]
trust_level = "trusted"
"#;

#[test]
fn comments_unknown_keys_and_order_stay() {
    let entry = of("cursor").entry(&http(text()));
    let after = put(of("cursor"), WITH_COMMENTS.as_bytes(), "portcullis", &entry).unwrap();
    insta::assert_snapshot!("json_with_comments", after);
    assert_eq!(take(of("cursor"), after.as_bytes(), "portcullis").unwrap().as_deref(), Some(WITH_COMMENTS));
    let entry = of("codex").entry(&http(text()));
    let after = put(of("codex"), TABLES.as_bytes(), "portcullis", &entry).unwrap();
    insta::assert_snapshot!("toml_with_comments", after);
    assert_eq!(take(of("codex"), after.as_bytes(), "portcullis").unwrap().as_deref(), Some(TABLES));
}

#[test]
fn an_entry_is_replaced_where_it_stands_and_twice_is_once() {
    for (id, file) in [("cursor", WITH_COMMENTS), ("codex", TABLES)] {
        let client = of(id);
        let first = put(client, file.as_bytes(), "portcullis", &client.entry(&http(text()))).unwrap();
        let again = put(client, first.as_bytes(), "portcullis", &client.entry(&http(text()))).unwrap();
        assert_eq!(again, first);
        let other = client.entry(&http(Token::Variable("TOKEN".to_owned())));
        let changed = put(client, first.as_bytes(), "portcullis", &other).unwrap();
        assert_eq!(super::entry(client, changed.as_bytes(), "portcullis").unwrap(), Some(other));
        assert!(changed.contains("uvx") && changed.contains("mine") && !changed.contains("tkn"), "{changed}");
    }
}

#[test]
fn what_cannot_be_read_or_has_no_room_is_left_as_it_is() {
    let entry = json!({"url": "u"});
    for (id, file) in [
        ("cursor", "{"),
        ("cursor", "[]"),
        ("cursor", r#"{"mcpServers": []}"#),
        ("cursor", r#"{"mcpServers": {}, "mcpServers": {}}"#),
        ("codex", "mcp_servers = 1"),
        ("codex", "[[mcp_servers]]\nname = \"a\""),
        ("codex", "a ="),
    ] {
        assert!(put(of(id), file.as_bytes(), "portcullis", &entry).is_err(), "{file}");
    }
    assert!(put(of("cursor"), b"\xff", "portcullis", &entry).is_err());
    assert_eq!(take(of("cursor"), b"", "portcullis").unwrap(), None);
    assert_eq!(take(of("cursor"), br#"{"mcpServers": []}"#, "portcullis").unwrap(), None);
    assert_eq!(take(of("codex"), b"a = 1", "portcullis").unwrap(), None);
}

#[test]
fn a_byte_order_mark_and_ends_of_lines_stay() {
    for (id, file) in [("cursor", WITH_COMMENTS), ("codex", TABLES)] {
        let before = format!("\u{feff}{}", file.replace('\n', "\r\n"));
        let after = put(of(id), before.as_bytes(), "portcullis", &of(id).entry(&http(text()))).unwrap();
        assert!(after.starts_with('\u{feff}'));
        assert_eq!(after.matches('\n').count(), after.matches("\r\n").count(), "{after:?}");
        assert_eq!(take(of(id), after.as_bytes(), "portcullis").unwrap(), Some(before));
    }
}

/// Values that files of settings hold; no null, which TOML has not.
fn values() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        any::<bool>().prop_map(Value::from),
        any::<i32>().prop_map(Value::from),
        "[ -~é\n\"\\\\]{0,12}".prop_map(Value::from),
    ];
    leaf.prop_recursive(3, 24, 4, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::hash_map("[a-z. é-]{1,6}", inner, 0..4)
                .prop_map(|members| Value::Object(members.into_iter().collect())),
        ]
    })
}

proptest! {
    /// Whatever else stands in a file: it stays, and putting in and taking out gives what was there.
    #[test]
    fn whatever_stands_beside_it_stays(
        more in prop::collection::hash_map("[a-z]{1,6}", values(), 0..4),
        others in prop::collection::hash_map("[a-z_-]{1,6}", values(), 0..3),
        name in "[a-z.é-]{1,8}",
        pretty in any::<bool>(),
    ) {
        let mut file = Map::from_iter(more);
        file.insert("mcpServers".to_owned(), Value::Object(others.into_iter().filter(|(other, _)| *other != name).collect()));
        let before = Value::Object(file);
        let client = of("cursor");
        let written = if pretty { serde_json::to_string_pretty(&before) } else { serde_json::to_string(&before) }.unwrap();
        let after = put(client, written.as_bytes(), &name, &client.entry(&http(text()))).unwrap();
        let mut value: Value = serde_json::from_str(&after).unwrap();
        value["mcpServers"].as_object_mut().unwrap().remove(&name).unwrap();
        prop_assert_eq!(&value, &before);
        let taken: Value = serde_json::from_str(&take(client, after.as_bytes(), &name).unwrap().unwrap()).unwrap();
        prop_assert_eq!(taken, before);
    }
}
