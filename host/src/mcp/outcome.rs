//! The uniform result of a call, as the protocol answers it.

use super::content::{block, for_the_user};
use super::era::Era;
use crate::execution::offload::ended;
use crate::tool::budget::Exhausted;
use crate::tool::json::Json;
use crate::tool::{CallId, Content, ErrorClass, Limit, SideEffects, ToolError, ToolResult};
use rmcp::model::{CallToolResult, ErrorData, MetaObject};
use serde_json::{Value, json};
use std::time::Duration;

/// Where a failure's class and details stand, for programs.
pub(super) const ERROR: &str = "dev.palisade/error";

/// What a client gets of a call that came to its end, whatever that was, with the value of its output.
pub(super) fn answer(result: &ToolResult, structured: Option<Value>) -> CallToolResult {
    match result.error() {
        None => success(result, structured),
        Some(error) => failure(result, error),
    }
}

/// What a client gets of a call whose answer has no room in memory.
pub(super) fn without_memory(why: Exhausted) -> CallToolResult {
    // The names of call and tool are no part of such an answer.
    answer(&ToolResult::failure(CallId::new("-"), "-", ended(why, Duration::ZERO, SideEffects::None)), None)
}

/// The error of a message for which there is no memory.
pub(super) fn exhausted(what: &str, why: Exhausted) -> ErrorData {
    let limit = match why {
        Exhausted::CallMemory { .. } => Limit::Memory,
        Exhausted::AddressSpace { .. } => Limit::AddressSpace,
        Exhausted::TotalMemory { .. } | Exhausted::Deadline | Exhausted::Cancelled => Limit::TotalMemory,
    };
    let data = json!({"class": ErrorClass::ResourceExhausted.as_str(), "detail": {"limit": limit.as_str()}});
    ErrorData::internal_error(format!("{what}: {why}"), Some(data))
}

fn success(result: &ToolResult, structured: Option<Value>) -> CallToolResult {
    let mut answer = CallToolResult::success(result.blocks().iter().map(|content| block(content)).collect());
    answer.structured_content = structured;
    answer
}

/// The output that stands in an answer as a value, too: one JSON block and nothing else. Before 2026-07-28, structured
/// content was an object or nothing.
pub(super) fn structured(result: &ToolResult, era: Era) -> Option<&Json> {
    match result.content() {
        [Content::Json(json)] if result.is_success() => {
            Some(json).filter(|json| era == Era::Modern || json.is_object())
        }
        _ => None,
    }
}

fn failure(result: &ToolResult, error: &ToolError) -> CallToolResult {
    let mut blocks: Vec<_> = result.blocks().iter().map(|content| block(content)).collect();
    // Which setting would allow a call is a matter between the server and the person who runs it.
    blocks.extend(word_to_the_user(error).map(|word| for_the_user(&word)));
    let mut answer = CallToolResult::error(blocks);
    answer.meta = Some(details(error));
    answer
}

fn word_to_the_user(error: &ToolError) -> Option<String> {
    /// Where whoever reads this finds a command line.
    const OPTIONS: &str = "options go among the server's arguments in your client's configuration";
    match error.class() {
        ErrorClass::PermissionDenied => Some(format!("For whoever runs this server: {}; {OPTIONS}", error.advice()?)),
        ErrorClass::UserDenied => Some(format!(
            "If you saw no question, your client shows none: `--allow CLASS` lets a class of tools run unasked; {OPTIONS}"
        )),
        _ => None,
    }
}

fn details(error: &ToolError) -> MetaObject {
    let whole = error.to_json();
    let mut meta = MetaObject::new();
    meta.insert(ERROR.to_owned(), json!({"class": whole["class"], "detail": whole["detail"]}));
    meta
}
