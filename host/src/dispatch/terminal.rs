//! The one terminal event of each call, also when nobody waits for its result any more.

use crate::events::{Completion, Event, Events, Subject};
use crate::tool::{ErrorClass, ToolResult};

/// Owes the call its terminal event. Dropped unpaid, it says that the call was cancelled: its caller has gone.
pub(super) struct Terminal {
    events: Events,
    subject: Option<Subject>,
    paid: bool,
}

impl Terminal {
    /// The subject is only built where somebody listens.
    pub(super) fn new(events: Events, subject: impl FnOnce() -> Subject) -> Self {
        let subject = events.is_watched().then(subject);
        Self { events, subject, paid: false }
    }

    /// The call that it is about; only asked for where somebody listens.
    pub(super) fn subject(&self) -> Subject {
        self.subject.clone().unwrap_or_else(|| Subject {
            call_id: crate::tool::CallId::new(""),
            session_id: None,
            tool: "<unnamed>".into(),
            side_effects: None,
        })
    }

    /// Says how the call ended, and passes its result on.
    pub(super) fn finish(mut self, result: ToolResult) -> ToolResult {
        self.paid = true;
        self.events.emit(|| event(self.subject(), &result));
        result
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        if !self.paid {
            self.events.emit(|| Event::Failed(self.subject(), ErrorClass::Cancelled, "the caller has gone".to_owned()));
        }
    }
}

fn event(subject: Subject, result: &ToolResult) -> Event {
    let duration = result.duration();
    match result.error() {
        None => Event::Completed(subject, Completion { success: true, duration }),
        Some(error) if is_unsuccessful(result) => {
            tracing::debug!(call_id = %result.call_id(), "{error}");
            Event::Completed(subject, Completion { success: false, duration })
        }
        Some(error) if error.class() == ErrorClass::ValidationError => Event::InputInvalid(subject, error.message()),
        Some(error) => Event::Failed(subject, error.class(), error.message()),
    }
}

/// The tool ran to its end and reports a failure itself: that is a completion.
fn is_unsuccessful(result: &ToolResult) -> bool {
    use crate::tool::{ErrorKind, ExecutionKind};
    matches!(
        result.error().map(crate::tool::ToolError::kind),
        Some(ErrorKind::Execution { kind: ExecutionKind::Unsuccessful, .. })
    )
}
