//! Calls that a running tool makes of others. Each is a call like any other, on behalf of the same
//! caller: it passes every stage, and takes its time, its memory and its file quotas from the call
//! that makes it. It takes neither a slot of the session nor a thread of its calls, which the call
//! that makes it may hold: so no call waits for a place that is held until it ends.

use super::dispatcher::Dispatcher;
use super::parent_call::ParentCall;
use super::pipeline::{InMessage, Pipeline};
use super::program_record::ProgramRecord;
use super::question_order::{QuestionOrder, QuestionTurn};
use super::requester::Requester;
use crate::confirm::CallingTool;
use crate::execution::account::Account;
use crate::execution::{
    BoxFuture, NESTED_CALLS, NestedCall, NestedExit, Nesting, Report, ToolCaller, ToolContext,
};
use crate::registry::{Registered, ToolNotFound};
use crate::session::Session;
use crate::tool::error::named;
use crate::tool::{
    Call, CallId, CallInput, Definition, ErrorClass, ErrorKind, Limit, ToolPattern, ToolResult,
    UNLISTED,
};
use crate::workspace::{Quotas, SharedQuotas};
use std::future::poll_fn;
use std::pin::pin;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::Poll;
use tokio::runtime::Handle;
use tokio::sync::Semaphore;
use tokio_util::sync::CancellationToken;

/// The most calls of one call that run at once.
const AT_ONCE: usize = 4;

/// The calls of one running tool.
pub(super) struct NestedCaller {
    dispatcher: Dispatcher,
    session: Session,
    requester: Requester,
    parent: ParentCall,
    turn_id: Option<Arc<str>>,
    cancel: CancellationToken,
    made: AtomicUsize,
    has_advised: AtomicBool,
    report: Mutex<Report>,
    /// The runtime of the outermost call, unless the embedder polls calls outside of one.
    runtime: Option<Handle>,
}

impl NestedCaller {
    /// Creates the calls of the tool whose context this is.
    pub(super) fn new(pipeline: &Pipeline<'_>, context: &ToolContext) -> Self {
        let dispatcher = pipeline.dispatcher;
        let caller = CallingTool {
            call_id: context.caller().call_id.clone(),
            tool: pipeline.tool.definition().name().to_string(),
            plugin: pipeline.tool.origin().plugin().map(str::to_owned),
            number: 0,
            place: None,
        };
        let record = pipeline.requester.record.as_ref();
        let fresh = || Arc::new(SharedQuotas::new(Quotas::default()));
        let nesting = Nesting { quotas: record.map_or_else(fresh, |record| record.quotas()) };
        let clock = context.clock().clone();
        Self {
            dispatcher: Dispatcher {
                threads: dispatcher.nested_threads.clone(),
                ..dispatcher.clone()
            },
            session: pipeline.session.clone(),
            requester: pipeline.requester.for_nested(),
            parent: ParentCall {
                caller,
                stops: pipeline.stops.clone(),
                clock,
                account: context.account(),
                nesting,
            },
            turn_id: context.caller().turn_id.clone(),
            cancel: context.cancel().clone(),
            made: AtomicUsize::new(0),
            has_advised: AtomicBool::new(false),
            report: Mutex::default(),
            runtime: Handle::try_current().ok(),
        }
    }

    /// Returns the tool of this name, if the session lists it and it is granted.
    fn find(&self, name: &str, granted: &[ToolPattern]) -> Result<Arc<Registered>, ToolNotFound> {
        match self.dispatcher.registry.get(name) {
            Ok(tool) if self.may_call(&tool, granted) => Ok(tool),
            Ok(_) | Err(_) => {
                let listed = self.list(granted);
                Err(ToolNotFound::among(name, listed.iter().map(|tool| tool.name().as_str())))
            }
        }
    }

    fn may_call(&self, tool: &Registered, granted: &[ToolPattern]) -> bool {
        let name = tool.definition().name().as_str();
        granted.iter().any(|pattern| pattern.matches(name))
            && self.dispatcher.floor.lists_to_programs(&self.session, tool)
    }

    /// Makes one call. Its id begins with that of the call that makes it.
    async fn one(
        &self,
        granted: &[ToolPattern],
        call: NestedCall,
        turn: QuestionTurn,
        slots: &Semaphore,
    ) -> Result<ToolResult, NestedExit> {
        let number = self.made.fetch_add(1, Ordering::Relaxed) + 1;
        let id = CallId::new(&format!("{}.{number}", self.parent.caller.call_id));
        if number > NESTED_CALLS {
            let limit = Limit::NestedCalls;
            let kind = ErrorKind::ResourceExhausted { limit, value: NESTED_CALLS as u64 };
            return Ok(ToolResult::failure(id, named(&call.tool), kind));
        }
        let NestedCall { tool: name, input, place } = call;
        if let Some(result) = self.earlier(number, &name, &input)? {
            self.note(&result);
            return Ok(result);
        }
        let tool = self.find(&name, granted);
        let caller = CallingTool { place, number, ..self.parent.caller.clone() };
        let parent = ParentCall { caller, ..self.parent.clone() };
        let requester = Requester { parent: Some(parent), ..self.requester.clone() };
        let call = Call {
            turn_id: self.turn_id.clone(),
            timeout: tool
                .as_ref()
                .ok()
                .map(|tool| self.dispatcher.time_limit(tool, None).min(self.parent.clock.left())),
            ..Call::known_as(id, name, CallInput::Text(input), self.cancel.clone())
        };
        let message = InMessage { slots: Some(slots), turn: Some(&turn), is_ended: None };
        let called = self.dispatcher.run_call(&self.session, call, tool, message, &requester);
        let result = Box::pin(called).await;
        if let Some(record) = &self.requester.record {
            record.keep(number, &result, || self.account_of_record());
        }
        if result.error().is_some_and(|error| matches!(error.kind(), ErrorKind::AwaitsClient)) {
            return Err(NestedExit::AwaitsClient);
        }
        self.advise(&result);
        self.note(&result);
        Ok(result)
    }

    /// Returns the account of the results that outlive the call: they count for its client.
    fn account_of_record(&self) -> Account {
        let limits = &self.dispatcher.limits;
        match self.parent.account.client() {
            Some(client) => Account::of_client(limits.of_memory(), client.clone()),
            None => limits.account(),
        }
    }

    /// Tells the operator, once for each caller, what would let a refused call run. The caller gets
    /// the reason alone, and may hide it.
    fn advise(&self, result: &ToolResult) {
        let Some(error) = result.error() else { return };
        let is_refusal = error.class() == ErrorClass::PermissionDenied;
        if let Some(advice) = error.advice().filter(|_| is_refusal)
            && !self.has_advised.swap(true, Ordering::Relaxed)
        {
            let (caller, reason) = (&self.parent.caller.tool, error.reason());
            tracing::warn!("a call that `{caller}` made was refused: {reason}; {advice}");
        }
    }

    /// Returns the result of the call of this number in an earlier run of the tool.
    fn earlier(
        &self,
        number: usize,
        tool: &str,
        input: &str,
    ) -> Result<Option<ToolResult>, NestedExit> {
        let Some(record) = &self.requester.record else { return Ok(None) };
        let begun = record.begin(number, ProgramRecord::identify(tool, input));
        begun.map_err(|_| NestedExit::OtherCall)
    }

    /// Adds what a call has left to the report of the tool.
    fn note(&self, result: &ToolResult) {
        let unlisted = result.metadata.get(UNLISTED).and_then(serde_json::Value::as_u64);
        let report = Report {
            usage: result.usage,
            files_modified: result.files_modified.clone(),
            files_unlisted: unlisted.unwrap_or_default(),
            stopped: None,
        };
        self.report.lock().unwrap_or_else(PoisonError::into_inner).add(report);
    }
}

impl ToolCaller for NestedCaller {
    fn list(&self, granted: &[ToolPattern]) -> Vec<Definition> {
        let tools = self.dispatcher.registry.tools().into_iter();
        let may = tools.filter(|tool| self.may_call(tool, granted));
        may.map(|tool| tool.definition().clone()).collect()
    }

    fn call<'a>(
        &'a self,
        granted: &'a [ToolPattern],
        calls: Vec<NestedCall>,
    ) -> BoxFuture<'a, Result<Vec<ToolResult>, NestedExit>> {
        Box::pin(async move {
            let slots = Semaphore::new(AT_ONCE);
            let turns = QuestionOrder::turns(calls.len());
            let running = calls.into_iter().zip(turns).map(|(call, turn)| {
                let running = self.one(granted, call, turn, &slots);
                Box::pin(running) as BoxFuture<'_, Result<ToolResult, NestedExit>>
            });
            // All of them end first, so that each has its result in the next run.
            let all = within(self.runtime.as_ref(), all(running.collect()));
            all.await.into_iter().collect()
        })
    }

    fn report(&self) -> Report {
        self.report.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

/// Polls calls within the runtime of the outermost call. The thread of the tool that makes them may
/// have a runtime of its own, which has timers alone and ends with the tool: a native tool would
/// find no sockets and no processes there.
async fn within<T>(runtime: Option<&Handle>, calls: impl Future<Output = T>) -> T {
    let mut calls = pin!(calls);
    poll_fn(|cx| {
        let _entered = runtime.map(Handle::enter);
        calls.as_mut().poll(cx)
    })
    .await
}

/// Runs futures at the same time, in this task, so that dropping it ends them at once.
async fn all<T>(futures: Vec<BoxFuture<'_, T>>) -> Vec<T> {
    let mut running: Vec<_> = futures.into_iter().map(Ok).collect::<Vec<Result<_, Option<T>>>>();
    poll_fn(|cx| {
        let mut state = Poll::Ready(());
        for slot in &mut running {
            let Ok(future) = slot else { continue };
            match future.as_mut().poll(cx) {
                Poll::Ready(done) => *slot = Err(Some(done)),
                Poll::Pending => state = Poll::Pending,
            }
        }
        state
    })
    .await;
    running.into_iter().filter_map(|slot| slot.err().flatten()).collect()
}
