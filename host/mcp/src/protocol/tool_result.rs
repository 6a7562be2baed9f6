//! Converts the uniform result of a call into a result of the protocol.

use super::content::content_block;
use super::lifecycle::Lifecycle;
use super::remedy::{self, Elicitation};
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

/// The text of a result without output.
const NO_OUTPUT: &str = "The call succeeded, without output.";

/// Builds the result of a call, with the JSON value of its output if there is one.
pub(crate) fn call_result(
    result: &ToolResult,
    structured: Option<Value>,
    elicitation: Elicitation,
) -> CallToolResult {
    let mut answer = match result.error() {
        None => success(result, structured),
        Some(error) => failure(result, error, elicitation),
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
        Elicitation::Undeclared,
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

fn failure(result: &ToolResult, error: &ToolError, elicitation: Elicitation) -> CallToolResult {
    let mut blocks = blocks(result);
    if let (Some(ContentBlock::Text(first)), Some(remedy)) =
        (blocks.first_mut(), remedy::for_reader(error, elicitation))
    {
        first.text = format!("{}; {remedy}", first.text);
    }
    let mut failure = CallToolResult::error(blocks);
    failure.meta = Some(error_details(error));
    failure
}

/// Returns the blocks of a result, at least one: some clients fail at an empty list.
fn blocks(result: &ToolResult) -> Vec<ContentBlock> {
    let blocks = result.blocks();
    match &blocks[..] {
        [] => vec![ContentBlock::text(NO_OUTPUT)],
        blocks => blocks.iter().map(|content| content_block(content)).collect(),
    }
}

fn error_details(error: &ToolError) -> MetaObject {
    let whole = error.to_json();
    let mut meta = MetaObject::new();
    meta.insert(ERROR_KEY.to_owned(), json!({"class": whole["class"], "detail": whole["detail"]}));
    meta
}
