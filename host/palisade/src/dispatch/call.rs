//! One call: its pipeline, its result and its terminal event.

use super::dispatcher::Dispatcher;
use super::errors::{no_runtime, not_allowed};
use super::pipeline::{InMessage, Pipeline};
use super::requester::Requester;
use super::run::outcome;
use super::stops::Stops;
use super::terminal::Terminal;
use crate::events::{CallSink, Subject};
use crate::registry::{Registered, ToolNotFound};
use crate::session::Session;
use crate::tool::error::{ErrorKind, named};
use crate::tool::{Call, Definition, ToolResult};
use std::sync::{Arc, OnceLock};
use tracing::Instrument as _;

impl Dispatcher {
    /// Runs one call to its result. It never fails and never panics: every error becomes a result.
    ///
    /// The call runs inside this future on the caller's thread, unless the host uses its own
    /// threads. Dropping the future ends the call.
    pub(crate) async fn dispatch(&self, session: &Session, call: Call) -> ToolResult {
        self.dispatch_as(session, call, &Requester::default()).await
    }

    /// Like [`dispatch`](Self::dispatch), with a requester that can be asked about the call.
    pub(crate) async fn dispatch_as(
        &self,
        session: &Session,
        call: Call,
        requester: &Requester,
    ) -> ToolResult {
        let tool = self.registry.get(&call.tool);
        self.run_call(session, call, tool, InMessage::default(), requester).await
    }

    /// Like [`dispatch_as`](Self::dispatch_as), for a tool that the caller has already looked up or
    /// that is in no registry.
    pub(crate) async fn dispatch_to(
        &self,
        session: &Session,
        call: Call,
        tool: Arc<Registered>,
        requester: &Requester,
    ) -> ToolResult {
        self.run_call(session, call, Ok(tool), InMessage::default(), requester).await
    }

    /// Runs a call through its pipeline and sends its terminal event.
    pub(super) async fn run_call(
        &self,
        session: &Session,
        call: Call,
        registered: Result<Arc<Registered>, ToolNotFound>,
        message: InMessage<'_>,
        requester: &Requester,
    ) -> ToolResult {
        let terminal = self.begin(session, &call, &registered, requester);
        let result =
            self.run_to_result(session, call, registered, message, requester, &terminal).await;
        terminal.finish(result)
    }

    /// Returns the guard of a call that begins.
    pub(super) fn begin(
        &self,
        session: &Session,
        call: &Call,
        registered: &Result<Arc<Registered>, ToolNotFound>,
        requester: &Requester,
    ) -> Terminal {
        let definition = registered.as_ref().ok().map(|tool| tool.definition());
        let parent = requester.parent.as_ref().map(|parent| parent.caller.call_id.clone());
        let subject = Subject { parent, ..subject(session, call, definition) };
        let sink = Arc::new(CallSink::new(self.events.clone(), subject));
        Terminal::new(sink, self.recorder.clone())
    }

    /// Runs a call through its pipeline. The caller sends its terminal event.
    pub(super) async fn run_to_result(
        &self,
        session: &Session,
        call: Call,
        registered: Result<Arc<Registered>, ToolNotFound>,
        message: InMessage<'_>,
        requester: &Requester,
        terminal: &Terminal,
    ) -> ToolResult {
        let id = call.id.clone();
        // A disabled span costs nothing. Error events carry the call's id themselves.
        let span = tracing::info_span!("call", id = %id, tool = %terminal.sink().subject().tool);
        let in_flight = session.enter(&id, call.turn_id.as_ref());
        let (result, tool) = match self.admit(session, registered, requester) {
            Err(refused) => {
                terminal.refuse(call.input);
                (Err(refused.error), refused.tool)
            }
            Ok(tool) => {
                let pipeline = Pipeline {
                    dispatcher: self,
                    session,
                    message,
                    requester,
                    sink: terminal.sink(),
                    unused: terminal.unused(),
                    tool: tool.clone(),
                    subdirectory: OnceLock::new(),
                    time: self.time_limit(&tool, call.timeout),
                    cancel: in_flight.cancellation(),
                    stops: Arc::new(Stops::new(
                        session,
                        &in_flight,
                        &call.cancel,
                        message.is_ended,
                        requester.parent.as_ref().map(|parent| &parent.stops),
                    )),
                    shares: session.shares(&tool),
                };
                (pipeline.run_cancellable(call).instrument(span.clone()).await, Some(tool))
            }
        };
        if result.is_err() && has_runtime() {
            terminal.write_unused(|| self.limits.account()).await;
        }
        let result = result
            .unwrap_or_else(|kind| ToolResult::failure(id, &terminal.sink().subject().tool, kind));
        span.in_scope(|| outcome::log_error(&result));
        let plugin = tool.as_ref().filter(|tool| tool.memory().is_some());
        let plugin = plugin.and_then(|tool| tool.origin().plugin());
        let result = match plugin.filter(|_| result.error().is_some()) {
            None => result.with_places(&self.places),
            Some(plugin) => result.with_places(&self.places.of_limited_plugin(plugin)),
        };
        outcome::sign(result, tool.as_deref())
    }

    /// Returns the tool of a call that may begin.
    fn admit(
        &self,
        session: &Session,
        registered: Result<Arc<Registered>, ToolNotFound>,
        requester: &Requester,
    ) -> Result<Arc<Registered>, Box<NotAdmitted>> {
        let refused = |error, tool| Err(Box::new(NotAdmitted { error, tool }));
        match (registered, &requester.parent) {
            // A tool knows what it may call.
            (Err(missing), Some(_)) => refused(self.not_found(&missing), None),
            (Err(missing), None) => {
                refused(self.not_found(&self.without_unlisted(session, &missing)), None)
            }
            (Ok(tool), None) if !session.presents(&tool) => {
                refused(self.not_found(&self.not_presented(session, &tool)), None)
            }
            (Ok(tool), _) if !self.floor.permits(session, &tool) => {
                refused(not_allowed(&tool, self.floor.list_without(&tool)), Some(tool))
            }
            (Ok(_), _) if !has_runtime() => refused(no_runtime(), None),
            (Ok(tool), _) => Ok(tool),
        }
    }
}

/// The error of a call that may not begin.
struct NotAdmitted {
    error: ErrorKind,
    /// The tool, if the caller may know of it.
    tool: Option<Arc<Registered>>,
}

fn has_runtime() -> bool {
    tokio::runtime::Handle::try_current().is_ok()
}

fn subject(session: &Session, call: &Call, definition: Option<&Definition>) -> Subject {
    Subject {
        call_id: call.id.clone(),
        parent: None,
        session_id: session.id().cloned(),
        turn_id: call.turn_id.clone(),
        tool: definition
            .map_or_else(|| named(&call.tool).into(), |definition| definition.name().to_shared()),
        side_effects: definition.map(Definition::side_effects),
    }
}
