//! What a client is told unasked: on the stream of its session, or as it listens for it (`subscriptions/listen`).

use std::{sync::Arc, time::Duration};

use serde::Deserialize;
use serde_json::{Value, json, value::RawValue};
use tokio::sync::{broadcast, watch};

use super::{
    client::Client,
    message::{self, Message, RpcError},
    subscriptions::Subscriptions,
};
use crate::changes::Counts;

/// How often a stream that has nothing to say shows that it is there.
pub(super) const ALIVE: Duration = Duration::from_secs(15);

/// What a client wants to hear of.
#[derive(Debug, Clone, Deserialize, Default)]
#[serde(rename_all = "camelCase", default)]
struct Filter {
    tools_list_changed: bool,
    resources_list_changed: bool,
    prompts_list_changed: bool,
    resource_subscriptions: Vec<String>,
}

/// What comes next.
#[derive(Debug)]
pub(crate) enum Said {
    /// A message.
    Message(String),
    /// Nothing for a while.
    Nothing,
}

/// Hears of changes, for one client.
pub(crate) struct Told {
    // Its subscriptions last as long as somebody hears of them.
    client: Arc<Client>,
    notices: broadcast::Receiver<Arc<str>>,
    changes: watch::Receiver<Counts>,
    counts: Counts,
    wants: Filter,
    /// The id of the request that listens, as it was written.
    subscription: Option<String>,
    /// What is told first, the last one before the others.
    first: Vec<String>,
}

impl Told {
    /// Everything, for a client with a session.
    pub(crate) async fn of_session(client: &Arc<Client>) -> Self {
        let wants = Filter {
            tools_list_changed: true,
            resources_list_changed: true,
            prompts_list_changed: true,
            ..Filter::default()
        };
        Self::new(client, wants, None).await
    }

    /// `subscriptions/listen`: says first what will be told.
    ///
    /// # Errors
    ///
    /// Parameters that do not fit.
    pub(crate) async fn listen(
        client: &Arc<Client>,
        id: &RawValue,
        params: Option<&RawValue>,
    ) -> Result<Self, RpcError> {
        #[derive(Deserialize)]
        struct Listen {
            #[serde(default)]
            notifications: Filter,
        }
        let Listen { notifications } = super::calls::read(params)?;
        let mut accepted = serde_json::Map::new();
        for (name, wanted) in [
            ("toolsListChanged", notifications.tools_list_changed),
            ("resourcesListChanged", notifications.resources_list_changed),
            ("promptsListChanged", notifications.prompts_list_changed),
        ] {
            if wanted {
                accepted.insert(name.to_owned(), true.into());
            }
        }
        // From before anything is asked for: nothing is missed.
        let mut told = Self::new(client, notifications, Some(id.get().to_owned())).await;
        let mut resources = Vec::new();
        for uri in &told.wants.resource_subscriptions {
            if Subscriptions::add(client, uri).await.is_ok() {
                resources.push(Value::from(uri.as_str()));
            }
        }
        if !resources.is_empty() {
            accepted.insert("resourceSubscriptions".to_owned(), resources.into());
        }
        let params = json!({"notifications": accepted}).to_string();
        told.first.push(tagged("notifications/subscriptions/acknowledged", &params, id.get()));
        Ok(told)
    }

    async fn new(client: &Arc<Client>, wants: Filter, subscription: Option<String>) -> Self {
        let notices = client.notices();
        let endpoint = &client.endpoint;
        let changes = endpoint.changes.listen(endpoint).await;
        let counts = *changes.borrow();
        Self { client: client.clone(), notices, changes, counts, wants, subscription, first: Vec::new() }
    }

    /// The next message; nothing more at the end. Cancel-safe.
    pub(crate) async fn next(&mut self) -> Option<Said> {
        loop {
            if let Some(first) = self.first.pop() {
                return Some(Said::Message(first));
            }
            if self.counts.over {
                return None;
            }
            tokio::select! {
                notice = self.notices.recv() => match notice {
                    Ok(notice) => return Some(Said::Message(self.tag(&notice))),
                    // It was too slow, and missed some.
                    Err(broadcast::error::RecvError::Lagged(_)) => {}
                    Err(broadcast::error::RecvError::Closed) => return None,
                },
                changed = self.changes.changed() => {
                    changed.ok()?;
                    let counts = *self.changes.borrow_and_update();
                    self.note(counts);
                }
                () = tokio::time::sleep(ALIVE) => return Some(Said::Nothing),
            }
        }
    }

    /// What changed since, as far as it is wanted.
    fn note(&mut self, counts: Counts) {
        let before = std::mem::replace(&mut self.counts, counts);
        for (method, changed, wanted) in [
            ("notifications/prompts/list_changed", counts.prompts != before.prompts, self.wants.prompts_list_changed),
            (
                "notifications/resources/list_changed",
                counts.resources != before.resources,
                self.wants.resources_list_changed,
            ),
            ("notifications/tools/list_changed", counts.tools != before.tools, self.wants.tools_list_changed),
        ] {
            if changed && wanted {
                self.first.push(match &self.subscription {
                    Some(id) => tagged(method, "{}", id),
                    None => format!(r#"{{"jsonrpc":"2.0","method":"{method}"}}"#),
                });
            }
        }
    }

    fn tag(&self, notice: &str) -> String {
        let _ = &self.client;
        match (&self.subscription, Message::read(notice.as_bytes())) {
            (Some(id), Ok(Message::Notification { method, params })) => {
                tagged(&method, params.map_or("{}", RawValue::get), id)
            }
            _ => notice.to_owned(),
        }
    }
}

fn tagged(method: &str, params: &str, subscription: &str) -> String {
    let meta = format!(r#"{{"io.modelcontextprotocol/subscriptionId":{subscription}}}"#);
    let params = RawValue::from_string(params.to_owned()).ok();
    let params = params.and_then(|params| message::with_member(&params, "_meta", &meta));
    message::notification(method, &params.unwrap_or_else(|| "{}".to_owned()))
}
