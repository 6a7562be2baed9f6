//! Converts the uniform result of a call into a result of the protocol.

use super::content::{content_block, user_block};
use super::lifecycle::Lifecycle;
use super::result_meta::add_result_meta;
use palisade::internal::exhaustion_error;
use palisade::tool::budget::Exhausted;
use palisade::tool::json::Json;
use palisade::{CallId, Content, ErrorClass, Limit, SideEffects, ToolError, ToolResult};
use rmcp::model::{CallToolResult, ContentBlock, ErrorData, MetaObject};
use serde_json::{Value, json};
use std::time::Duration;

/// The metadata key of an error's class and details, for programs.
pub(crate) const ERROR_KEY: &str = "dev.palisade/error";

/// Builds the result of a call, with the JSON value of its output if there is one.
pub(crate) fn call_result(result: &ToolResult, structured: Option<Value>) -> CallToolResult {
    let mut answer = match result.error() {
        None => success(result, structured),
        Some(error) => failure(result, error),
    };
    add_result_meta(&mut answer.meta, result);
    answer
}

/// Builds the result of a call whose response does not fit into memory.
pub(crate) fn exhausted_result(why: Exhausted) -> CallToolResult {
    // The result does not contain the names of the call and the tool.
    call_result(
        &ToolResult::failure(
            CallId::new("-"),
            "-",
            exhaustion_error(why, Duration::ZERO, SideEffects::None),
        ),
        None,
    )
}

/// Builds the error for a message that does not fit into memory.
pub(crate) fn exhausted_error(what: &str, why: Exhausted) -> ErrorData {
    let limit = match why {
        Exhausted::CallMemory { .. } => Limit::Memory,
        Exhausted::AddressSpace { .. } => Limit::AddressSpace,
        Exhausted::TotalMemory { .. } | Exhausted::Deadline | Exhausted::Cancelled => {
            Limit::TotalMemory
        }
    };
    let data = json!({"class": ErrorClass::ResourceExhausted.as_str(), "detail": {"limit": limit.as_str()}});
    ErrorData::internal_error(format!("{what}: {why}"), Some(data))
}

fn success(result: &ToolResult, structured: Option<Value>) -> CallToolResult {
    let mut success = CallToolResult::success(blocks(result));
    success.structured_content = structured;
    success
}

/// Returns the output that is also sent as structured content: a single JSON block. The stateful
/// lifecycle allows objects only.
pub(crate) fn structured_content(result: &ToolResult, lifecycle: Lifecycle) -> Option<&Json> {
    match result.content() {
        [Content::Json(json)] if result.is_success() => {
            Some(json).filter(|json| lifecycle == Lifecycle::Stateless || json.is_object())
        }
        _ => None,
    }
}

fn failure(result: &ToolResult, error: &ToolError) -> CallToolResult {
    let mut blocks = blocks(result);
    // For the user, not the model: only the person who runs the server can change its settings.
    blocks.extend(user_advice(error).map(|advice| user_block(&advice)));
    let mut failure = CallToolResult::error(blocks);
    failure.meta = Some(error_details(error));
    failure
}

fn blocks(result: &ToolResult) -> Vec<ContentBlock> {
    result.blocks().iter().map(|content| content_block(content)).collect()
}

fn user_advice(error: &ToolError) -> Option<String> {
    /// The place for command-line options, for a reader who knows only the client.
    const OPTIONS: &str = "options go among the server's arguments in your client's configuration";
    match error.class() {
        ErrorClass::PermissionDenied => {
            Some(format!("For the operator of this server: {}; {OPTIONS}", error.advice()?))
        }
        ErrorClass::UserDenied => Some(format!(
            "If you saw no question, your client shows none: `--allow CLASS` lets a class of tools run unasked; {OPTIONS}"
        )),
        _ => None,
    }
}

fn error_details(error: &ToolError) -> MetaObject {
    let whole = error.to_json();
    let mut meta = MetaObject::new();
    meta.insert(ERROR_KEY.to_owned(), json!({"class": whole["class"], "detail": whole["detail"]}));
    meta
}
