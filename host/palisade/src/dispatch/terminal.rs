//! The single terminal event of each call, which is sent even if the caller is gone.

use super::call_recorder::{CallEnd, CallRecorder};
use super::settlement::{Settled, Settlement};
use super::unused_input::{is_long, with_text, written};
use crate::events::{CallSink, Completion, Effects, Event, Failure, Subject, last};
use crate::execution::account::Account;
use crate::execution::{Unused, UnusedInput};
use crate::tool::result::joined;
use crate::tool::text::cut;
use crate::tool::{CallInput, ErrorClass, ToolResult};
use std::sync::Arc;

/// The longest error message in an event, in bytes. The result has the full text.
const MESSAGE: usize = 64 << 10;

/// A guard that sends the terminal event. If it is dropped without a result, the event says that
/// the caller is gone.
pub(super) struct Terminal {
    sink: Arc<CallSink>,
    recorder: Option<Arc<dyn CallRecorder>>,
    /// Where the call's input goes unless its tool gets it, if the call is recorded.
    unused: Option<Arc<UnusedInput>>,
    is_sent: bool,
}

impl Terminal {
    pub(super) fn new(sink: Arc<CallSink>, recorder: Option<Arc<dyn CallRecorder>>) -> Self {
        let unused = recorder.is_some().then(Arc::default);
        Self { sink, recorder, unused, is_sent: false }
    }

    /// Returns where the call's input goes unless its tool gets it, if the call is recorded.
    pub(super) fn unused(&self) -> Option<&Arc<UnusedInput>> {
        self.unused.as_ref()
    }

    /// Keeps the input of a call that is refused before anything looks at it.
    pub(super) fn refuse(&self, input: CallInput) {
        if let Some(unused) = &self.unused {
            unused.put(Unused::Raw(input));
        }
    }

    /// Writes the kept input as text if that takes long, so that the record of the call's end does
    /// not wait for it. Needs a runtime.
    pub(super) async fn write_unused(&self, account: impl FnOnce() -> Account) {
        let Some(unused) = &self.unused else { return };
        match unused.take() {
            Some(input) if is_long(&input) => {
                let account = unused.account().cloned().unwrap_or_else(account);
                if let Some(input) = Box::pin(written(input, account)).await {
                    unused.put(input);
                }
            }
            Some(input) => unused.put(input),
            None => {}
        }
    }

    pub(super) fn sink(&self) -> &Arc<CallSink> {
        &self.sink
    }

    /// Sends the end of the call and returns its result.
    pub(super) fn finish(mut self, result: ToolResult) -> ToolResult {
        self.is_sent = true;
        self.record(Some(&result));
        self.sink.tell_end(|subject| event(subject, &result));
        result
    }

    /// Sends the end of a call of a message, if the message has not ended before. Otherwise the
    /// event says that the caller is gone, as the record of the call does.
    pub(super) fn settle(mut self, result: ToolResult, settlement: &Settlement) {
        let event = event(self.sink.subject().clone(), &result);
        if settlement.settle(result, |result| self.record(Some(result))) == Settled::ByCall {
            self.is_sent = true;
            self.sink.tell_end(|_| event);
        }
    }

    fn record(&self, result: Option<&ToolResult>) {
        if let Some(recorder) = &self.recorder {
            let unused = self.unused.as_ref().and_then(|unused| unused.take());
            let subject = self.sink.subject();
            with_text(unused, |input| recorder.ended(CallEnd { subject, result, input }));
        }
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        if !self.is_sent {
            self.record(None);
            self.sink.tell_end(|subject| {
                let failure = Failure {
                    class: ErrorClass::Cancelled,
                    message: "the caller has gone".to_owned(),
                    partial_output: self.sink.emitted(),
                    duration: self.sink.elapsed(),
                    effects: Effects::default(),
                };
                Event::Failed(subject, failure)
            });
        }
    }
}

fn event(subject: Subject, result: &ToolResult) -> Event {
    let duration = result.duration();
    let effects = Effects::of(result);
    match result.error() {
        None => Event::Completed(subject, Completion { success: true, duration, effects }),
        // A tool that ran to completion and reports a failure has completed.
        Some(error) if error.kind().is_in_the_tools_words() => {
            Event::Completed(subject, Completion { success: false, duration, effects })
        }
        Some(error) if error.class() == ErrorClass::ValidationError => {
            Event::InputInvalid(subject, brief(error.message()))
        }
        Some(error) => {
            // Cut like the kept output of a tool, because the event must fit in the subscribers'
            // queues.
            let partial_output =
                Some(last(&joined(result.content())).to_owned()).filter(|text| !text.is_empty());
            let message = brief(error.message());
            Event::Failed(
                subject,
                Failure { class: error.class(), message, partial_output, duration, effects },
            )
        }
    }
}

fn brief(mut message: String) -> String {
    message.truncate(cut(&message, MESSAGE).len());
    message
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::events::Events;
    use crate::tool::{CallId, Content, ErrorKind, ExecutionKind};

    #[test]
    fn terminal_event_fits_in_the_queue() {
        let events = Events::default();
        let mut stream = events.stream();
        let long = || "x".repeat(8 << 20);
        let subject = || Subject {
            call_id: CallId::new("c"),
            parent: None,
            session_id: None,
            turn_id: None,
            tool: "t".into(),
            side_effects: None,
        };
        let failed = ErrorKind::execution(ExecutionKind::Failed, long());
        let invalid = ErrorKind::Validation(crate::tool::Violations::one("", long()));
        for kind in [failed, invalid] {
            let terminal = Terminal::new(Arc::new(CallSink::new(events.clone(), subject())), None);
            let content = vec![Content::Text(long() + "the end")];
            let result =
                terminal.finish(ToolResult::failure_with(CallId::new("c"), "t", kind, content));
            assert!(joined(result.content()).len() > 8 << 20, "the result has all of it");
            let told = stream.try_next().map(|told| told.event);
            let Some(Event::Failed(_, Failure { message, partial_output: Some(partial), .. })) =
                told
            else {
                assert!(
                    matches!(told, Some(Event::InputInvalid(_, message)) if message.len() <= MESSAGE)
                );
                continue;
            };
            assert!(message.len() <= MESSAGE && partial.ends_with("the end"));
        }
        assert_eq!(stream.missed(), 0);
    }
}
