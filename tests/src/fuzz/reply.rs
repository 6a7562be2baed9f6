//! The fuzz target of model replies: any text as a provider's reply with tool calls.

use std::collections::BTreeSet;

use palisade::formats::{
    History, MAX_CALLS, Provider, ReplyError, ToolUse, read_calls, write_results,
};
use palisade::{Call, CallId, ToolResult};
use palisade::{ErrorKind, ExecutionKind};

use super::check_message;

/// Reads the bytes as a provider's reply. The first byte selects the provider; the rest is the
/// reply.
///
/// # Panics
///
/// If two calls have the same id, a message is invalid, or the results cannot be written.
pub fn reply(bytes: &[u8]) {
    let Some((which, text)) = bytes.split_first() else { return };
    let provider = Provider::ALL[usize::from(*which) % Provider::ALL.len()];
    let text = String::from_utf8_lossy(text);
    match read_calls(provider, &text) {
        Err(refused) => check_message(&refused.to_string()),
        Ok(uses) => kept(provider, &text, &answered(provider, &uses)),
    }
}

/// Appends the reply and its answers to a history, unless a message in it has another provider's
/// form.
fn kept(provider: Provider, text: &str, results: &[(ToolUse, ToolResult)]) {
    let mut history = History::new(provider);
    let uses = match history.append_reply(text) {
        Ok(uses) => uses,
        Err(ReplyError::OtherProvider { .. }) => return assert!(history.messages().is_empty()),
        Err(other) => panic!("the calls were read before: {other}"),
    };
    assert_eq!(uses.len(), results.len());
    for (called, (_, result)) in uses.iter().zip(results) {
        assert!(history.append_answer(called, result).is_empty(), "no text block is omitted");
    }
    assert!(results.is_empty() || !history.messages().is_empty());
}

fn answered(provider: Provider, uses: &[ToolUse]) -> Vec<(ToolUse, ToolResult)> {
    assert!(uses.len() <= MAX_CALLS);
    let ids: BTreeSet<&str> = uses.iter().map(ToolUse::call_id).collect();
    assert_eq!(ids.len(), uses.len(), "each call has an id of its own");
    let result = |(number, called): (usize, &ToolUse)| {
        let call = Call::from(called);
        let (id, tool): (CallId, String) = (call.id().clone(), call.tool().to_owned());
        let made = match number % 2 {
            0 => ToolResult::success(id, &tool, "done"),
            _ => ToolResult::failure(
                id,
                &tool,
                ErrorKind::execution(ExecutionKind::Failed, "it went wrong"),
            ),
        };
        (called.clone(), made)
    };
    let results: Vec<_> = uses.iter().enumerate().map(result).collect();
    let (messages, left_out) = write_results(provider, &results);
    assert!(messages.is_array() && left_out.is_empty(), "no text block is omitted");
    results
}
