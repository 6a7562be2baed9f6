//! The pipeline of every call, native or WebAssembly: look up, validate, resolve paths, decide,
//! confirm, queue, run, bound, report.

mod approve;
mod debug;
mod explain;
mod input;
mod late;
mod message;
mod native;
mod party;
mod pipeline;
pub(crate) mod question;
mod queue;
mod run;
mod summary;
mod terminal;
#[cfg(test)]
mod tests;
mod threads;
mod transcript;

pub use explain::Explanation;
pub(crate) use late::LateRules;
pub use party::Party;
pub(crate) use question::{CONFIRMATION_TIMEOUT, MAX_CONFIRMATION_TIMEOUT};
pub use threads::CallMode;
pub(crate) use threads::Threads;
pub use transcript::Transcript;

use crate::confirm::Confirmer;
use crate::events::{CallSink, Events, Subject};
use crate::registry::{Registered, Registry, ToolNotFound};
use crate::sandbox::{Limits, limits};
use crate::session::Session;
use crate::tool::error::named;
use crate::tool::{Call, Definition, ErrorKind, ExecutionKind, Places, SideEffects, ToolResult};
use crate::workspace::Protection;
use late::Late;
use pipeline::Road;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;
use terminal::Terminal;
use tokio::sync::Semaphore;
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
    pub(crate) rules: Arc<Protection>,
    /// Adds rules for paths that must be hidden from tools since the host started.
    pub(crate) late: Late,
    pub(crate) places: Arc<Places>,
}

impl Dispatcher {
    /// Runs one call to its result. It never fails and never panics: every error becomes a result.
    ///
    /// The call runs inside this future on the caller's thread, unless the host uses its own
    /// threads. Dropping the future ends the call.
    pub async fn dispatch(&self, session: &Session, call: Call) -> ToolResult {
        let tool = self.registry.get(&call.tool);
        self.pass(session, call, tool, None, &Party::default()).await
    }

    /// Like [`dispatch`](Self::dispatch), with a requester that can be asked about the call.
    pub async fn dispatch_as(&self, session: &Session, call: Call, party: &Party) -> ToolResult {
        let tool = self.registry.get(&call.tool);
        self.pass(session, call, tool, None, party).await
    }

    /// Like [`dispatch_as`](Self::dispatch_as), for a tool that the caller has already looked up or
    /// that is in no registry.
    pub(crate) async fn dispatch_to(
        &self,
        session: &Session,
        call: Call,
        tool: Arc<Registered>,
        party: &Party,
    ) -> ToolResult {
        self.pass(session, call, Ok(tool), None, party).await
    }

    /// Passes a call through its pipeline and sends its terminal event.
    async fn pass(
        &self,
        session: &Session,
        call: Call,
        registered: Result<Arc<Registered>, ToolNotFound>,
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
                let road = Road {
                    dispatcher: self,
                    session,
                    message,
                    party,
                    sink: terminal.sink(),
                    tool: tool.clone(),
                    time: self.time_limit(&tool, call.timeout),
                    cancel: flight.cancellation(),
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
        ErrorKind::NotFound {
            tool: named(missing.name()).to_owned(),
            nearest: missing.nearest().to_vec(),
            compiling: (self.compiling)(),
        }
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
pub enum ToolTime {
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
