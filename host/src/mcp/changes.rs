//! Who hears that a list has changed, or a document: each client in a task of its own, which looks again whenever plugins have, and tells it where what it can be shown differs.
//!
//! However much changes while a client is told, it is told once more afterwards, and one that does not listen holds up nobody but itself.

use super::client::Client;
use super::documents::Documents;
use super::era::Era;
use super::{Changes, Shared, listing, offers};
use rmcp::RoleServer;
use rmcp::model::{ResourceUpdatedNotificationParam, SubscriptionFilter};
use rmcp::service::{Peer, SubscriptionSink};
use serde::Serialize;
use std::sync::Arc;
use std::time::Duration;
use tokio::task::AbortHandle;

/// How long a client is waited for that is told something.
const PATIENCE: Duration = Duration::from_secs(2);

/// A list that a client can be shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum List {
    Tools,
    /// Documents, and what they are made of.
    Resources,
    Prompts,
}

impl List {
    const ALL: [Self; 3] = [Self::Tools, Self::Resources, Self::Prompts];
}

/// What a list says, in short: two that differ have different ones.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Mark(blake3::Hash);

impl Mark {
    /// Of this list.
    pub(super) fn of(list: &impl Serialize) -> Self {
        // Only maps with keys that are no strings fail to serialise, and there are none.
        Self(blake3::hash(&serde_json::to_vec(list).unwrap_or_default()))
    }

    /// Of the two lists that say which documents there are.
    pub(super) fn of_resources(server: &Shared) -> Self {
        Self::of(&(offers::resources(server), offers::templates(server)))
    }
}

/// All lists, as far as they are known.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Lists([Option<Mark>; List::ALL.len()]);

impl Lists {
    /// What a client can be shown now.
    fn now(server: &Shared, client: &Client, era: Era) -> Self {
        let mut lists = Self::default();
        for list in List::ALL {
            let mark = match list {
                List::Tools => Mark::of(&listing::tools(&server.host, client.session(), era)),
                List::Resources => Mark::of_resources(server),
                List::Prompts => Mark::of(&offers::prompts(server)),
            };
            lists.set(list, mark);
        }
        lists
    }

    pub(super) fn set(&mut self, list: List, mark: Mark) {
        if let Some(known) = self.0.get_mut(list as usize) {
            *known = Some(mark);
        }
    }

    fn get(&self, list: List) -> Option<Mark> {
        self.0.get(list as usize).copied().flatten()
    }

    /// The same, and what others know beside it.
    pub(super) fn or(self, others: Self) -> Self {
        let mut all = self;
        for (own, other) in all.0.iter_mut().zip(others.0) {
            *own = own.or(other);
        }
        all
    }
}

/// How a client hears of it.
#[derive(Debug, Clone)]
pub(super) enum Way {
    /// Whether it has asked for it or not.
    Legacy(Peer<RoleServer>),
    /// Under a request that says what it wants to hear.
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
            (Self::Modern(sink), List::Resources) => sink.accepted().resources_list_changed == Some(true),
            (Self::Modern(sink), List::Prompts) => sink.accepted().prompts_list_changed == Some(true),
        }
    }

    /// The documents that were asked for together with this.
    fn documents(&self, server: &Shared) -> Documents {
        let documents = Documents::default();
        if let Self::Modern(sink) = self {
            for uri in sink.accepted().resource_subscriptions.iter().flatten() {
                // As many as fit were accepted.
                let _ = documents.add(uri, offers::code(server, uri));
            }
        }
        documents
    }

    /// Says that a list has changed.
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

    /// Says that a document has changed.
    async fn tell_of(&self, uri: String) {
        within_patience(async {
            match self {
                Self::Legacy(peer) => {
                    let updated = ResourceUpdatedNotificationParam::new(uri);
                    peer.notify_resource_updated(updated).await.map_err(|error| error.to_string())
                }
                Self::Modern(sink) => sink.notify_resource_updated(uri).await.map_err(|error| error.to_string()),
            }
        })
        .await;
    }
}

/// What comes of it is the client's matter: a connection that is gone is noticed elsewhere.
async fn within_patience(told: impl Future<Output = Result<(), String>>) {
    match tokio::time::timeout(PATIENCE, told).await {
        Ok(Ok(())) => {}
        Ok(Err(error)) => tracing::debug!("a client does not hear of a change: {error}"),
        Err(_) => tracing::debug!("a client does not hear within {PATIENCE:?} of a change"),
    }
}

/// As much of what a client wants to hear of as there can be.
pub(super) fn accepted(server: &Shared, wanted: &SubscriptionFilter) -> SubscriptionFilter {
    let mut accepted = SubscriptionFilter::new();
    accepted.tools_list_changed = wanted.tools_list_changed;
    accepted.resources_list_changed = wanted.resources_list_changed;
    accepted.prompts_list_changed = wanted.prompts_list_changed;
    accepted.resource_subscriptions = wanted.resource_subscriptions.as_ref().map(|wanted| {
        let taken = Documents::default();
        let is_taken = |uri: &&String| offers::code(server, uri).is_some_and(|code| taken.add(uri, Some(code)).is_ok());
        wanted.iter().filter(is_taken).cloned().collect()
    });
    accepted
}

/// From here on a client is to hear of changes: before it is answered that it will, so that none is lost on the way.
pub(super) fn promise(server: &Shared, client: &Client, era: Era) {
    // While plugins are still loaded, nobody can say what there is at first.
    if server.host.progress().has_ended() {
        client.expect(Lists::now(server, client, era));
    }
}

/// Tells one client, for as long as this lives.
#[derive(Debug)]
pub(super) struct Telling(AbortHandle);

impl Telling {
    /// Begins, if anything can change at all.
    pub(super) fn begin(server: &Arc<Shared>, client: &Arc<Client>, way: Way) -> Option<Self> {
        if server.changes() == Changes::Never {
            return None;
        }
        let documents = way.documents(server);
        let told = tell(server.clone(), client.clone(), (way, documents));
        Some(Self(tokio::spawn(told).abort_handle()))
    }
}

impl Drop for Telling {
    fn drop(&mut self) {
        self.0.abort();
    }
}

async fn tell(server: Arc<Shared>, client: Arc<Client>, (way, documents): (Way, Documents)) {
    let documents = match way.era() {
        Era::Legacy => client.documents(),
        Era::Modern => &documents,
    };
    let mut changes = server.host.changes();
    let now = || Lists::now(&server, &client, way.era());
    // What comes at the start is no change: whoever asks for a list waits for it. Who was shown a part of it hears when the rest is there.
    server.host.loaded().await;
    let mut before = client.shown();
    let mut told = before.or(now());
    loop {
        changes.mark_unchanged();
        let (now, shown) = (now(), client.shown());
        for list in List::ALL.into_iter().filter(|list| way.leads(*list)) {
            // Whoever has asked since it changed knows. What was shown before the last word of a change was is forgotten, for a client may have asked elsewhere.
            let knows = now.get(list) == shown.get(list) && shown.get(list) != before.get(list);
            if now.get(list) != told.get(list) && !knows {
                way.tell(list).await;
            }
        }
        (told, before) = (now, shown);
        for uri in documents.changed(|uri| offers::code(&server, uri)) {
            way.tell_of(uri).await;
        }
        if changes.changed().await.is_err() {
            return;
        }
    }
}
