//! Reading a whole list, page by page, within bounds.

use std::{
    borrow::Cow,
    collections::{HashMap, HashSet},
};

use serde_json::value::RawValue;

use super::{ListKind, Session, SessionError, message::Params, waiter::Waiter};
use crate::tools::{Reading, ToolList};

impl ListKind {
    fn method(self) -> &'static str {
        match self {
            Self::Tools => "tools/list",
            Self::Resources => "resources/list",
            Self::ResourceTemplates => "resources/templates/list",
            Self::Prompts => "prompts/list",
        }
    }

    fn member(self) -> &'static str {
        match self {
            Self::Tools => "tools",
            Self::Resources => "resources",
            Self::ResourceTemplates => "resourceTemplates",
            Self::Prompts => "prompts",
        }
    }

    /// Its items, in words.
    #[must_use]
    pub fn items(self) -> &'static str {
        match self {
            Self::Tools => "tools",
            Self::Resources => "resources",
            Self::ResourceTemplates => "resource templates",
            Self::Prompts => "prompts",
        }
    }
}

/// One page, as it came.
struct Page<'a> {
    items: Vec<&'a RawValue>,
    next: Option<String>,
}

impl<'a> Page<'a> {
    fn read(kind: ListKind, text: &'a str) -> Result<Self, SessionError> {
        let unreadable = |_| SessionError::Unreadable;
        let mut members: HashMap<Cow<'a, str>, &'a RawValue> = serde_json::from_str(text).map_err(unreadable)?;
        let next = members.remove("nextCursor").map(|next| serde_json::from_str::<Option<String>>(next.get()));
        let items = members.remove(kind.member()).ok_or(SessionError::Unreadable)?;
        let items = serde_json::from_str::<Vec<&'a RawValue>>(items.get()).map_err(unreadable)?;
        Ok(Self { items, next: next.transpose().map_err(unreadable)?.flatten() })
    }
}

impl Session {
    /// All tools. A server that offers none is not asked.
    pub(super) async fn list_tools(&self) -> Result<ToolList, SessionError> {
        if self.peer.era().is_some_and(|era| era.server().capabilities.tools.is_none()) {
            return Ok(ToolList::default());
        }
        let mut reading = Reading::new(self.wants_headers());
        self.each(ListKind::Tools, |item| reading.add(item)).await?;
        Ok(reading.done())
    }

    /// Every item of a list, as the server wrote it.
    ///
    /// # Errors
    ///
    /// [`SessionError`]; also where the server does not offer the list.
    pub async fn list(&self, kind: ListKind) -> Result<Vec<Box<RawValue>>, SessionError> {
        let mut items = Vec::new();
        self.each(kind, |item| items.push(item.to_owned())).await?;
        Ok(items)
    }

    /// Hands over every item, page by page.
    async fn each(&self, kind: ListKind, mut item: impl FnMut(&RawValue) + Send) -> Result<(), SessionError> {
        let limits = &self.options.limits;
        let failed = |what| SessionError::List { kind, what };
        let mut count = 0;
        let mut seen = HashSet::new();
        let mut params = Params::default();
        for _page in 0..limits.pages {
            let text = self.request(kind.method(), &params, &Waiter::default(), |_| {}).await?;
            let page = Page::read(kind, &text)?;
            count += page.items.len();
            if count > limits.items {
                return Err(failed(format!("more than {} {}", limits.items, kind.items())));
            }
            page.items.into_iter().for_each(&mut item);
            let Some(next) = page.next else { return Ok(()) };
            params = Params::default().with("cursor", &next);
            if !seen.insert(next) {
                return Err(failed("a page that leads back to an earlier one".to_owned()));
            }
        }
        Err(failed(format!("more than {} pages", limits.pages)))
    }
}
