//! `resources/read`: reads a resource of a plugin by a dispatched call.

use super::plugin_request::{Outcome, PluginRequest};
use crate::lists::resources_and_prompts::{plugin_of, unknown_resource};
use crate::messages::serialize::{CANNOT_ANSWER, within_memory_or_error};
use crate::protocol::content::{footprint, resource_contents};
use crate::protocol::lifecycle::Lifecycle;
use crate::protocol::tool_result::exhausted_error;
use crate::questions::input_required::RoundInput;
use palisade::internal::Offered;
use palisade::plugins::Plugin;
use palisade::{Content, ErrorKind, ExecutionKind, ToolError, ToolResult};
use rmcp::model::{
    CacheScope, ErrorData, ReadResourceRequestParams, ReadResourceResponse, ReadResourceResult,
    ResourceContents,
};
use serde::Serialize;
use serde_json::{Value, json};

/// The cache lifetime of a read resource: none, since its content may differ with each read.
const CACHE_LIFETIME: u64 = 0;

impl PluginRequest {
    /// Handles `resources/read`.
    pub(crate) async fn read_resource(
        self,
        params: ReadResourceRequestParams,
    ) -> Result<ReadResourceResponse, ErrorData> {
        let ReadResourceRequestParams { uri, input_responses, request_state, .. } = params;
        let plugin = plugin_of(&self.server, &uri).ok_or_else(|| unknown_resource(&uri))?;
        let responses = input_responses.unwrap_or_default();
        let round = RoundInput { state: request_state, responses };
        let input = json!({"uri": uri});
        let result = match self.run_export(&plugin, Offered::Read, input, round).await? {
            Outcome::InputRequired(required) => {
                return Ok(ReadResourceResponse::InputRequired(required));
            }
            Outcome::Complete(result) => result,
        };
        match result.error() {
            Some(error) if is_not_found(error) => Err(unknown_resource(&uri)),
            Some(error) => Err(error_response(error)),
            None => self
                .within_account(&result, || contents(&result, self.lifecycle))
                .map(ReadResourceResponse::Complete),
        }
    }

    /// Runs a function of a plugin that is no tool.
    pub(super) async fn run_export(
        &self,
        plugin: &Plugin,
        export: Offered,
        input: Value,
        round: RoundInput,
    ) -> Result<Outcome, ErrorData> {
        let tool = self.server.host.offered(plugin, export).ok_or_else(|| {
            ErrorData::internal_error("the plugin has no name to be called by", None)
        })?;
        self.run(&tool, input, round).await
    }

    /// Reserves the memory of a response, and builds it.
    pub(super) fn within_account<T: Serialize>(
        &self,
        result: &ToolResult,
        build: impl FnOnce() -> T,
    ) -> Result<T, ErrorData> {
        let reserved = self.account().reserve(result.content().iter().map(footprint).sum());
        reserved.map_err(|why| exhausted_error(CANNOT_ANSWER, why))?;
        within_memory_or_error(build(), &self.context.extensions)
    }
}

/// Converts a failure into an error response, since these results have no error field.
pub(super) fn error_response(error: &ToolError) -> ErrorData {
    let whole = error.to_json();
    let data = Some(json!({"class": whole["class"], "detail": whole["detail"]}));
    match error.kind() {
        ErrorKind::Execution {
            kind: ExecutionKind::InvalidInput | ExecutionKind::NotFound,
            ..
        } => ErrorData::invalid_params(error.reason(), data),
        _ => ErrorData::internal_error(error.reason(), data),
    }
}

fn is_not_found(error: &ToolError) -> bool {
    matches!(error.kind(), ErrorKind::Execution { kind: ExecutionKind::NotFound, .. })
}

fn contents(result: &ToolResult, lifecycle: Lifecycle) -> ReadResourceResult {
    let contents = result.blocks().iter().filter_map(|content| contents_of(content)).collect();
    let read = ReadResourceResult::new(contents);
    match lifecycle {
        Lifecycle::Stateful => read,
        Lifecycle::Stateless => {
            read.with_ttl_ms(CACHE_LIFETIME).with_cache_scope(CacheScope::Private)
        }
    }
}

fn contents_of(content: &Content) -> Option<ResourceContents> {
    match content {
        Content::Resource { uri, mime, body } => {
            Some(resource_contents(uri, mime.as_deref(), body))
        }
        _ => None,
    }
}
