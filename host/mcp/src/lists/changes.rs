//! Notifies clients when a list or a resource changes: one task per client compares snapshots of
//! the lists whenever plugins change.
//!
//! Changes during a notification are coalesced into one more notification. A client that does not
//! read delays no other client.

use super::change_channel::ChangeChannel;
use super::resources_and_prompts::{self, code_of, offers_here, offers_if_known};
use super::tools;
use crate::clients::client::Client;
use crate::clients::known_lists::{KnownLists, ListKind};
use crate::clients::subscriptions::Subscriptions;
use crate::messages::offload;
use crate::protocol::lifecycle::Lifecycle;
use crate::settings::Changes;
use crate::state::ServerState;
use crate::state::list_cache::{ListedOffer, ListedTool};
use palisade::internal::{answer_turns, offload};
use palisade::tool::Digest;
use palisade::tool::budget::{Budget, Exhausted};
use rmcp::model::SubscriptionFilter;
use std::mem;
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
        let notifying = notify(server.clone(), client.clone(), channel);
        Some(Self(tokio::spawn(notifying).abort_handle()))
    }
}

impl Drop for ChangeTask {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// Returns the part of a subscription filter that the server accepts: resources within the limits
/// of [`Subscriptions`]. [`super::filter`] has removed those that do not exist.
pub(crate) fn accepted_filter(requested: &SubscriptionFilter) -> SubscriptionFilter {
    let subscriptions = Subscriptions::default();
    let is_accepted = |uri: &&String| subscriptions.add(uri, None).is_ok();
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
pub(crate) async fn record_baseline(server: &Arc<ServerState>, client: &Client) {
    if server.host.progress().has_ended() {
        convert_lists(server).await;
        record_known_baseline(server, client, Lifecycle::Stateful);
    }
}

/// Same as [`record_baseline`], if the lists were converted before.
pub(crate) fn record_known_baseline(server: &ServerState, client: &Client, lifecycle: Lifecycle) {
    // While plugins are still loading, there is no initial state yet.
    if server.host.progress().has_ended()
        && let Some(tools) = tools::visible_if_known(server, client.session())
        && let Some(offers) = offers_if_known(server)
    {
        client.record_baseline(digests(&tools, &offers, lifecycle));
    }
}

/// Converts the items of all lists that were not converted before, on another thread.
pub(crate) async fn convert_lists(server: &Arc<ServerState>) {
    let tools = tools::visible(server, server.host.session()).await.map(drop);
    let offers = resources_and_prompts::offers(server).await.map(drop);
    if let Err(error) = tools.and(offers) {
        tracing::warn!("the lists were not converted: {}", error.message);
    }
}

/// The lists and the resources of plugins, as a client sees them.
struct Snapshot {
    lists: KnownLists,
    /// The resources that the client has subscribed to, with the code that serves them.
    codes: Vec<(String, Option<Digest>)>,
}

/// Takes a snapshot for a client, on another thread: plugins choose the length of the lists, and
/// how long it takes to find a resource.
async fn snapshot(
    server: &Arc<ServerState>,
    client: &Arc<Client>,
    lifecycle: Lifecycle,
    subscriptions: &Subscriptions,
) -> Snapshot {
    loop {
        let (server, client, uris) = (server.clone(), client.clone(), subscriptions.uris());
        let budget = offload::budget(server.host.limits().account());
        let take = move |budget: Arc<dyn Budget>| {
            let code = |uri: String| {
                budget.check()?;
                let code = code_of(&server, &uri);
                Ok((uri, code))
            };
            let tools = tools::visible_here(&server, client.session());
            let lists = digests(&tools, &offers_here(&server), lifecycle);
            let codes = uris.into_iter().map(code).collect::<Result<_, Exhausted>>()?;
            Ok(Snapshot { lists, codes })
        };
        match offload(&budget, answer_turns(), take).await {
            Ok(snapshot) => return snapshot,
            Err(why) => tracing::warn!("the lists were not compared, and are again: {why}"),
        }
    }
}

/// Returns the digests of these lists.
fn digests(
    tools: &[Arc<ListedTool>],
    offers: &[Arc<ListedOffer>],
    lifecycle: Lifecycle,
) -> KnownLists {
    let mut lists = KnownLists::default();
    lists.set(ListKind::Tools, tools::digest(tools, lifecycle));
    lists.set(ListKind::Resources, resources_and_prompts::resources_digest(offers));
    lists.set(ListKind::Prompts, resources_and_prompts::prompts_digest(offers));
    lists
}

async fn notify(server: Arc<ServerState>, client: Arc<Client>, channel: ChangeChannel) {
    let own = Subscriptions::default();
    let subscriptions = match channel.lifecycle() {
        Lifecycle::Stateful => client.subscriptions(),
        Lifecycle::Stateless => &own,
    };
    for uri in channel.resources() {
        // The filter was cut to what fits when it was accepted.
        let _ = subscriptions.add(uri, None);
    }
    let mut changes = server.host.changes();
    let current = || snapshot(&server, &client, channel.lifecycle(), subscriptions);
    let mut known_before = client.known_lists();
    changes.mark_unchanged();
    let mut taken = current().await;
    let mut notified = known_before.or(taken.lists);
    if channel.lifecycle() == Lifecycle::Stateless {
        // No change yet: the subscription begins with this code.
        own.update(mem::take(&mut taken.codes));
    }
    loop {
        let now = taken.lists;
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
        for uri in subscriptions.update(taken.codes) {
            channel.notify_resource(uri).await;
        }
        if changes.changed().await.is_err() {
            return;
        }
        // Plugins that load at startup come one by one: not each is worth a notification.
        let _ = timeout(LOADING_PAUSE, server.host.wait_until_loaded()).await;
        changes.mark_unchanged();
        taken = current().await;
    }
}
