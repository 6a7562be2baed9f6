//! Notifies clients when a list or a resource changes: one task per client compares snapshots of
//! the lists whenever plugins change.
//!
//! Changes during a notification are coalesced into one more notification. A client that does not
//! read delays no other client.

use crate::clients::client::Client;
use crate::clients::subscriptions::Documents;
use crate::lists::resources_and_prompts;
use crate::lists::tools;
use crate::protocol::lifecycle::Era;
use crate::{Changes, Shared};
use rmcp::RoleServer;
use rmcp::model::{ResourceUpdatedNotificationParam, SubscriptionFilter};
use rmcp::service::{Peer, SubscriptionSink};
use serde::Serialize;
use std::sync::Arc;
use std::time::Duration;
use tokio::task::AbortHandle;

/// The timeout for sending one notification.
const PATIENCE: Duration = Duration::from_secs(2);

/// A list of the protocol.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum List {
    Tools,
    /// Resources and resource templates.
    Resources,
    Prompts,
}

impl List {
    const ALL: [Self; 3] = [Self::Tools, Self::Resources, Self::Prompts];
}

/// The digest of a list, to detect changes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Mark(blake3::Hash);

impl Mark {
    /// Computes the digest of a list.
    pub(crate) fn of(list: &impl Serialize) -> Self {
        // Serialization fails only for maps with keys that are not strings, and no list has such.
        Self(blake3::hash(&serde_json::to_vec(list).unwrap_or_default()))
    }

    /// Computes the digest of the resources and the resource templates together.
    pub(crate) fn of_resources(server: &Shared) -> Self {
        Self::of(&(
            resources_and_prompts::resources(server),
            resources_and_prompts::templates(server),
        ))
    }
}

/// The known digests of all lists.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Lists([Option<Mark>; List::ALL.len()]);

impl Lists {
    /// Computes the digests of the lists as this client would see them now.
    fn now(server: &Shared, client: &Client, era: Era) -> Self {
        let mut lists = Self::default();
        for list in List::ALL {
            let mark = match list {
                List::Tools => Mark::of(&tools::tools(&server.host, client.session(), era)),
                List::Resources => Mark::of_resources(server),
                List::Prompts => Mark::of(&resources_and_prompts::prompts(server)),
            };
            lists.set(list, mark);
        }
        lists
    }

    pub(crate) fn set(&mut self, list: List, mark: Mark) {
        if let Some(known) = self.0.get_mut(list as usize) {
            *known = Some(mark);
        }
    }

    fn get(&self, list: List) -> Option<Mark> {
        self.0.get(list as usize).copied().flatten()
    }

    /// Fills in unknown digests from `others`.
    pub(crate) fn or(self, others: Self) -> Self {
        let mut all = self;
        for (own, other) in all.0.iter_mut().zip(others.0) {
            *own = own.or(other);
        }
        all
    }
}

/// The channel by which a client is notified.
#[derive(Debug, Clone)]
pub(crate) enum Way {
    /// A legacy client, which is notified without a subscription.
    Legacy(Peer<RoleServer>),
    /// A subscription request of a modern client, with its filter.
    Modern(SubscriptionSink),
}

impl Way {
    fn era(&self) -> Era {
        match self {
            Self::Legacy(_) => Era::Legacy,
            Self::Modern(_) => Era::Modern,
        }
    }

    fn leads(&self, list: List) -> bool {
        match (self, list) {
            (Self::Legacy(_), _) => true,
            (Self::Modern(sink), List::Tools) => sink.accepted().tools_list_changed == Some(true),
            (Self::Modern(sink), List::Resources) => {
                sink.accepted().resources_list_changed == Some(true)
            }
            (Self::Modern(sink), List::Prompts) => {
                sink.accepted().prompts_list_changed == Some(true)
            }
        }
    }

    /// Returns the resources that a modern subscription names.
    fn documents(&self, server: &Shared) -> Documents {
        let documents = Documents::default();
        if let Self::Modern(sink) = self {
            for uri in sink.accepted().resource_subscriptions.iter().flatten() {
                // The filter was cut to what fits when it was accepted.
                let _ = documents.add(uri, resources_and_prompts::code(server, uri));
            }
        }
        documents
    }

    /// Notifies the client that a list has changed.
    async fn tell(&self, list: List) {
        within_patience(async {
            match self {
                Self::Legacy(peer) => match list {
                    List::Tools => peer.notify_tool_list_changed().await,
                    List::Resources => peer.notify_resource_list_changed().await,
                    List::Prompts => peer.notify_prompt_list_changed().await,
                }
                .map_err(|error| error.to_string()),
                Self::Modern(sink) => match list {
                    List::Tools => sink.notify_tool_list_changed().await,
                    List::Resources => sink.notify_resource_list_changed().await,
                    List::Prompts => sink.notify_prompt_list_changed().await,
                }
                .map_err(|error| error.to_string()),
            }
        })
        .await;
    }

    /// Notifies the client that a resource has changed.
    async fn tell_of(&self, uri: String) {
        within_patience(async {
            match self {
                Self::Legacy(peer) => {
                    let updated = ResourceUpdatedNotificationParam::new(uri);
                    peer.notify_resource_updated(updated).await.map_err(|error| error.to_string())
                }
                Self::Modern(sink) => {
                    sink.notify_resource_updated(uri).await.map_err(|error| error.to_string())
                }
            }
        })
        .await;
    }
}

/// Sends a notification, best effort: a broken connection is detected elsewhere.
async fn within_patience(told: impl Future<Output = Result<(), String>>) {
    match tokio::time::timeout(PATIENCE, told).await {
        Ok(Ok(())) => {}
        Ok(Err(error)) => tracing::debug!("a client does not hear of a change: {error}"),
        Err(_) => tracing::debug!("a client does not hear within {PATIENCE:?} of a change"),
    }
}

/// Returns the part of a subscription filter that the server accepts: resources that exist, within
/// the limits of [`Documents`].
pub(crate) fn accepted(server: &Shared, wanted: &SubscriptionFilter) -> SubscriptionFilter {
    let mut accepted = SubscriptionFilter::new();
    accepted.tools_list_changed = wanted.tools_list_changed;
    accepted.resources_list_changed = wanted.resources_list_changed;
    accepted.prompts_list_changed = wanted.prompts_list_changed;
    accepted.resource_subscriptions = wanted.resource_subscriptions.as_ref().map(|wanted| {
        let taken = Documents::default();
        let is_taken = |uri: &&String| {
            resources_and_prompts::code(server, uri)
                .is_some_and(|code| taken.add(uri, Some(code)).is_ok())
        };
        wanted.iter().filter(is_taken).cloned().collect()
    });
    accepted
}

/// Records the lists as known to the client. This runs before the client is told that it will be
/// notified, so that no change in between is lost.
pub(crate) fn promise(server: &Shared, client: &Client, era: Era) {
    // While plugins are still loading, there is no initial state yet.
    if server.host.progress().has_ended() {
        client.expect(Lists::now(server, client, era));
    }
}

/// The notification task of one client. Dropping it aborts the task.
#[derive(Debug)]
pub(crate) struct Telling(AbortHandle);

impl Telling {
    /// Starts the task, unless no list can change.
    pub(crate) fn begin(server: &Arc<Shared>, client: &Arc<Client>, way: Way) -> Option<Self> {
        if server.changes() == Changes::Never {
            return None;
        }
        let documents = way.documents(server);
        let told = tell(server.clone(), client.clone(), way, documents);
        Some(Self(tokio::spawn(told).abort_handle()))
    }
}

impl Drop for Telling {
    fn drop(&mut self) {
        self.0.abort();
    }
}

async fn tell(server: Arc<Shared>, client: Arc<Client>, way: Way, documents: Documents) {
    let documents = match way.era() {
        Era::Legacy => client.documents(),
        Era::Modern => &documents,
    };
    let mut changes = server.host.changes();
    let now = || Lists::now(&server, &client, way.era());
    // Plugins that load at startup are not a change: list requests wait for them. A client that was
    // shown a partial list is notified when loading is complete.
    server.host.wait_until_loaded().await;
    let mut before = client.shown();
    let mut told = before.or(now());
    loop {
        changes.mark_unchanged();
        let now = now();
        let shown = client.shown();
        for list in List::ALL.into_iter().filter(|list| way.leads(*list)) {
            // A client that has fetched the list since the change knows it. Digests shown before
            // the previous round are ignored: a modern HTTP client may have fetched a later list
            // under another identity.
            let knows = now.get(list) == shown.get(list) && shown.get(list) != before.get(list);
            if now.get(list) != told.get(list) && !knows {
                way.tell(list).await;
            }
        }
        told = now;
        before = shown;
        for uri in documents.changed(|uri| resources_and_prompts::code(&server, uri)) {
            way.tell_of(uri).await;
        }
        if changes.changed().await.is_err() {
            return;
        }
    }
}
