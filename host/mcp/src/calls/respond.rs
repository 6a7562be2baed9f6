//! Builds the response of a call within the memory of its request. The blocks of a result are
//! converted on another thread if they are many or long.

use super::plugin_request::PluginRequest;
use crate::messages::extensions::account_of_library;
use crate::messages::serialize::{CANNOT_ANSWER, within_memory};
use crate::protocol::content::ContentSize;
use crate::protocol::result_meta::meta_footprint;
use crate::protocol::tool_result::exhausted_error;
use palisade::ToolResult;
use palisade::internal::{CallBudget, answer_turns, offload};
use palisade::tool::budget::Exhausted;
use rmcp::model::ErrorData;
use serde::Serialize;
use std::time::{Duration, Instant};

/// The deadline for the conversion of a result.
pub(super) const CONVERSION_TIMEOUT: Duration = Duration::from_secs(10);

impl PluginRequest {
    /// Reserves the memory of the response that is built from this result, and that which `rmcp`
    /// needs to write it, and builds the response.
    pub(super) async fn convert<T: Serialize + Send + 'static>(
        &self,
        result: Box<ToolResult>,
        build: impl FnOnce(&ToolResult) -> T + Send + 'static,
    ) -> Result<T, Exhausted> {
        let size = ContentSize::of(result.content());
        self.account().reserve(size.memory + meta_footprint(&result))?;
        let library = account_of_library(&self.context.extensions);
        let convert = move || within_memory(build(&result), library.as_ref());
        if size.is_short() {
            return convert();
        }
        let turns = self.turns.get().unwrap_or_else(|| answer_turns());
        offload(&self.conversion(), turns, move |_| convert()).await
    }

    /// Same as [`convert`](Self::convert), with an error response.
    pub(super) async fn convert_or_error<T: Serialize + Send + 'static>(
        &self,
        result: Box<ToolResult>,
        build: impl FnOnce(&ToolResult) -> T + Send + 'static,
    ) -> Result<T, ErrorData> {
        let built = self.convert(result, build).await;
        built.map_err(|why| exhausted_error(CANNOT_ANSWER, why))
    }

    /// Returns the budget of a conversion.
    pub(super) fn conversion(&self) -> CallBudget {
        let deadline = Instant::now() + CONVERSION_TIMEOUT;
        CallBudget::new(self.account(), deadline, self.context.ct.clone())
    }
}
