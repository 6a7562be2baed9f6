//! The channel by which a client is notified of changes, by lifecycle.

use crate::clients::known_lists::ListKind;
use crate::protocol::lifecycle::Lifecycle;
use rmcp::RoleServer;
use rmcp::model::ResourceUpdatedNotificationParam;
use rmcp::service::{Peer, SubscriptionSink};
use std::time::Duration;

/// The timeout for sending one notification.
const SEND_TIMEOUT: Duration = Duration::from_secs(2);

/// The channel by which a client is notified.
#[derive(Debug, Clone)]
pub(crate) enum ChangeChannel {
    /// A stateful client, which is notified without a subscription.
    Stateful(Peer<RoleServer>),
    /// A subscription request of a stateless client, with its filter.
    Stateless(SubscriptionSink),
}

impl ChangeChannel {
    /// Returns the lifecycle of the client.
    pub(super) fn lifecycle(&self) -> Lifecycle {
        match self {
            Self::Stateful(_) => Lifecycle::Stateful,
            Self::Stateless(_) => Lifecycle::Stateless,
        }
    }

    /// Returns true if the client wants notifications of changes of a list.
    pub(super) fn wants(&self, list: ListKind) -> bool {
        let filter = match self {
            Self::Stateful(_) => return true,
            Self::Stateless(sink) => sink.accepted(),
        };
        let wanted = match list {
            ListKind::Tools => filter.tools_list_changed,
            ListKind::Resources => filter.resources_list_changed,
            ListKind::Prompts => filter.prompts_list_changed,
        };
        wanted == Some(true)
    }

    /// Returns the resources that a subscription of a stateless client names.
    pub(super) fn resources(&self) -> &[String] {
        match self {
            Self::Stateful(_) => &[],
            Self::Stateless(sink) => {
                sink.accepted().resource_subscriptions.as_deref().unwrap_or_default()
            }
        }
    }

    /// Notifies the client that a list has changed.
    pub(super) async fn notify_list(&self, list: ListKind) {
        send(async {
            match self {
                Self::Stateful(peer) => match list {
                    ListKind::Tools => peer.notify_tool_list_changed().await,
                    ListKind::Resources => peer.notify_resource_list_changed().await,
                    ListKind::Prompts => peer.notify_prompt_list_changed().await,
                }
                .map_err(|error| error.to_string()),
                Self::Stateless(sink) => match list {
                    ListKind::Tools => sink.notify_tool_list_changed().await,
                    ListKind::Resources => sink.notify_resource_list_changed().await,
                    ListKind::Prompts => sink.notify_prompt_list_changed().await,
                }
                .map_err(|error| error.to_string()),
            }
        })
        .await;
    }

    /// Notifies the client that a resource has changed.
    pub(super) async fn notify_resource(&self, uri: String) {
        send(async {
            match self {
                Self::Stateful(peer) => {
                    let updated = ResourceUpdatedNotificationParam::new(uri);
                    peer.notify_resource_updated(updated).await.map_err(|error| error.to_string())
                }
                Self::Stateless(sink) => {
                    sink.notify_resource_updated(uri).await.map_err(|error| error.to_string())
                }
            }
        })
        .await;
    }
}

/// Sends a notification, best effort: a broken connection is detected elsewhere.
async fn send(notification: impl Future<Output = Result<(), String>>) {
    match tokio::time::timeout(SEND_TIMEOUT, notification).await {
        Ok(Ok(())) => {}
        Ok(Err(error)) => tracing::debug!("a client could not be notified of a change: {error}"),
        Err(_) => tracing::debug!("a client took no notification of a change in {SEND_TIMEOUT:?}"),
    }
}
