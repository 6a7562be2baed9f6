//! Converts the uniform result of a call into a result of the protocol.

use crate::protocol::content::{block, for_the_user};
use crate::protocol::lifecycle::Era;
use palisade::internal::ended;
use palisade::tool::budget::Exhausted;
use palisade::tool::json::Json;
use palisade::tool::{CallId, Content, ErrorClass, Limit, SideEffects, ToolError, ToolResult};
use rmcp::model::{CallToolResult, ErrorData, MetaObject};
use serde_json::{Value, json};
use std::time::Duration;

/// The metadata key of an error's class and details, for programs.
pub(crate) const ERROR: &str = "dev.palisade/error";

/// Builds the result of a call, with the JSON value of its output if there is one.
pub(crate) fn answer(result: &ToolResult, structured: Option<Value>) -> CallToolResult {
    match result.error() {
        None => success(result, structured),
        Some(error) => failure(result, error),
    }
}

/// Builds the result of a call whose response does not fit into memory.
pub(crate) fn without_memory(why: Exhausted) -> CallToolResult {
    // The result does not contain the names of the call and the tool.
    answer(
        &ToolResult::failure(CallId::new("-"), "-", ended(why, Duration::ZERO, SideEffects::None)),
        None,
    )
}

/// Builds the error for a message that does not fit into memory.
pub(crate) fn exhausted(what: &str, why: Exhausted) -> ErrorData {
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
    let mut answer =
        CallToolResult::success(result.blocks().iter().map(|content| block(content)).collect());
    answer.structured_content = structured;
    answer
}

/// Returns the output that is also sent as structured content: a single JSON block. Revisions
/// before 2026-07-28 allow objects only.
pub(crate) fn structured(result: &ToolResult, era: Era) -> Option<&Json> {
    match result.content() {
        [Content::Json(json)] if result.is_success() => {
            Some(json).filter(|json| era == Era::Modern || json.is_object())
        }
        _ => None,
    }
}

fn failure(result: &ToolResult, error: &ToolError) -> CallToolResult {
    let mut blocks: Vec<_> = result.blocks().iter().map(|content| block(content)).collect();
    // For the user, not the model: only the person who runs the server can change its settings.
    blocks.extend(word_to_the_user(error).map(|word| for_the_user(&word)));
    let mut answer = CallToolResult::error(blocks);
    answer.meta = Some(details(error));
    answer
}

fn word_to_the_user(error: &ToolError) -> Option<String> {
    /// The place for command-line options, for a reader who knows only the client.
    const OPTIONS: &str = "options go among the server's arguments in your client's configuration";
    match error.class() {
        ErrorClass::PermissionDenied => {
            Some(format!("For whoever runs this server: {}; {OPTIONS}", error.advice()?))
        }
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
