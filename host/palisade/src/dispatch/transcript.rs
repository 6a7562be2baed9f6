//! Appends the results of calls to a conversation, which is valid only if every call in it has an
//! answer.

use super::dispatcher::Dispatcher;
use crate::session::Session;
use crate::tool::{Call, CallId, ErrorKind, ToolResult};

/// A conversation to which tool results are appended.
pub trait Transcript: Send {
    /// Appends the text of a result for the model, under the id of its call.
    fn append_tool(&mut self, call_id: &CallId, tool: &str, content: &str);

    /// Appends the call with its full result, for display or storage.
    fn append_tool_execution(&mut self, call: &Call, result: &ToolResult);
}

impl Dispatcher {
    /// Runs the calls of one message and appends every result to the transcript, in the order of
    /// the calls.
    ///
    /// Dropping the future ends the calls and appends a cancelled result for each.
    pub(crate) async fn dispatch_into(
        &self,
        session: &Session,
        calls: Vec<Call>,
        transcript: &mut dyn Transcript,
    ) -> Vec<ToolResult> {
        let mut pending = PendingAnswers { calls: calls.clone(), transcript };
        let results = self.dispatch_all(session, calls).await;
        pending.append_all(&results);
        results
    }
}

/// A guard for the answers that the transcript still lacks.
struct PendingAnswers<'a> {
    calls: Vec<Call>,
    transcript: &'a mut dyn Transcript,
}

impl PendingAnswers<'_> {
    fn append_all(&mut self, results: &[ToolResult]) {
        for (call, result) in std::mem::take(&mut self.calls).iter().zip(results) {
            append(self.transcript, call, result);
        }
    }
}

impl Drop for PendingAnswers<'_> {
    fn drop(&mut self) {
        for call in std::mem::take(&mut self.calls) {
            let result = ToolResult::failure(call.id().clone(), call.tool(), ErrorKind::Cancelled);
            append(self.transcript, &call, &result);
        }
    }
}

fn append(transcript: &mut dyn Transcript, call: &Call, result: &ToolResult) {
    let text: Vec<_> = result.blocks().iter().map(|block| block.as_text().into_owned()).collect();
    transcript.append_tool(result.call_id(), result.tool(), &text.join("\n"));
    transcript.append_tool_execution(call, result);
}
