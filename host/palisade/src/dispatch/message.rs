//! The calls of one model message: concurrent up to the session's limit, with results in the order
//! of the calls.

use super::admission::Admission;
use super::dispatcher::Dispatcher;
use super::errors::no_runtime;
use super::pipeline::InMessage;
use super::question_order::QuestionOrder;
use super::requester::Requester;
use super::settlement::Settlement;
use crate::execution::account::Owed;
use crate::session::Session;
use crate::tool::{Call, CallId, ErrorKind, ExecutionKind, ToolResult};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
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
        self.begin_message(session, calls, None).results().await
    }

    /// Runs the calls of one message as [`dispatch_all`](Self::dispatch_all), with a decision on
    /// each result.
    pub(crate) async fn dispatch_admitted(
        &self,
        session: &Session,
        calls: Vec<Call>,
        admission: Arc<dyn Admission>,
    ) -> Vec<ToolResult> {
        self.begin_message(session, calls, Some(&admission)).results().await
    }

    /// Starts the calls of one message. Without a runtime, all of them have failed.
    pub(super) fn begin_message(
        &self,
        session: &Session,
        calls: Vec<Call>,
        admission: Option<&Arc<dyn Admission>>,
    ) -> RunningMessage {
        let has_runtime = tokio::runtime::Handle::try_current().is_ok();
        // Calls outside a session share no limit; within a message there always is one.
        let limit = session.concurrency().for_message().map(Arc::new);
        let mut message = RunningMessage::default();
        let turns = QuestionOrder::turns(calls.len());
        for (index, (call, turn)) in calls.into_iter().zip(turns).enumerate() {
            let (id, tool) = (call.id.clone(), call.tool.clone());
            let registered = self.registry.get(&call.tool);
            let requester = Requester::default();
            let terminal = self.begin(session, &call, &registered, &requester);
            let settlement = Arc::new(Settlement::new(terminal.sink().clone()));
            let settles = settlement.clone();
            if has_runtime {
                let (dispatcher, session, limit) = (self.clone(), session.clone(), limit.clone());
                let (admission, is_ended) = (admission.cloned(), message.is_ended.clone());
                message.tasks.spawn(async move {
                    let shared = InMessage {
                        slots: limit.as_deref(),
                        turn: Some(&turn),
                        is_ended: Some(&is_ended),
                    };
                    let run = dispatcher
                        .run_to_result(&session, call, registered, shared, &requester, &terminal);
                    let mut result = run.await;
                    if let Some(admission) = &admission {
                        result = admission.admit(index, result).await;
                    }
                    terminal.settle(result, &settles);
                });
            } else {
                terminal.settle(ToolResult::failure(id.clone(), &tool, no_runtime()), &settles);
            }
            message.calls.push(RunningCall { id, tool, settlement });
        }
        message
    }
}

/// The calls of a message. Dropping it ends those that run.
#[derive(Default)]
pub(super) struct RunningMessage {
    calls: Vec<RunningCall>,
    tasks: JoinSet<()>,
    /// True once the message is ended: a task may be polled while others are aborted.
    is_ended: Arc<AtomicBool>,
    /// The number of calls whose result was returned.
    returned: usize,
    /// The memory of the returned results, which wait for the other calls of the message.
    waiting: Vec<Owed>,
}

struct RunningCall {
    id: CallId,
    tool: String,
    settlement: Arc<Settlement>,
}

impl RunningMessage {
    /// Returns the results of all calls in the order of the calls.
    async fn results(mut self) -> Vec<ToolResult> {
        let mut results = Vec::with_capacity(self.calls.len());
        while let Some(result) = self.next().await {
            results.push(result);
        }
        results
    }

    /// Returns the result of the next call in the order of the calls, once it has ended. `None`
    /// after the last one.
    pub(super) async fn next(&mut self) -> Option<ToolResult> {
        let RunningCall { id, tool, settlement } = self.calls.get(self.returned)?;
        let result = loop {
            if let Some((result, waiting)) = settlement.take() {
                self.waiting.push(waiting);
                break result;
            }
            // A task ends without a result only if the runtime shuts down.
            if self.tasks.join_next().await.is_none() {
                break settlement.close(id, tool, lost());
            }
        };
        self.returned += 1;
        Some(result)
    }

    /// Ends the remaining calls, and returns their results in the order of the calls: a call that
    /// has ended keeps its result, and the others are cancelled.
    pub(super) fn end(&mut self) -> impl Iterator<Item = ToolResult> {
        self.is_ended.store(true, Ordering::SeqCst);
        self.tasks.abort_all();
        let calls = self.calls.drain(..).skip(self.returned);
        calls.map(|call| call.settlement.close(&call.id, &call.tool, ErrorKind::Cancelled))
    }
}

impl Drop for RunningMessage {
    fn drop(&mut self) {
        // The tasks are aborted after this.
        self.is_ended.store(true, Ordering::SeqCst);
    }
}

fn lost() -> ErrorKind {
    ErrorKind::execution(ExecutionKind::Internal, "the call was lost with its runtime")
}
