//! What things of a server are called at the endpoint.

use portcullis::names::{MODEL_NAME_LENGTH, NameStyle, model_name_within};

/// The scheme of a resource's address at the endpoint, before the id of its server.
const SCHEME: &str = "mcp+";

/// How many characters of a name are left where a client puts `mcp__<entry>__` before it, as most do.
#[must_use]
pub(crate) fn room(entry: &str) -> usize {
    MODEL_NAME_LENGTH.saturating_sub("mcp__".len() + entry.chars().count() + "__".len())
}

/// The name of a tool or prompt: a function of its server and its own name alone.
pub(crate) fn name(id: &str, own: &str, room: usize) -> String {
    model_name_within(NameStyle::Short, id, own, room)
}

/// The address of a resource, or the template of addresses: that of its server, behind the server's id.
pub(crate) fn uri(id: &str, own: &str) -> String {
    format!("{SCHEME}{id}:{own}")
}

/// Id of the server and the resource's own address.
pub(crate) fn own_uri(uri: &str) -> Option<(&str, &str)> {
    uri.strip_prefix(SCHEME)?.split_once(':')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn s25_a_name_has_room_for_what_a_client_puts_before_it() {
        let room = room("portcullis");
        for tool in ["read_file", &"x".repeat(60), "a.b/c"] {
            let name = format!("mcp__portcullis__{}", name("files", tool, room));
            assert!(name.len() <= MODEL_NAME_LENGTH, "{name}");
        }
        assert_eq!(name("files", "read_file", room), "files__read_file");
    }

    #[test]
    fn an_address_leads_back() {
        for own in ["file:///a/b", "test://x?y=1#z", "mcp+a:b", "file:///{path}"] {
            assert_eq!(own_uri(&uri("files-1", own)), Some(("files-1", own)));
        }
        assert_eq!(own_uri("file:///a"), None);
    }
}
