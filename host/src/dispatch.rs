//! The one road that every call takes, native or WebAssembly: look up, validate, resolve paths, decide, confirm, run, bound, report.

mod approve;
mod input;
mod run;
mod terminal;
#[cfg(test)]
mod tests;

pub(crate) use approve::CONFIRMATION_TIMEOUT;

use crate::confirm::Confirmer;
use crate::events::{Event, EventSink, Events, Subject};
use crate::execution::{Caller, Silent, Sink, ToolContext};
use crate::registry::{Origin, Registered, Registry};
use crate::sandbox::{Limits, limits};
use crate::session::Session;
use crate::tool::error::named;
use crate::tool::{Call, ErrorKind, ExecutionKind, SideEffects, ToolResult};
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;
use terminal::Terminal;
use tokio_util::sync::CancellationToken;

/// Everything that a dispatch needs besides the call and its session.
#[derive(Clone)]
pub struct Dispatcher {
    pub(crate) registry: Registry,
    pub(crate) confirmer: Arc<dyn Confirmer>,
    pub(crate) events: Events,
    pub(crate) limits: Limits,
    pub(crate) confirmation_timeout: Duration,
}

impl Dispatcher {
    /// Runs one call to its result. Never fails and never panics: whatever goes wrong is in the result.
    ///
    /// The call runs inside this future, on the caller's own thread. Dropping the future ends the call.
    pub async fn dispatch(&self, session: &Session, call: Call) -> ToolResult {
        let registered = self.registry.get(&call.tool);
        let class = registered.as_ref().ok().map(|tool| tool.definition().side_effects());
        let terminal = Terminal::new(self.events.clone(), || subject(session, &call, class));
        let tool = match registered {
            Ok(tool) => tool,
            Err(missing) => {
                let kind =
                    ErrorKind::NotFound { tool: named(missing.name()).to_owned(), nearest: missing.nearest().to_vec() };
                return terminal.finish(ToolResult::failure(call.id, &call.tool, kind));
            }
        };
        let (id, name) = (call.id.clone(), call.tool.clone());
        if tokio::runtime::Handle::try_current().is_err() {
            let kind =
                ErrorKind::execution(ExecutionKind::Internal, "a call needs a tokio runtime with its timers enabled");
            return terminal.finish(ToolResult::failure(id, &name, kind));
        }
        let result = match self.road(session, call, &tool, &terminal).await {
            Ok(result) => result,
            Err(kind) => ToolResult::failure(id, &name, kind),
        };
        terminal.finish(signed(result, tool.origin()))
    }

    /// The road under both cancellation scopes: the call's own token is passed on to the one that the tool sees, a child of the session's.
    async fn road(
        &self,
        session: &Session,
        call: Call,
        tool: &Arc<Registered>,
        terminal: &Terminal,
    ) -> Result<ToolResult, ErrorKind> {
        let (asked, cancel) = (call.cancel.clone(), session.cancellation().child_token());
        if asked.is_cancelled() {
            cancel.cancel();
        }
        let mut steps = pin!(run::caught(self.steps(session, call, tool, terminal, &cancel)));
        loop {
            tokio::select! {
                biased;
                result = &mut steps => return result,
                () = asked.cancelled(), if !cancel.is_cancelled() => cancel.cancel(),
            }
        }
    }

    async fn steps(
        &self,
        session: &Session,
        call: Call,
        tool: &Arc<Registered>,
        terminal: &Terminal,
        cancel: &CancellationToken,
    ) -> Result<ToolResult, ErrorKind> {
        let input = input::check(tool.definition(), session.workspace(), call.input)?;
        let asking = approve::Asking { confirmer: self.confirmer.as_ref(), timeout: self.confirmation_timeout };
        approve::approve(asking, session, &call.id, tool, &input, cancel).await?;
        self.events.emit(|| Event::Called(terminal.subject()));
        let id = call.id.clone();
        let caller = Caller {
            call_id: call.id,
            session_id: session.id().cloned(),
            turn_id: call.turn_id,
            context: call.context,
            metadata: call.metadata,
        };
        let time = self.time_limit(tool, call.timeout);
        let context = ToolContext::new(caller, session.workspace().clone(), cancel.clone(), time, self.sink(terminal));
        Ok(run::run(tool, input, &context, id).await)
    }

    fn sink(&self, terminal: &Terminal) -> Arc<dyn Sink> {
        if self.events.is_watched() {
            Arc::new(EventSink { events: self.events.clone(), subject: terminal.subject() })
        } else {
            silent()
        }
    }

    /// Caller over operator over plugin (which may only lower) over the default of the class; at most 600 s.
    pub(crate) fn time_limit(&self, tool: &Registered, asked: Option<Duration>) -> Duration {
        let class = match tool.definition().side_effects() {
            SideEffects::None | SideEffects::Read | SideEffects::Write => limits::TIMEOUT,
            SideEffects::Execute | SideEffects::Network => limits::MAX_TIMEOUT,
        };
        let default = self.limits.timeout.unwrap_or(class);
        let own = tool.definition().timeout().map_or(default, |own| own.min(default));
        asked.unwrap_or(own).min(limits::MAX_TIMEOUT)
    }
}

fn silent() -> Arc<dyn Sink> {
    static SILENT: std::sync::OnceLock<Arc<dyn Sink>> = std::sync::OnceLock::new();
    SILENT.get_or_init(|| Arc::new(Silent)).clone()
}

fn subject(session: &Session, call: &Call, side_effects: Option<SideEffects>) -> Subject {
    Subject {
        call_id: call.id.clone(),
        session_id: session.id().cloned(),
        tool: named(&call.tool).into(),
        side_effects,
    }
}

fn signed(mut result: ToolResult, origin: &Origin) -> ToolResult {
    if let Origin::Plugin { name, digest } = origin {
        (result.plugin, result.digest) = (Some(name.to_string()), Some(*digest));
    }
    result
}
