//! The work on a message before `rmcp` gets it.

use super::McpHandler;
use crate::lists::changes;
use crate::lists::filter::{self, Cut};
use crate::protocol::methods::is_subscription;
use palisade::internal::Account;
use rmcp::model::ErrorData;
use serde_json::Value;

/// A handler that works on messages before `rmcp` gets them.
pub(crate) trait Prepare {
    /// Prepares a subscription request: cuts its filter, and converts the lists whose changes it
    /// asks for. `rmcp` asks for the accepted filter on a thread of the runtime, where neither may
    /// run. Any other message stays as it is.
    ///
    /// # Errors
    ///
    /// The error response of a search that did not end in time.
    fn prepare(
        &self,
        message: &mut Value,
        account: &Account,
    ) -> impl Future<Output = Result<Cut, ErrorData>> + Send;
}

impl Prepare for McpHandler {
    async fn prepare(&self, message: &mut Value, account: &Account) -> Result<Cut, ErrorData> {
        if !is_subscription(message) {
            return Ok(Cut::Nothing);
        }
        changes::convert_lists(&self.server).await;
        filter::cut(&self.server, message, account).await
    }
}
