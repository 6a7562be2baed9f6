//! The conditions of a list: plugins that are still loading, its cache lifetime, and the
//! notifications of later changes.

use super::Front;
use crate::Changes;
use crate::lists::changes::{List, Mark};
use crate::lists::resources_and_prompts;
use crate::protocol::methods;
use crate::protocol::server_info::Loading;
use rmcp::RoleServer;
use rmcp::model::ErrorData;
use rmcp::service::RequestContext;
use std::time::Duration;

/// The cache lifetime of a list that does not change, in milliseconds.
const KEPT: u64 = 60_000;
/// The cache lifetime of a list that may change, in milliseconds.
const KEPT_BRIEFLY: u64 = 1_000;

/// The wait of `initialize` for loading plugins, so that the capabilities are complete.
pub(super) const HELLO: Duration = Duration::from_secs(5);
/// The wait of `tools/list` for loading plugins. Clients allow a server some ten seconds.
pub(super) const LISTING: Duration = Duration::from_secs(8);

impl Front {
    /// Waits for loading plugins. Returns how long a list may be cached, in milliseconds.
    pub(super) async fn settled(&self, patience: Duration) -> u64 {
        let loading = self.server.settled(patience).await;
        let changes = self.server.settings.changes;
        if loading == Loading::Ended && changes == Changes::Never { KEPT } else { KEPT_BRIEFLY }
    }

    /// Records the list that a client is shown, so that it is notified of later changes only.
    pub(super) fn shows(
        &self,
        context: &RequestContext<RoleServer>,
        list: List,
        mark: impl FnOnce() -> Mark,
    ) {
        if self.watches() {
            self.client(context).show(list, mark());
        }
    }

    /// Rejects a method that is not announced. Returns how long its list may be cached.
    pub(super) async fn offering(
        &self,
        method: &str,
        is_its: fn(resources_and_prompts::Kinds) -> bool,
    ) -> Result<u64, ErrorData> {
        let kept = self.settled(HELLO).await;
        if is_its(resources_and_prompts::kinds(&self.server)) {
            Ok(kept)
        } else {
            Err(methods::unknown(method))
        }
    }
}
