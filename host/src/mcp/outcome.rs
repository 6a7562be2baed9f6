//! The uniform result of a call, as the protocol answers it.

use super::content::{block, for_the_user};
use super::era::Era;
use crate::tool::{Content, ErrorClass, ToolError, ToolResult};
use rmcp::model::{CallToolResult, MetaObject};
use serde_json::{Value, json};

/// Where a failure's class and details stand, for programs.
pub(super) const ERROR: &str = "dev.palisade/error";

/// What a client gets of a call that came to its end, whatever that was.
pub(super) fn answer(result: &ToolResult, era: Era) -> CallToolResult {
    match result.error() {
        None => success(result, era),
        Some(error) => failure(result, error),
    }
}

fn success(result: &ToolResult, era: Era) -> CallToolResult {
    let blocks = result.blocks();
    let mut answer = CallToolResult::success(blocks.iter().map(|content| block(content)).collect());
    if let [content] = blocks.as_slice()
        && let Content::Json(value) = content.as_ref()
        && fits(value, era)
    {
        answer.structured_content = Some(value.clone());
    }
    answer
}

/// Before 2026-07-28, structured content was an object or nothing.
fn fits(value: &Value, era: Era) -> bool {
    era == Era::Modern || value.is_object()
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
