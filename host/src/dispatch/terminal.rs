//! The one terminal event of each call, also when nobody waits for its result any more.

use crate::events::{CallSink, Completion, Event, Failure, Subject};
use crate::tool::result::joined;
use crate::tool::{ErrorClass, ToolResult};
use std::sync::Arc;

/// Owes the call its terminal event. Dropped unpaid, it says that the call was cancelled: its caller has gone.
pub(super) struct Terminal {
    sink: Arc<CallSink>,
    is_paid: bool,
}

impl Terminal {
    pub(super) fn new(sink: Arc<CallSink>) -> Self {
        Self { sink, is_paid: false }
    }

    pub(super) fn sink(&self) -> &Arc<CallSink> {
        &self.sink
    }

    /// Says how the call ended, and passes its result on.
    pub(super) fn finish(mut self, result: ToolResult) -> ToolResult {
        self.is_paid = true;
        self.sink.tell_end(|subject| event(subject, &result));
        result
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        if !self.is_paid {
            self.sink.tell_end(|subject| {
                let failure = Failure {
                    class: ErrorClass::Cancelled,
                    message: "the caller has gone".to_owned(),
                    partial_output: self.sink.emitted(),
                    duration: self.sink.elapsed(),
                };
                Event::Failed(subject, failure)
            });
        }
    }
}

fn event(subject: Subject, result: &ToolResult) -> Event {
    let duration = result.duration();
    match result.error() {
        None => Event::Completed(subject, Completion { success: true, duration }),
        // The tool ran to its end and reports a failure itself: that is a completion.
        Some(error) if error.kind().is_in_the_tools_words() => {
            Event::Completed(subject, Completion { success: false, duration })
        }
        Some(error) if error.class() == ErrorClass::ValidationError => Event::InputInvalid(subject, error.message()),
        Some(error) => {
            let partial_output = Some(joined(result.content()).into_owned()).filter(|text| !text.is_empty());
            Event::Failed(subject, Failure { class: error.class(), message: error.message(), partial_output, duration })
        }
    }
}
