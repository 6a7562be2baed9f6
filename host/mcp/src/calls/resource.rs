//! `resources/read`: reads a resource of a plugin by a dispatched call.

use super::plugin_request::{Outcome, PluginRequest};
use crate::lists::resources_and_prompts::unknown_resource;
use crate::protocol::content::resource_contents;
use crate::protocol::lifecycle::Lifecycle;
use crate::questions::input_required::RoundInput;
use palisade::internal::Offered;
use palisade::plugins::Plugin;
use palisade::{Content, ErrorKind, ExecutionKind, ToolError, ToolResult};
use rmcp::model::{
    CacheScope, ErrorData, ReadResourceRequestParams, ReadResourceResponse, ReadResourceResult,
    ResourceContents,
};
use serde_json::{Value, json};

/// The cache lifetime of a read resource: none, since its content may differ with each read.
const CACHE_LIFETIME: u64 = 0;

impl PluginRequest {
    /// Handles `resources/read` of a resource that this plugin serves.
    pub(crate) async fn read_resource(
        self,
        params: ReadResourceRequestParams,
        plugin: Option<Plugin>,
    ) -> Result<ReadResourceResponse, ErrorData> {
        let ReadResourceRequestParams { uri, input_responses, request_state, .. } = params;
        let plugin = plugin.ok_or_else(|| unknown_resource(&uri))?;
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
            None => {
                let lifecycle = self.lifecycle;
                let read = self.convert_or_error(result, move |it| contents(it, lifecycle)).await;
                read.map(ReadResourceResponse::Complete)
            }
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
    let blocks = result.content();
    // Without growth, which would take more than was reserved.
    let mut contents = Vec::with_capacity(blocks.len());
    contents.extend(blocks.iter().filter_map(contents_of));
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
