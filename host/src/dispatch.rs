//! The one road that every call takes, native or WebAssembly: look up, validate, resolve paths, decide, confirm, queue, run, bound, report.

mod approve;
mod input;
mod message;
mod native;
mod question;
mod queue;
mod run;
mod summary;
mod terminal;
#[cfg(test)]
mod tests;
mod transcript;

pub(crate) use question::CONFIRMATION_TIMEOUT;
pub use transcript::Transcript;

use crate::confirm::Confirmer;
use crate::events::{CallSink, Events, Subject};
use crate::execution::{Caller, ToolContext};
use crate::policy::Decision;
use crate::registry::{Registered, Registry};
use crate::sandbox::{Limits, limits};
use crate::session::Session;
use crate::tool::error::named;
use crate::tool::{Call, ErrorKind, ExecutionKind, PermissionReason, SideEffects, ToolResult};
use crate::workspace::HostRules;
use std::collections::BTreeMap;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;
use terminal::Terminal;
use tokio::sync::Semaphore;
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
    pub(crate) rules: Arc<HostRules>,
}

/// What would happen to a call.
pub struct Foreseen {
    /// The tool.
    pub tool: Arc<Registered>,
    /// What the policy says, and by which rule.
    pub decision: Decision,
    /// The paths that it would change, relative to the workspace, as far as its input says.
    pub changes: Vec<String>,
}

/// One call on its way.
struct Road<'a> {
    dispatcher: &'a Dispatcher,
    session: &'a Session,
    message: Option<&'a Semaphore>,
    sink: &'a Arc<CallSink>,
    tool: Arc<Registered>,
    cancel: &'a CancellationToken,
}

impl Dispatcher {
    /// Runs one call to its result. Never fails and never panics: whatever goes wrong is in the result.
    ///
    /// The call runs inside this future, on the caller's own thread. Dropping the future ends the call.
    pub async fn dispatch(&self, session: &Session, call: Call) -> ToolResult {
        self.pass(session, call, None).await
    }

    /// What would happen to a call, without running anything or asking anybody.
    ///
    /// # Errors
    ///
    /// The refusal with which the call would end before the policy is asked.
    pub fn foresee(&self, session: &Session, call: Call) -> Result<Foreseen, ErrorKind> {
        session.workspace().keep_rules_of(&self.rules);
        let tool = self.registry.get(&call.tool).map_err(|missing| ErrorKind::from(&missing))?;
        let input = input::check(tool.definition(), session.workspace(), call.input, call.nulls)?;
        let decision = session.policy().explain(tool.definition());
        let changes = question::projected(tool.definition(), &input);
        Ok(Foreseen { tool, decision, changes })
    }

    async fn pass(&self, session: &Session, call: Call, message: Option<&Semaphore>) -> ToolResult {
        let registered = self.registry.get(&call.tool);
        let class = registered.as_ref().ok().map(|tool| tool.definition().side_effects());
        let terminal = Terminal::new(Arc::new(CallSink::new(self.events.clone(), subject(session, &call, class))));
        let (id, name) = (call.id.clone(), call.tool.clone());
        let span = tracing::error_span!("call", id = %id, tool = %terminal.sink().subject().tool);
        let flight = session.enter(&id);
        let (result, tool) = match registered.map_err(|missing| ErrorKind::from(&missing)) {
            Err(missing) => (Err(missing), None),
            Ok(_) if tokio::runtime::Handle::try_current().is_err() => (Err(no_runtime()), None),
            Ok(tool) => {
                let (sink, cancel) = (terminal.sink(), flight.cancellation());
                let road = Road { dispatcher: self, session, message, sink, tool: tool.clone(), cancel };
                (road.travel(call).instrument(span.clone()).await, Some(tool))
            }
        };
        let result = result.unwrap_or_else(|kind| ToolResult::failure(id, &name, kind));
        span.in_scope(|| run::log(&result));
        terminal.finish(run::signed(result, tool.as_deref()))
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
        let mut steps = pin!(run::caught(self.steps(call)));
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
        let input = input::check(self.tool.definition(), self.session.workspace(), input, nulls)?;
        let approval = approve::approve(self, input).await?;
        let _place = queue::admit(self).await?;
        approval.still_stands()?;
        self.sink.tell_start();
        let session_id = self.session.id().cloned();
        let caller = Caller { call_id: id.clone(), session_id, turn_id, context, metadata };
        let time = self.dispatcher.time_limit(&self.tool, timeout);
        let workspace = self.session.workspace().clone();
        let context = ToolContext::new(caller, workspace, self.cancel.clone(), time, self.sink.clone());
        Ok(run::run(approval, Arc::new(context), self.sink, id).await)
    }
}

fn subject(session: &Session, call: &Call, side_effects: Option<SideEffects>) -> Subject {
    Subject {
        call_id: call.id.clone(),
        session_id: session.id().cloned(),
        turn_id: call.turn_id.clone(),
        tool: named(&call.tool).into(),
        side_effects,
    }
}

fn no_runtime() -> ErrorKind {
    ErrorKind::execution(ExecutionKind::Internal, "a call needs a tokio runtime with its timers enabled")
}

impl From<&crate::registry::ToolNotFound> for ErrorKind {
    fn from(missing: &crate::registry::ToolNotFound) -> Self {
        Self::NotFound { tool: named(missing.name()).to_owned(), nearest: missing.nearest().to_vec() }
    }
}

fn refused(reason: PermissionReason, message: String) -> ErrorKind {
    ErrorKind::denied(reason, message)
}
