//! The one road that every call takes, native or WebAssembly: look up, validate, resolve paths, decide, confirm, queue, run, bound, report.

mod approve;
mod input;
mod late;
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

pub(crate) use late::LateRules;
pub use party::Party;
pub(crate) use question::{CONFIRMATION_TIMEOUT, MAX_CONFIRMATION_TIMEOUT};
pub use threads::CallMode;
pub(crate) use threads::Threads;
pub use transcript::Transcript;

use crate::confirm::Confirmer;
use crate::events::{CallSink, Events, Subject};
use crate::execution::account::Account;
use crate::execution::offload::{Turned, offload};
use crate::execution::owner::input_turns;
use crate::execution::{BoxFuture, Caller, Times, ToolContext, ValidInput};
use crate::policy::Decision;
use crate::registry::{Registered, Registry, ToolNotFound};
use crate::sandbox::{Limits, limits};
use crate::session::Session;
use crate::tool::budget::Budget;
use crate::tool::error::named;
use crate::tool::{Call, Definition, ErrorKind, ExecutionKind, Places, SideEffects, ToolResult};
use crate::workspace::{HostRules, Workspace};
use approve::Approval;
use input::{Counted, Given, Glance, Purse};
use late::Late;
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
    /// The names of the plugins that are being compiled, whose tools nobody knows yet.
    pub(crate) compiling: Arc<dyn Fn() -> Vec<String> + Send + Sync>,
    pub(crate) confirmer: Arc<dyn Confirmer>,
    pub(crate) events: Events,
    pub(crate) limits: Limits,
    pub(crate) tool_timeouts: Arc<BTreeMap<String, ToolTime>>,
    pub(crate) confirmation_timeout: Duration,
    /// The host's own threads, where calls run on those.
    pub(crate) threads: Option<Arc<Threads>>,
    pub(crate) rules: Arc<HostRules>,
    /// Adds to the rules of a workspace what has to be hidden there since the host began.
    pub(crate) late: Late,
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

    /// As [`dispatch_as`](Self::dispatch_as), for a tool that the caller holds: one that is in no registry, or that was
    /// looked up before.
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
        let tool = self.registry.get(&call.tool).map_err(|missing| self.not_found(&missing))?;
        let decision = session.policy().explain(tool.definition(), tool.origin());
        let (time, cancel) = (self.time_limit(&tool, call.timeout), call.cancel.clone());
        let input = run::caught_here(|| self.check_here(&tool, session, call));
        let changes = input.and_then(|input| {
            let (definition, purse) = (tool.definition(), Purse::new(self.limits.account(), time, cancel));
            let changes = question::foreseen(definition, &input, session.workspace(), purse.budget());
            changes.map_err(|why| purse.exhausted(why, definition.side_effects()))?
        });
        Ok(Foreseen { tool, decision, changes })
    }

    /// Waits for a workspace that may hang no longer than a call would.
    fn check_here(&self, tool: &Arc<Registered>, session: &Session, call: Call) -> Result<ValidInput, ErrorKind> {
        let time = self.time_limit(tool, call.timeout);
        let given = Given { input: call.input, nulls: call.nulls, memory: Counted::NotYet };
        let (tool, workspace) = (tool.clone(), session.workspace().clone());
        let purse = Purse::new(self.limits.account(), time, call.cancel);
        let check = {
            let (tool, late) = (tool.clone(), self.late.clone());
            move || {
                if !late.hold_in(&workspace) {
                    // What fails is told by the call itself.
                    let _ = late.add_to(&workspace);
                }
                checked(&tool, &workspace, given, &purse)
            }
        };
        match &self.threads {
            Some(threads) if input::names_paths(tool.definition()) => threads.wait(time, &tool, check),
            _ => check(),
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
        let (result, tool) = match registered.map_err(|missing| self.not_found(&missing)) {
            Err(missing) => (Err(missing), None),
            Ok(_) if tokio::runtime::Handle::try_current().is_err() => (Err(no_runtime()), None),
            Ok(tool) => {
                let (sink, cancel) = (terminal.sink(), flight.cancellation());
                let road = Road { dispatcher: self, session, message, party, sink, tool: tool.clone(), cancel };
                (road.travel(call).instrument(span.clone()).await, Some(tool))
            }
        };
        let result = result.unwrap_or_else(|kind| ToolResult::failure(id, &terminal.sink().subject().tool, kind));
        span.in_scope(|| run::log(&result));
        terminal.finish(run::signed(result.with_places(&self.places), tool.as_deref()))
    }

    fn not_found(&self, missing: &ToolNotFound) -> ErrorKind {
        let (tool, nearest) = (named(missing.name()).to_owned(), missing.nearest().to_vec());
        ErrorKind::NotFound { tool, nearest, compiling: (self.compiling)() }
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
        let operator = || match self.tool_timeouts.get(definition.name().as_str()) {
            Some(ToolTime::Set(time)) => *time,
            Some(ToolTime::AtMost(most)) => own().min(*most),
            None => own(),
        };
        asked.unwrap_or_else(operator).min(limits::MAX_TIMEOUT)
    }
}

/// The time that an operator gives to the calls of one tool.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ToolTime {
    /// This, whatever the tool's own is.
    Set(Duration),
    /// The tool's own, and this where that is longer.
    AtMost(Duration),
}

impl ToolTime {
    pub(crate) fn time(self) -> Duration {
        match self {
            Self::Set(time) | Self::AtMost(time) => time,
        }
    }
}

impl Road<'_> {
    /// Under both ways to cancel: what the caller asked for is passed on to the token that the tool sees.
    fn travel(&self, call: Call) -> impl Future<Output = Result<ToolResult, ErrorKind>> + Send {
        let asked = call.cancel.clone();
        // In a box: the layers that await this future may move it about, and the state of a call is
        // large.
        let steps: BoxFuture<'_, _> = Box::pin(self.steps(call));
        async move {
            if asked.is_cancelled() {
                self.cancel.cancel();
            }
            let mut steps = pin!(run::caught(steps));
            loop {
                tokio::select! {
                    biased;
                    result = &mut steps => return result,
                    () = asked.cancelled(), if !self.cancel.is_cancelled() => self.cancel.cancel(),
                }
            }
        }
    }

    /// Holds the parts of the call one by one: an `async fn` would have room for the call twice.
    fn steps(&self, call: Call) -> impl Future<Output = Result<ToolResult, ErrorKind>> + Send {
        let Call { id, input, nulls, turn_id, context, metadata, timeout, .. } = call;
        async move {
            self.session.workspace().keep_rules_of(&self.dispatcher.rules);
            let time = self.dispatcher.time_limit(&self.tool, timeout);
            let (account, memory) = match &self.party.account {
                Some(account) => (account.clone(), Counted::Already),
                None => (self.dispatcher.limits.account(), Counted::NotYet),
            };
            let given = Given { input, nulls, memory };
            let (input, mut spent) = match self.dispatcher.threads.as_deref() {
                Some(threads) if input::names_paths(self.tool.definition()) => {
                    Box::pin(self.check_away(threads, given, time, account.clone())).await?
                }
                _ => match input::glance(self.tool.definition(), self.session.workspace(), given, &account)? {
                    Glance::Checked(input) => (input, Spent::default()),
                    Glance::Long(given) => Box::pin(self.check_long(given, time, account.clone())).await?,
                },
            };
            let mut approval = approve::approve(self, input.held_in(account.clone())).await?;
            match approval.is_large() {
                false => approval.compact()?,
                true => {
                    (approval, spent) = Box::pin(self.compacted(approval, (time, spent), account.clone())).await?;
                }
            }
            let place = queue::admit(self, spent.waiting).await?;
            approval.still_stands()?;
            self.hide_late(time, &account).await?;
            self.sink.tell_start();
            let session_id = self.session.id().cloned();
            let caller = Caller { call_id: id.clone(), session_id, turn_id, context, metadata };
            let times = Times { run: time, queue: place.patience };
            let workspace = self.session.workspace().clone();
            let mut context = ToolContext::new(caller, workspace, self.cancel.clone(), times, self.sink.clone());
            context.set_class(self.tool.definition().side_effects());
            context.set_account(account);
            if !spent.checking.is_zero() {
                context.set_spent(spent.checking);
            }
            if let Some(client) = &self.party.client {
                context.set_client(client.clone());
            }
            let dispatcher = self.dispatcher;
            let (context, threads) = (Arc::new(context), dispatcher.threads.as_deref());
            Ok(run::run(approval, context, threads, &dispatcher.late, self.sink, id).await)
        }
    }

    /// Checks the input on a thread of the host's own, since its paths are looked up in a workspace that may hang; and says how long that took.
    async fn check_away(
        &self,
        threads: &Threads,
        given: Given,
        time: Duration,
        account: Account,
    ) -> Result<(ValidInput, Spent), ErrorKind> {
        let (tool, workspace, cancel) = (self.tool.clone(), self.session.workspace().clone(), self.cancel.clone());
        let (memory, begun) = (input::waiting(&given, &account)?, Instant::now());
        // The time counts from the moment that the thread begins, and from then on what is checked is counted.
        let check = move || {
            let start = Instant::now();
            drop(memory);
            let input = checked(&tool, &workspace, given, &Purse::new(account, time, cancel))?;
            Ok((input, start.elapsed()))
        };
        let (input, checking) = threads.within(time, &self.tool, self.cancel, check).await?;
        Ok((input, Spent { checking, waiting: begun.elapsed().saturating_sub(checking) }))
    }

    /// Checks an input that may take long away from the runtime's threads; and says how long that took.
    async fn check_long(
        &self,
        given: Given,
        time: Duration,
        account: Account,
    ) -> Result<(ValidInput, Spent), ErrorKind> {
        let (tool, workspace, start) = (self.tool.clone(), self.session.workspace().clone(), Instant::now());
        let purse = Purse::new(account, time, self.cancel.clone());
        let check = move |budget| input::check(tool.definition(), &workspace, given, &budget);
        let input = offload(purse.budget(), input_turns(), check).await;
        let input = input.map_err(|why| purse.exhausted(why, self.tool.definition().side_effects()))?;
        Ok((input?, Spent { checking: start.elapsed(), waiting: Duration::ZERO }))
    }

    /// An approval whose input is large, with the input made small away from the runtime's threads; and the time that
    /// the call has spent then.
    async fn compacted(
        &self,
        mut approval: Approval,
        (time, spent): (Duration, Spent),
        account: Account,
    ) -> Result<(Approval, Spent), ErrorKind> {
        let (purse, start) = (Purse::new(account, time, self.cancel.clone()), Instant::now());
        let compact = move |_| {
            let compacted = approval.compact();
            Ok(compacted.map(|()| approval))
        };
        let approval = offload(purse.budget(), input_turns(), compact).await;
        let approval = approval.map_err(|why| purse.exhausted(why, self.tool.definition().side_effects()))?;
        Ok((approval?, Spent { checking: spent.checking + start.elapsed(), ..spent }))
    }
}

/// What checking an input has taken.
#[derive(Debug, Clone, Copy, Default)]
struct Spent {
    /// Of the time of the call.
    checking: Duration,
    /// Of its patience in queues.
    waiting: Duration,
}

fn checked(tool: &Registered, workspace: &Workspace, given: Given, purse: &Purse) -> Result<ValidInput, ErrorKind> {
    let budget: Arc<dyn Budget> = Arc::new(Turned::begin(purse.budget().clone(), input_turns(), None));
    let checked = input::check(tool.definition(), workspace, given, &budget);
    checked.map_err(|why| purse.exhausted(why, tool.definition().side_effects()))?
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
