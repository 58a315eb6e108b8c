//! Reading a whole list, page by page, within bounds.

use std::collections::HashSet;

use rmcp::model::{ClientRequest, ListToolsRequest, PaginatedRequestParams};
use serde::Deserialize;
use serde_json::value::RawValue;

use super::{Session, SessionError};
use crate::{raw::RawResult, tools::ToolList};

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Page {
    tools: Vec<Box<RawValue>>,
    #[serde(default)]
    next_cursor: Option<String>,
}

impl Session {
    /// All tools. A server that offers none is not asked.
    pub(super) async fn list_tools(&self) -> Result<ToolList, SessionError> {
        if self.peer.peer_info().is_some_and(|info| info.capabilities.tools.is_none()) {
            return Ok(ToolList::default());
        }
        let limits = &self.limits.limits;
        let mut definitions = Vec::new();
        let mut seen = HashSet::new();
        let mut cursor: Option<String> = None;
        for _page in 0..limits.pages {
            let mut request = ListToolsRequest::default();
            if let Some(cursor) = cursor.take() {
                request.params = Some(PaginatedRequestParams::default().with_cursor(Some(cursor)));
            }
            let result = self.request(ClientRequest::ListToolsRequest(request)).await?;
            let result = RawResult::from_server(result).map_err(|_| SessionError::Unreadable)?;
            let page: Page = serde_json::from_str(result.get()).map_err(|_| SessionError::Unreadable)?;
            definitions.extend(page.tools);
            if definitions.len() > limits.items {
                return Err(SessionError::List { what: format!("more than {} tools", limits.items) });
            }
            match page.next_cursor {
                None => return Ok(ToolList::parse(definitions.iter().map(AsRef::as_ref))),
                Some(next) if !seen.insert(next.clone()) => {
                    return Err(SessionError::List { what: "a page that leads back to an earlier one".to_owned() });
                }
                next => cursor = next,
            }
        }
        Err(SessionError::List { what: format!("more than {} pages", limits.pages) })
    }
}
