//! Appends the results of calls to a conversation, which is valid only if every call in it has an
//! answer.

use super::dispatcher::Dispatcher;
use super::message::RunningMessage;
use crate::session::Session;
use crate::tool::{Call, CallId, ToolResult};

/// A conversation to which tool results are appended. [`Transcript`](super::Transcript) is one that
/// can be stored.
pub trait Conversation: Send {
    /// Appends the text of a result for the model, under the id of its call.
    fn append_tool(&mut self, call_id: &CallId, tool: &str, content: &str);

    /// Appends the call with its full result, for display or storage. It follows
    /// [`append_tool`](Self::append_tool) for the same call.
    fn append_tool_execution(&mut self, call: &Call, result: &ToolResult);
}

impl Dispatcher {
    /// Runs the calls of one message and appends every result to the conversation, in the order of
    /// the calls: each as soon as it and all before it have ended.
    ///
    /// Dropping the future ends the calls that run, and appends the rest in the same order: the
    /// results of the calls that have ended, and a cancelled result for each of the others.
    pub(crate) async fn dispatch_into(
        &self,
        session: &Session,
        calls: Vec<Call>,
        conversation: &mut dyn Conversation,
    ) -> Vec<ToolResult> {
        let message = self.begin_message(session, calls.clone(), None);
        let mut appending = Appending { message, calls: calls.into_iter(), conversation };
        let mut results = Vec::new();
        while let Some(result) = appending.next().await {
            results.push(result);
        }
        results
    }
}

/// Appends the results of a message. Dropping it appends those that are still missing.
struct Appending<'a> {
    message: RunningMessage,
    /// The calls whose results are not appended yet.
    calls: std::vec::IntoIter<Call>,
    conversation: &'a mut dyn Conversation,
}

impl Appending<'_> {
    async fn next(&mut self) -> Option<ToolResult> {
        let result = self.message.next().await?;
        if let Some(call) = self.calls.next() {
            append(self.conversation, &call, &result);
        }
        Some(result)
    }
}

impl Drop for Appending<'_> {
    fn drop(&mut self) {
        // A conversation that has panicked gets no further results.
        if std::thread::panicking() {
            return;
        }
        for (call, result) in self.calls.by_ref().zip(self.message.end()) {
            append(self.conversation, &call, &result);
        }
    }
}

fn append(conversation: &mut dyn Conversation, call: &Call, result: &ToolResult) {
    let text: Vec<_> = result.blocks().iter().map(|block| block.as_text().into_owned()).collect();
    conversation.append_tool(result.call_id(), result.tool(), &text.join("\n"));
    conversation.append_tool_execution(call, result);
}
