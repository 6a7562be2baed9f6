//! The calls of one model message: concurrent up to the session's limit, with results in the order
//! of the calls.

use super::dispatcher::Dispatcher;
use super::errors::no_runtime;
use super::requester::Requester;
use crate::execution::account::Owed;
use crate::session::Session;
use crate::tool::{Call, CallId, ErrorKind, ExecutionKind, ToolResult};
use std::sync::Arc;
use tokio::task::JoinSet;

impl Dispatcher {
    /// Runs the calls of one message, each in a task of its own, and returns their results in the
    /// order of the calls.
    ///
    /// Dropping the future ends all of them.
    pub(crate) async fn dispatch_all(
        &self,
        session: &Session,
        calls: Vec<Call>,
    ) -> Vec<ToolResult> {
        let names: Vec<_> = calls.iter().map(|call| (call.id.clone(), call.tool.clone())).collect();
        if tokio::runtime::Handle::try_current().is_err() {
            return names
                .iter()
                .map(|(id, tool)| ToolResult::failure(id.clone(), tool, no_runtime()))
                .collect();
        }
        // Calls outside a session share no limit; within a message there always is one.
        let message = session.concurrency().for_message().map(Arc::new);
        let mut tasks = JoinSet::new();
        for (index, call) in calls.into_iter().enumerate() {
            let dispatcher = self.clone();
            let session = session.clone();
            let message = message.clone();
            tasks.spawn(async move {
                let tool = dispatcher.registry.get(&call.tool);
                let message = message.as_deref();
                let result =
                    dispatcher.run_call(&session, call, tool, message, &Requester::default()).await;
                FinishedCall { index, waiting: Owed::new(result.footprint()), result }
            });
        }
        in_order(tasks, &names).await
    }
}

/// A call of a message that has ended.
struct FinishedCall {
    /// Its index in the message.
    index: usize,
    result: ToolResult,
    /// The memory of the result, which waits for the other calls of the message.
    waiting: Owed,
}

async fn in_order(mut tasks: JoinSet<FinishedCall>, names: &[(CallId, String)]) -> Vec<ToolResult> {
    let mut results: Vec<Option<ToolResult>> = names.iter().map(|_| None).collect();
    let mut all_waiting = Vec::new();
    while let Some(joined) = tasks.join_next().await {
        if let Ok(FinishedCall { index, result, waiting }) = joined
            && let Some(slot) = results.get_mut(index)
        {
            *slot = Some(result);
            all_waiting.push(waiting);
        }
    }
    // A task ends without a result only if the runtime shuts down.
    let lost =
        || ErrorKind::execution(ExecutionKind::Internal, "the call was lost with its runtime");
    let result = |(slot, (id, tool)): (Option<ToolResult>, &(CallId, String))| {
        slot.unwrap_or_else(|| ToolResult::failure(id.clone(), tool, lost()))
    };
    results.into_iter().zip(names).map(result).collect()
}
