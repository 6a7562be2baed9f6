//! The one road that every call takes, native or WebAssembly: look up, validate, resolve paths, decide, confirm, queue, run, bound, report.

mod approve;
mod input;
mod message;
mod native;
mod party;
mod question;
mod queue;
mod run;
mod summary;
mod terminal;
#[cfg(test)]
mod tests;
mod threads;
mod transcript;

pub use party::Party;
pub(crate) use question::CONFIRMATION_TIMEOUT;
pub use threads::CallMode;
pub(crate) use threads::Threads;
pub use transcript::Transcript;

use crate::confirm::Confirmer;
use crate::events::{CallSink, Events, Subject};
use crate::execution::{BoxFuture, Caller, Times, ToolContext, ValidInput};
use crate::policy::Decision;
use crate::registry::{Registered, Registry, ToolNotFound};
use crate::sandbox::{Limits, limits};
use crate::session::Session;
use crate::tool::call::Nulls;
use crate::tool::error::named;
use crate::tool::{Call, CallInput, Definition, ErrorKind, ExecutionKind, Places, SideEffects, ToolResult};
use crate::workspace::HostRules;
use std::collections::BTreeMap;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;
use terminal::Terminal;
use tokio::sync::Semaphore;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use tracing::Instrument as _;

/// Everything that a dispatch needs besides the call and its session. Cloning shares.
#[derive(Clone)]
pub struct Dispatcher {
    pub(crate) registry: Registry,
    pub(crate) confirmer: Arc<dyn Confirmer>,
    pub(crate) events: Events,
    pub(crate) limits: Limits,
    pub(crate) tool_timeouts: Arc<BTreeMap<String, Duration>>,
    pub(crate) confirmation_timeout: Duration,
    /// The host's own threads, where calls run on those.
    pub(crate) threads: Option<Arc<Threads>>,
    pub(crate) rules: Arc<HostRules>,
    pub(crate) places: Arc<Places>,
}

/// What would happen to a call.
pub struct Foreseen {
    /// The tool.
    pub tool: Arc<Registered>,
    /// What the policy says, and by which rule.
    pub decision: Decision,
    /// The paths that it would change, relative to the workspace, as far as its input says; or the refusal of its input, which comes before the policy is asked,
    /// or of a place that is protected by its name, which the tool would meet.
    pub changes: Result<Vec<String>, ErrorKind>,
}

/// A call, and the tool that it is of, where there is one.
type Addressed = (Call, Result<Arc<Registered>, ToolNotFound>);

/// One call on its way.
struct Road<'a> {
    dispatcher: &'a Dispatcher,
    session: &'a Session,
    message: Option<&'a Semaphore>,
    party: &'a Party,
    sink: &'a Arc<CallSink>,
    tool: Arc<Registered>,
    cancel: &'a CancellationToken,
}

impl Dispatcher {
    /// Runs one call to its result. Never fails and never panics: whatever goes wrong is in the result.
    ///
    /// The call runs inside this future, on the caller's own thread, unless the host was built for own threads. Dropping the future ends the call.
    pub async fn dispatch(&self, session: &Session, call: Call) -> ToolResult {
        self.pass(session, self.named(call), None, &Party::default()).await
    }

    /// As [`dispatch`](Self::dispatch), on behalf of somebody who can be asked about this call.
    pub async fn dispatch_as(&self, session: &Session, call: Call, party: &Party) -> ToolResult {
        self.pass(session, self.named(call), None, party).await
    }

    /// As [`dispatch_as`](Self::dispatch_as), for a tool that is in no registry.
    pub(crate) async fn dispatch_to(
        &self,
        session: &Session,
        (call, tool): (Call, Arc<Registered>),
        party: &Party,
    ) -> ToolResult {
        self.pass(session, (call, Ok(tool)), None, party).await
    }

    /// A call with the tool that has its name at this moment.
    fn named(&self, call: Call) -> Addressed {
        let tool = self.registry.get(&call.tool);
        (call, tool)
    }

    /// What would happen to a call, without running anything or asking anybody.
    ///
    /// # Errors
    ///
    /// Where there is no such tool.
    pub fn foresee(&self, session: &Session, call: Call) -> Result<Foreseen, ErrorKind> {
        session.workspace().keep_rules_of(&self.rules);
        let tool = self.registry.get(&call.tool).map_err(|missing| ErrorKind::from(&missing))?;
        let decision = session.policy().explain(tool.definition());
        let input = run::caught_here(|| self.check_here(&tool, session, call));
        let changes = input.and_then(|input| question::foreseen(tool.definition(), &input, session.workspace()));
        Ok(Foreseen { tool, decision, changes })
    }

    /// Waits for a workspace that may hang no longer than a call would.
    fn check_here(&self, tool: &Arc<Registered>, session: &Session, call: Call) -> Result<ValidInput, ErrorKind> {
        let time = self.time_limit(tool, call.timeout);
        match &self.threads {
            Some(threads) if input::names_paths(tool.definition()) => {
                let (tool, workspace) = (tool.clone(), session.workspace().clone());
                threads.wait(time, move || input::check(tool.definition(), &workspace, call.input, call.nulls))
            }
            _ => input::check(tool.definition(), session.workspace(), call.input, call.nulls),
        }
    }

    async fn pass(
        &self,
        session: &Session,
        (call, registered): Addressed,
        message: Option<&Semaphore>,
        party: &Party,
    ) -> ToolResult {
        let subject = subject(session, &call, registered.as_ref().ok().map(|tool| tool.definition()));
        let terminal = Terminal::new(Arc::new(CallSink::new(self.events.clone(), subject)));
        let id = call.id.clone();
        // Costs nothing unless somebody looks so closely; what is an error says itself which call it is of.
        let span = tracing::info_span!("call", id = %id, tool = %terminal.sink().subject().tool);
        let flight = session.enter(&id);
        let (result, tool) = match registered.map_err(|missing| ErrorKind::from(&missing)) {
            Err(missing) => (Err(missing), None),
            Ok(_) if tokio::runtime::Handle::try_current().is_err() => (Err(no_runtime()), None),
            Ok(tool) => {
                let (sink, cancel) = (terminal.sink(), flight.cancellation());
                let road = Road { dispatcher: self, session, message, party, sink, tool: tool.clone(), cancel };
                // In a box: whoever calls may move this future about, at every layer that awaits it, and a call's whole state is some kilobytes.
                let travel: BoxFuture<'_, _> = Box::pin(road.travel(call));
                (travel.instrument(span.clone()).await, Some(tool))
            }
        };
        let result = result.unwrap_or_else(|kind| ToolResult::failure(id, &terminal.sink().subject().tool, kind));
        span.in_scope(|| run::log(&result));
        terminal.finish(run::signed(result.with_places(&self.places), tool.as_deref()))
    }

    /// The caller's word over the operator's for this tool over the plugin's, which may only lower, over the default of the class; at most 600 s.
    pub(crate) fn time_limit(&self, tool: &Registered, asked: Option<Duration>) -> Duration {
        let definition = tool.definition();
        let class = match definition.side_effects() {
            SideEffects::None | SideEffects::Read | SideEffects::Write => limits::TIMEOUT,
            SideEffects::Execute | SideEffects::Network => limits::MAX_TIMEOUT,
        };
        let default = self.limits.timeout.unwrap_or(class);
        let own = || definition.timeout().map_or(default, |own| own.min(default));
        let operator = self.tool_timeouts.get(definition.name().as_str()).copied();
        asked.or(operator).unwrap_or_else(own).min(limits::MAX_TIMEOUT)
    }
}

impl Road<'_> {
    /// Under both ways to cancel: what the caller asked for is passed on to the token that the tool sees.
    async fn travel(&self, call: Call) -> Result<ToolResult, ErrorKind> {
        let asked = call.cancel.clone();
        if asked.is_cancelled() {
            self.cancel.cancel();
        }
        // Pinned here, not handed on by value: each hand that it goes through would have room for it of its own.
        let steps = pin!(self.steps(call));
        let mut steps = pin!(run::caught(steps));
        loop {
            tokio::select! {
                biased;
                result = &mut steps => return result,
                () = asked.cancelled(), if !self.cancel.is_cancelled() => self.cancel.cancel(),
            }
        }
    }

    async fn steps(&self, call: Call) -> Result<ToolResult, ErrorKind> {
        let Call { id, input, nulls, turn_id, context, metadata, timeout, .. } = call;
        self.session.workspace().keep_rules_of(&self.dispatcher.rules);
        let time = self.dispatcher.time_limit(&self.tool, timeout);
        let (input, spent) = match self.dispatcher.threads.as_deref() {
            Some(threads) if input::names_paths(self.tool.definition()) => {
                Box::pin(self.check_away(threads, input, nulls, time)).await?
            }
            _ => (input::check(self.tool.definition(), self.session.workspace(), input, nulls)?, Duration::ZERO),
        };
        let approval = approve::approve(self, input).await?;
        let place = queue::admit(self).await?;
        approval.still_stands()?;
        self.sink.tell_start();
        let session_id = self.session.id().cloned();
        let caller = Caller { call_id: id.clone(), session_id, turn_id, context, metadata };
        let times = Times { run: time, queue: place.patience };
        let workspace = self.session.workspace().clone();
        let context = ToolContext::new(caller, workspace, self.cancel.clone(), times, self.sink.clone());
        let context = Arc::new(context.having_spent(spent).with_client(self.party.client.clone()));
        Ok(run::run(approval, context, self.dispatcher.threads.as_deref(), self.sink, id).await)
    }

    /// Checks the input on a thread of the host's own, since its paths are looked up in a workspace that may hang; and says how long that took.
    async fn check_away(
        &self,
        threads: &Threads,
        input: CallInput,
        nulls: Nulls,
        time: Duration,
    ) -> Result<(ValidInput, Duration), ErrorKind> {
        let (tool, workspace, start) = (self.tool.clone(), self.session.workspace().clone(), Instant::now());
        let check = move || input::check(tool.definition(), &workspace, input, nulls);
        let input = threads.within(time, &self.tool, self.cancel, check).await?;
        Ok((input, start.elapsed()))
    }
}

fn subject(session: &Session, call: &Call, definition: Option<&Definition>) -> Subject {
    Subject {
        call_id: call.id.clone(),
        session_id: session.id().cloned(),
        turn_id: call.turn_id.clone(),
        tool: definition.map_or_else(|| named(&call.tool).into(), |definition| definition.name().to_shared()),
        side_effects: definition.map(Definition::side_effects),
    }
}

fn no_runtime() -> ErrorKind {
    ErrorKind::execution(ExecutionKind::Internal, "a call needs a tokio runtime with its timers enabled")
}

impl From<&ToolNotFound> for ErrorKind {
    fn from(missing: &ToolNotFound) -> Self {
        Self::NotFound { tool: named(missing.name()).to_owned(), nearest: missing.nearest().to_vec() }
    }
}
