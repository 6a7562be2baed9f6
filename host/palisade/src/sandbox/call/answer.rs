//! The answer of a function of another world, in the form of a tool's output.

use super::failure::Failure;
use crate::execution::ToolContext;
use crate::execution::account::Account;
use crate::execution::offload::exhaustion_error;
use crate::sandbox::adapt::{Answered, Function, Lowered, Mismatch, NoAnswer};
use crate::sandbox::bindings::exports::palisade::tool::tool as wit;
use crate::sandbox::bindings::palisade::tool::types::Content;
use crate::sandbox::limits;
use crate::sandbox::run::{Linked, State};
use crate::tool::text::elided;
use crate::tool::{ErrorKind, ExecutionKind, Limit, SideEffects};
use serde_json::Value;
use wasmtime::Store;
use wasmtime::component::Val;

/// The maximum length of a refusal of an input, and of the position in it, in characters.
const MESSAGE: usize = 512;
const FIELD: usize = 128;

/// The answer of a guest of the contract.
pub(super) type Returned = Result<wit::Output, wit::ToolError>;

/// Converts the input of a call to the parameters of a function.
pub(super) fn parameters(
    function: &Function,
    input: &Value,
    account: &Account,
    context: &ToolContext,
    class: SideEffects,
) -> Result<Lowered, ErrorKind> {
    function.lowered(input, account).map_err(|mismatch| match mismatch {
        // The schema has accepted the input, and the call has begun.
        Mismatch::Invalid { pointer, reason } => ErrorKind::Execution {
            kind: ExecutionKind::InvalidInput,
            message: elided(&format!("`{pointer}`: {reason}"), MESSAGE),
            field: Some(elided(&pointer, FIELD)),
            advice: None,
            source: None,
        },
        Mismatch::Exhausted(why) => exhaustion_error(why, context.time_limit(), class),
    })
}

/// Calls a function in a new instance, and converts its value. A large one takes milliseconds, so
/// it is converted in the turn of the guest that has made it.
pub(super) async fn call(
    function: &Function,
    linked: &Linked,
    store: &mut Store<State>,
    parameters: &Lowered,
    account: &Account,
) -> wasmtime::Result<Result<Answered, NoAnswer>> {
    // The engine replaces the value.
    let mut results = vec![Val::Bool(false); function.results()];
    linked.call(&function.index, store, parameters.values(), &mut results).await?;
    Ok(function.answered(results.pop(), account))
}

/// Returns the answer of a function in the form of a guest of the contract.
pub(super) fn returned(
    answered: Result<Answered, NoAnswer>,
    context: &ToolContext,
    class: SideEffects,
) -> Result<Returned, Failure> {
    let answered = answered.map_err(|error| match error {
        NoAnswer::Exhausted(why) => exhaustion_error(why, context.time_limit(), class),
        NoAnswer::TooLong => {
            ErrorKind::ResourceExhausted { limit: Limit::Result, value: limits::RESULT }
        }
        NoAnswer::OtherType => ErrorKind::execution(
            ExecutionKind::Internal,
            "the function returned a value of another type than it has",
        ),
    })?;
    Ok(match answered {
        Answered::Nothing => Ok(output(Vec::new())),
        Answered::Text(text) => Ok(output(vec![Content::Text(text)])),
        Answered::Json(text) => Ok(output(vec![Content::Json(text)])),
        Answered::Failed(message) => Err(wit::ToolError::Failed(message)),
    })
}

fn output(content: Vec<Content>) -> wit::Output {
    wit::Output {
        content,
        success: true,
        metadata: String::new(),
        files_modified: Vec::new(),
        command_executed: None,
    }
}
