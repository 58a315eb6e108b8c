//! Resources of which a client wants to hear when they change.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, PoisonError, Weak},
};

use portcullis::session::SessionEvent;
use serde_json::json;
use tokio::task::JoinHandle;

use super::{
    client::Client,
    message::{self, RpcError},
};
use crate::offer::of_gate;

/// Most resources of one client.
const SUBSCRIPTIONS: usize = 256;

/// What one client subscribed to, by the address it has at the endpoint. Ends with the client.
#[derive(Debug, Default)]
pub(crate) struct Subscriptions(Mutex<HashMap<String, Listening>>);

#[derive(Debug)]
struct Listening(JoinHandle<()>);

impl Drop for Listening {
    fn drop(&mut self) {
        self.0.abort();
    }
}

impl Subscriptions {
    fn lock(&self) -> std::sync::MutexGuard<'_, HashMap<String, Listening>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Has `client` hear of changes of a resource.
    pub(crate) async fn add(client: &Arc<Client>, uri: &str) -> Result<(), RpcError> {
        if client.subscriptions.lock().len() >= SUBSCRIPTIONS {
            return Err(RpcError::new(RpcError::INTERNAL, format!("more than {SUBSCRIPTIONS} subscriptions")));
        }
        let offer = &client.endpoint.offer;
        let found = offer.resource(uri).await.map_err(|error| of_gate(&error))?;
        let (server, own) = found.ok_or_else(|| super::calls::no_resource(client, uri))?;
        let listening = offer.gate().listen(&server, None, std::slice::from_ref(&own)).await;
        let mut listening = listening.map_err(|error| of_gate(&error))?;
        let (client_of, uri) = (Arc::downgrade(client), uri.to_owned());
        let told = uri.clone();
        let task = tokio::spawn(async move {
            while let Some(event) = listening.next().await {
                let Some(client) = client_of.upgrade() else { return };
                if !client.endpoint.offer.shows(&server).await {
                    return;
                }
                drop(client);
                if matches!(&event, Ok(SessionEvent::ResourceUpdated(changed)) if **changed == *own) {
                    tell(&client_of, &told);
                }
            }
        });
        client.subscriptions.lock().insert(uri, Listening(task));
        Ok(())
    }

    /// Has it hear no longer.
    pub(crate) fn remove(&self, uri: &str) {
        self.lock().remove(uri);
    }
}

fn tell(client: &Weak<Client>, uri: &str) {
    if let Some(client) = client.upgrade() {
        let params = json!({"uri": uri}).to_string();
        client.tell(&message::notification("notifications/resources/updated", &params));
    }
}
