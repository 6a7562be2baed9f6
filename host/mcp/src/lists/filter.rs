//! Cuts the filter of a subscription request to the resources that exist, before `rmcp` gets it:
//! `rmcp` asks for the accepted filter on a thread of the runtime, where no long search may run.

use super::resources_and_prompts::existing;
use crate::protocol::methods::{MAX_SUBSCRIPTIONS, subscribed_resources, subscribed_resources_mut};
use crate::state::ServerState;
use palisade::internal::Account;
use rmcp::model::ErrorData;
use serde_json::Value;
use std::sync::Arc;

/// The change that [`cut`] makes to a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Cut {
    /// The message is as it was.
    Nothing,
    /// The filter lacks some resources.
    Resources,
}

/// Removes the resources that do not exist from the filter of a subscription request. Any other
/// message stays as it is.
///
/// # Errors
///
/// The error response of a search that did not end in time.
pub(crate) async fn cut(
    server: &Arc<ServerState>,
    message: &mut Value,
    account: &Account,
) -> Result<Cut, ErrorData> {
    let Some(asked) = subscribed_resources(message) else { return Ok(Cut::Nothing) };
    // The parser refuses longer filters.
    let asked = asked.iter().take(MAX_SUBSCRIPTIONS).filter_map(Value::as_str);
    let known = existing(server, asked, account).await?;
    let Some(uris) = subscribed_resources_mut(message) else { return Ok(Cut::Nothing) };
    let before = uris.len();
    // Other values than strings stay, so that `rmcp` refuses the message.
    uris.retain(|uri| uri.as_str().is_none_or(|uri| known.contains(uri)));
    Ok(if uris.len() < before { Cut::Resources } else { Cut::Nothing })
}
