//! Notifies clients when a list or a resource changes: one task per client compares snapshots of
//! the lists whenever plugins change.
//!
//! Changes during a notification are coalesced into one more notification. A client that does not
//! read delays no other client.

use super::change_channel::ChangeChannel;
use super::resources_and_prompts::{self, code_of};
use super::tools;
use crate::clients::client::Client;
use crate::clients::known_lists::{KnownLists, ListDigest, ListKind};
use crate::clients::subscriptions::Subscriptions;
use crate::protocol::lifecycle::Lifecycle;
use crate::settings::Changes;
use crate::state::ServerState;
use rmcp::model::SubscriptionFilter;
use std::sync::Arc;
use std::time::Duration;
use tokio::task::AbortHandle;
use tokio::time::timeout;

/// The pause between notifications while plugins are loading at startup.
const LOADING_PAUSE: Duration = Duration::from_secs(2);

/// The notification task of one client. Dropping it aborts the task.
#[derive(Debug)]
pub(crate) struct ChangeTask(AbortHandle);

impl ChangeTask {
    /// Starts the task, unless no list can change.
    pub(crate) fn start(
        server: &Arc<ServerState>,
        client: &Arc<Client>,
        channel: ChangeChannel,
    ) -> Option<Self> {
        if server.changes() == Changes::Never {
            return None;
        }
        let subscriptions = Subscriptions::default();
        for uri in channel.resources() {
            // The filter was cut to what fits when it was accepted.
            let _ = subscriptions.add(uri, code_of(server, uri));
        }
        let notifying = notify(server.clone(), client.clone(), channel, subscriptions);
        Some(Self(tokio::spawn(notifying).abort_handle()))
    }
}

impl Drop for ChangeTask {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// Returns the part of a subscription filter that the server accepts: resources that exist, within
/// the limits of [`Subscriptions`].
pub(crate) fn accepted_filter(
    server: &ServerState,
    requested: &SubscriptionFilter,
) -> SubscriptionFilter {
    let subscriptions = Subscriptions::default();
    let is_accepted = |uri: &&String| {
        code_of(server, uri).is_some_and(|code| subscriptions.add(uri, Some(code)).is_ok())
    };
    let mut accepted = SubscriptionFilter::new();
    accepted.tools_list_changed = requested.tools_list_changed;
    accepted.resources_list_changed = requested.resources_list_changed;
    accepted.prompts_list_changed = requested.prompts_list_changed;
    accepted.resource_subscriptions = requested
        .resource_subscriptions
        .as_ref()
        .map(|uris| uris.iter().filter(is_accepted).cloned().collect());
    accepted
}

/// Records the lists as known to the client. This runs before the client is told that it will be
/// notified, so that no change in between is lost.
pub(crate) fn record_baseline(server: &ServerState, client: &Client, lifecycle: Lifecycle) {
    // While plugins are still loading, there is no initial state yet.
    if server.host.progress().has_ended() {
        client.record_baseline(current_lists(server, client, lifecycle));
    }
}

/// Computes the digests of the lists as this client would see them now.
fn current_lists(server: &ServerState, client: &Client, lifecycle: Lifecycle) -> KnownLists {
    let mut lists = KnownLists::default();
    for list in ListKind::ALL {
        let digest = match list {
            ListKind::Tools => {
                ListDigest::of(&tools::visible_tools(&server.host, client.session(), lifecycle))
            }
            ListKind::Resources => resources_and_prompts::resources_digest(server),
            ListKind::Prompts => ListDigest::of(&resources_and_prompts::prompts(server)),
        };
        lists.set(list, digest);
    }
    lists
}

async fn notify(
    server: Arc<ServerState>,
    client: Arc<Client>,
    channel: ChangeChannel,
    subscriptions: Subscriptions,
) {
    let subscriptions = match channel.lifecycle() {
        Lifecycle::Stateful => client.subscriptions(),
        Lifecycle::Stateless => &subscriptions,
    };
    let mut changes = server.host.changes();
    let current = || current_lists(&server, &client, channel.lifecycle());
    let mut known_before = client.known_lists();
    let mut notified = known_before.or(current());
    loop {
        changes.mark_unchanged();
        let now = current();
        let known = client.known_lists();
        for list in ListKind::ALL.into_iter().filter(|list| channel.wants(*list)) {
            // A client that has fetched the list since the change knows it. Digests shown before
            // the previous round are ignored: a stateless HTTP client may have fetched a later list
            // under another identity.
            let is_known =
                now.get(list) == known.get(list) && known.get(list) != known_before.get(list);
            if now.get(list) != notified.get(list) && !is_known {
                channel.notify_list(list).await;
            }
        }
        notified = now;
        known_before = known;
        for uri in subscriptions.changed(|uri| code_of(&server, uri)) {
            channel.notify_resource(uri).await;
        }
        if changes.changed().await.is_err() {
            return;
        }
        // Plugins that load at startup come one by one: not each is worth a notification.
        let _ = timeout(LOADING_PAUSE, server.host.wait_until_loaded()).await;
    }
}
