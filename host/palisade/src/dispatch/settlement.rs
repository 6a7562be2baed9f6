//! The end of a call of a message, on which the call and its message agree: either the call ends
//! and its result counts, or the message is dropped first and the call counts as cancelled. The
//! record of the call and its terminal event follow from the same decision.

use crate::events::CallSink;
use crate::execution::account::Owed;
use crate::tool::{CallId, Content, ErrorKind, SideEffects, ToolResult};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The note in the record of a call that was cut off while its tool could change something.
const UNFINISHED: &str = "the tool had begun, and may have changed something";

/// The end of one call.
pub(super) struct Settlement {
    sink: Arc<CallSink>,
    state: Mutex<State>,
}

enum State {
    /// The call has not ended.
    Open,
    /// The call has ended. Its result waits for the calls before it.
    Ended(Box<(ToolResult, Owed)>),
    /// The result was taken, or the message ended before the call.
    Closed,
}

/// The decision on the end of a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Settled {
    /// The result counts.
    ByCall,
    /// The call is recorded as cancelled.
    ByMessage,
}

impl Settlement {
    /// Creates the settlement of a call that begins.
    pub(super) fn new(sink: Arc<CallSink>) -> Self {
        Self { sink, state: Mutex::new(State::Open) }
    }

    /// Offers the result of the call. If it counts, `record` sees it before anyone can take it.
    pub(super) fn settle(&self, result: ToolResult, record: impl FnOnce(&ToolResult)) -> Settled {
        let waiting = Owed::new(result.footprint());
        let mut state = self.state();
        match *state {
            State::Open => {
                record(&result);
                *state = State::Ended(Box::new((result, waiting)));
                Settled::ByCall
            }
            State::Ended(_) | State::Closed => Settled::ByMessage,
        }
    }

    /// Takes the result if the call has ended.
    pub(super) fn take(&self) -> Option<(ToolResult, Owed)> {
        let mut state = self.state();
        match std::mem::replace(&mut *state, State::Closed) {
            State::Ended(ended) => Some(*ended),
            before => {
                *state = before;
                None
            }
        }
    }

    /// Takes the result, or ends the call with this error and its output so far.
    pub(super) fn close(&self, id: &CallId, tool: &str, kind: ErrorKind) -> ToolResult {
        let before = std::mem::replace(&mut *self.state(), State::Closed);
        if let State::Ended(ended) = before {
            return ended.0;
        }
        let note = self.may_have_changed_something().then(|| UNFINISHED.to_owned());
        let output = self.sink.emitted().into_iter().chain(note).map(Content::Text).collect();
        let mut result = ToolResult::failure_with(id.clone(), tool, kind, output);
        result.duration = self.sink.elapsed();
        result
    }

    fn may_have_changed_something(&self) -> bool {
        let class = self.sink.subject().side_effects;
        let changes = match class {
            Some(SideEffects::Write | SideEffects::Execute | SideEffects::Network) => true,
            Some(SideEffects::None | SideEffects::Read) | None => false,
        };
        changes && self.sink.has_started()
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
