//! What things of a server are called at the endpoint.

use portcullis::names::{MODEL_NAME_LENGTH, NameStyle, model_name_within};

/// The scheme of a resource's address at the endpoint, before the id of its server.
const SCHEME: &str = "mcp+";

/// How what servers offer is named at one endpoint.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Naming {
    /// Several servers: names say whose they are.
    Many {
        /// How many characters a name may have.
        room: usize,
    },
    /// One server, under its own names.
    Own,
}

impl Naming {
    /// For several servers where a client puts `mcp__<entry>__` before a name, as most do.
    #[must_use]
    pub(crate) fn many(entry: &str) -> Self {
        Self::Many { room: MODEL_NAME_LENGTH.saturating_sub("mcp__".len() + entry.chars().count() + "__".len()) }
    }

    /// The name of a tool or prompt: a function of its server and its own name alone.
    pub(crate) fn name(self, id: &str, own: &str) -> String {
        match self {
            Self::Many { room } => model_name_within(NameStyle::Short, id, own, room),
            Self::Own => own.to_owned(),
        }
    }

    /// The address of a resource, or the template of addresses: that of its server, behind the server's id.
    pub(crate) fn uri(self, id: &str, own: &str) -> String {
        match self {
            Self::Many { .. } => format!("{SCHEME}{id}:{own}"),
            Self::Own => own.to_owned(),
        }
    }
}

/// Id of the server and the resource's own address, where names say whose they are.
pub(crate) fn own_uri(uri: &str) -> Option<(&str, &str)> {
    uri.strip_prefix(SCHEME)?.split_once(':')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn s25_a_name_has_room_for_what_a_client_puts_before_it() {
        let naming = Naming::many("portcullis");
        for tool in ["read_file", &"x".repeat(60), "a.b/c"] {
            let name = format!("mcp__portcullis__{}", naming.name("files", tool));
            assert!(name.len() <= MODEL_NAME_LENGTH, "{name}");
        }
        assert_eq!(naming.name("files", "read_file"), "files__read_file");
        assert_eq!(Naming::Own.name("files", "read_file"), "read_file");
    }

    #[test]
    fn an_address_leads_back() {
        for own in ["file:///a/b", "test://x?y=1#z", "mcp+a:b", "file:///{path}"] {
            assert_eq!(own_uri(&Naming::many("x").uri("files-1", own)), Some(("files-1", own)));
            assert_eq!(Naming::Own.uri("files-1", own), own);
        }
        assert_eq!(own_uri("file:///a"), None);
    }
}
