//! The pipeline of every call, native or WebAssembly: look up, validate, resolve paths, decide,
//! confirm, queue, run, bound, report.

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

/// The dispatcher: everything that a call needs besides its session. Clones share it.
#[derive(Clone)]
pub struct Dispatcher {
    pub(crate) registry: Registry,
    /// Returns the names of the plugins that are still compiling, whose tools are not known yet.
    pub(crate) compiling: Arc<dyn Fn() -> Vec<String> + Send + Sync>,
    pub(crate) confirmer: Arc<dyn Confirmer>,
    pub(crate) events: Events,
    pub(crate) limits: Limits,
    pub(crate) tool_timeouts: Arc<BTreeMap<String, ToolTime>>,
    pub(crate) confirmation_timeout: Duration,
    /// The host's own threads, if calls run on them.
    pub(crate) threads: Option<Arc<Threads>>,
    pub(crate) rules: Arc<HostRules>,
    /// Adds rules for paths that must be hidden from tools since the host started.
    pub(crate) late: Late,
    pub(crate) places: Arc<Places>,
}

/// The predicted treatment of a call.
pub struct Explanation {
    /// The tool.
    pub tool: Arc<Registered>,
    /// The policy's decision and its rule.
    pub decision: Decision,
    /// The paths that the call would change, relative to the workspace, as far as its input tells.
    /// An error is the refusal of the input, which precedes the policy, or of a write-protected
    /// path.
    pub changes: Result<Vec<String>, ErrorKind>,
}

/// A call with the result of looking up its tool.
type Addressed = (Call, Result<Arc<Registered>, ToolNotFound>);

/// The pipeline of one call.
struct Road<'a> {
    dispatcher: &'a Dispatcher,
    session: &'a Session,
    message: Option<&'a Semaphore>,
    party: &'a Party,
    sink: &'a Arc<CallSink>,
    tool: Arc<Registered>,
    /// The time limit of the call.
    time: Duration,
    cancel: &'a CancellationToken,
}

impl Dispatcher {
    /// Runs one call to its result. It never fails and never panics: every error becomes a result.
    ///
    /// The call runs inside this future on the caller's thread, unless the host uses its own
    /// threads. Dropping the future ends the call.
    pub async fn dispatch(&self, session: &Session, call: Call) -> ToolResult {
        self.pass(session, self.named(call), None, &Party::default()).await
    }

    /// Like [`dispatch`](Self::dispatch), with a requester that can be asked about the call.
    pub async fn dispatch_as(&self, session: &Session, call: Call, party: &Party) -> ToolResult {
        self.pass(session, self.named(call), None, party).await
    }

    /// Like [`dispatch_as`](Self::dispatch_as), for a tool that the caller has already looked up or
    /// that is in no registry.
    pub(crate) async fn dispatch_to(
        &self,
        session: &Session,
        (call, tool): (Call, Arc<Registered>),
        party: &Party,
    ) -> ToolResult {
        self.pass(session, (call, Ok(tool)), None, party).await
    }

    /// Looks up the tool that currently has the call's name.
    fn named(&self, call: Call) -> Addressed {
        let tool = self.registry.get(&call.tool);
        (call, tool)
    }

    /// Predicts the treatment of a call without running it or asking for confirmation.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::NotFound`] if there is no such tool.
    pub fn explain(&self, session: &Session, call: Call) -> Result<Explanation, ErrorKind> {
        session.workspace().keep_rules_of(&self.rules);
        let tool = self.registry.get(&call.tool).map_err(|missing| self.not_found(&missing))?;
        let decision = session.policy().explain(tool.definition(), tool.origin());
        let (time, cancel) = (self.time_limit(&tool, call.timeout), call.cancel.clone());
        let input = run::caught_here(|| self.check_here(&tool, session, call));
        let changes = input.and_then(|input| {
            let (definition, purse) =
                (tool.definition(), Purse::new(self.limits.account(), time, cancel));
            let changes = question::projected_changes(
                definition,
                &input,
                session.workspace(),
                purse.budget(),
            );
            changes.map_err(|why| purse.exhausted(why, definition.side_effects()))?
        });
        Ok(Explanation { tool, decision, changes })
    }

    /// Checks the input synchronously. A thread is waited for as in a call, and an unresponsive
    /// workspace blocks it no longer than the call's timeout.
    fn check_here(
        &self,
        tool: &Arc<Registered>,
        session: &Session,
        call: Call,
    ) -> Result<ValidInput, ErrorKind> {
        let time = self.time_limit(tool, call.timeout);
        let given = Given { input: call.input, nulls: call.nulls, memory: Counted::NotYet };
        let (tool, workspace, cancel) = (tool.clone(), session.workspace().clone(), call.cancel);
        let account = self.limits.account();
        let check = {
            let (tool, late, cancel) = (tool.clone(), self.late.clone(), cancel.clone());
            move || {
                // The time limit applies from the start of the work.
                let purse = Purse::new(account, time, cancel);
                if !late.hold_in(&workspace) {
                    // The call itself reports an error here.
                    let _ = late.add_to(&workspace);
                }
                checked(&tool, &workspace, given, &purse)
            }
        };
        match &self.threads {
            Some(threads) if input::names_paths(tool.definition()) => {
                threads.wait(time, &tool, &cancel, check)
            }
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
        let subject =
            subject(session, &call, registered.as_ref().ok().map(|tool| tool.definition()));
        let terminal = Terminal::new(Arc::new(CallSink::new(self.events.clone(), subject)));
        let id = call.id.clone();
        // A disabled span costs nothing. Error events carry the call's id themselves.
        let span = tracing::info_span!("call", id = %id, tool = %terminal.sink().subject().tool);
        let flight = session.enter(&id);
        let (result, tool) = match registered.map_err(|missing| self.not_found(&missing)) {
            Err(missing) => (Err(missing), None),
            Ok(_) if tokio::runtime::Handle::try_current().is_err() => (Err(no_runtime()), None),
            Ok(tool) => {
                let (sink, cancel) = (terminal.sink(), flight.cancellation());
                let time = self.time_limit(&tool, call.timeout);
                let road = Road {
                    dispatcher: self,
                    session,
                    message,
                    party,
                    sink,
                    tool: tool.clone(),
                    time,
                    cancel,
                };
                (road.travel(call).instrument(span.clone()).await, Some(tool))
            }
        };
        let result = result
            .unwrap_or_else(|kind| ToolResult::failure(id, &terminal.sink().subject().tool, kind));
        span.in_scope(|| run::log(&result));
        terminal.finish(run::signed(result.with_places(&self.places), tool.as_deref()))
    }

    fn not_found(&self, missing: &ToolNotFound) -> ErrorKind {
        let (tool, nearest) = (named(missing.name()).to_owned(), missing.nearest().to_vec());
        ErrorKind::NotFound { tool, nearest, compiling: (self.compiling)() }
    }

    /// Returns the time limit of a call, at most 600 s. Precedence: the caller's value, the
    /// operator's for this tool, the plugin's (which can only lower the default), the class's
    /// default.
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

/// The operator's time limit for the calls of one tool.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ToolTime {
    /// This limit, regardless of the tool's own.
    Set(Duration),
    /// The tool's own limit, capped at this one.
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
    /// Runs the pipeline until its end or a cancellation. A cancellation by the caller's token is
    /// forwarded to the tool's token.
    fn travel(&self, call: Call) -> impl Future<Output = Result<ToolResult, ErrorKind>> + Send {
        let asked = call.cancel.clone();
        // Boxed, because the state of a call is large and the futures that contain this one may be
        // moved.
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

    /// Runs the stages. A plain `async fn` would hold the call twice, so it is destructured first.
    fn steps(&self, call: Call) -> impl Future<Output = Result<ToolResult, ErrorKind>> + Send {
        let Call { id, input, nulls, turn_id, context, metadata, .. } = call;
        async move {
            self.session.workspace().keep_rules_of(&self.dispatcher.rules);
            let (account, memory) = match &self.party.account {
                Some(account) => (account.clone(), Counted::Already),
                None => (self.dispatcher.limits.account(), Counted::NotYet),
            };
            let given = Given { input, nulls, memory };
            let (input, mut spent) = match self.dispatcher.threads.as_deref() {
                Some(threads) if input::names_paths(self.tool.definition()) => {
                    Box::pin(self.check_away(threads, given, account.clone())).await?
                }
                _ => match input::glance(
                    self.tool.definition(),
                    self.session.workspace(),
                    given,
                    &account,
                )? {
                    Glance::Checked(input) => (input, Spent::default()),
                    Glance::Long(given) => {
                        Box::pin(self.check_long(given, account.clone())).await?
                    }
                },
            };
            let mut approval = approve::approve(self, input.held_in(account.clone())).await?;
            match approval.is_large() {
                false => approval.compact()?,
                true => {
                    (approval, spent) =
                        Box::pin(self.compacted(approval, spent, account.clone())).await?;
                }
            }
            let place = queue::admit(self, spent.waiting).await?;
            approval.still_stands()?;
            self.hide_late(&account).await?;
            self.sink.tell_start();
            let session_id = self.session.id().cloned();
            let caller = Caller { call_id: id.clone(), session_id, turn_id, context, metadata };
            let times = Times { run: self.time, queue: place.patience };
            let workspace = self.session.workspace().clone();
            let mut context =
                ToolContext::new(caller, workspace, self.cancel.clone(), times, self.sink.clone());
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

    /// Checks the input on the host's own threads, because its paths are looked up in a workspace
    /// that may not respond. Returns the time spent as well.
    async fn check_away(
        &self,
        threads: &Threads,
        given: Given,
        account: Account,
    ) -> Result<(ValidInput, Spent), ErrorKind> {
        let (tool, workspace, cancel) =
            (self.tool.clone(), self.session.workspace().clone(), self.cancel.clone());
        let (memory, begun, time) = (input::waiting(&given, &account)?, Instant::now(), self.time);
        // The time limit and the memory account apply from the start of the thread's work.
        let check = move || {
            let start = Instant::now();
            drop(memory);
            let input = checked(&tool, &workspace, given, &Purse::new(account, time, cancel))?;
            Ok((input, start.elapsed()))
        };
        let (input, checking) = threads.within(time, &self.tool, self.cancel, check).await?;
        Ok((input, Spent { checking, waiting: begun.elapsed().saturating_sub(checking) }))
    }

    /// Checks a long input outside the runtime's threads. Returns the time spent as well.
    async fn check_long(
        &self,
        given: Given,
        account: Account,
    ) -> Result<(ValidInput, Spent), ErrorKind> {
        let (tool, workspace, start) =
            (self.tool.clone(), self.session.workspace().clone(), Instant::now());
        let purse = Purse::new(account, self.time, self.cancel.clone());
        let check = move |budget| input::check(tool.definition(), &workspace, given, &budget);
        let input = offload(purse.budget(), input_turns(), check).await;
        let input =
            input.map_err(|why| purse.exhausted(why, self.tool.definition().side_effects()))?;
        Ok((input?, Spent { checking: start.elapsed(), waiting: Duration::ZERO }))
    }

    /// Compacts a large input outside the runtime's threads. Returns the time spent as well.
    async fn compacted(
        &self,
        mut approval: Approval,
        spent: Spent,
        account: Account,
    ) -> Result<(Approval, Spent), ErrorKind> {
        let (purse, start) = (Purse::new(account, self.time, self.cancel.clone()), Instant::now());
        let compact = move |_| {
            let compacted = approval.compact();
            Ok(compacted.map(|()| approval))
        };
        let approval = offload(purse.budget(), input_turns(), compact).await;
        let approval =
            approval.map_err(|why| purse.exhausted(why, self.tool.definition().side_effects()))?;
        Ok((approval?, Spent { checking: spent.checking + start.elapsed(), ..spent }))
    }
}

/// The time spent on checking an input.
#[derive(Debug, Clone, Copy, Default)]
struct Spent {
    /// Counted towards the time limit of the call.
    checking: Duration,
    /// Counted towards the time limit of the queues.
    waiting: Duration,
}

fn checked(
    tool: &Registered,
    workspace: &Workspace,
    given: Given,
    purse: &Purse,
) -> Result<ValidInput, ErrorKind> {
    let budget: Arc<dyn Budget> =
        Arc::new(Turned::begin(purse.budget().clone(), input_turns(), None));
    let checked = input::check(tool.definition(), workspace, given, &budget);
    checked.map_err(|why| purse.exhausted(why, tool.definition().side_effects()))?
}

fn subject(session: &Session, call: &Call, definition: Option<&Definition>) -> Subject {
    Subject {
        call_id: call.id.clone(),
        session_id: session.id().cloned(),
        turn_id: call.turn_id.clone(),
        tool: definition
            .map_or_else(|| named(&call.tool).into(), |definition| definition.name().to_shared()),
        side_effects: definition.map(Definition::side_effects),
    }
}

fn no_runtime() -> ErrorKind {
    ErrorKind::execution(
        ExecutionKind::Internal,
        "a call needs a tokio runtime with its timers enabled",
    )
}
