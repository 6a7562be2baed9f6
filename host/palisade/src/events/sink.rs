//! Turns a running tool's messages into events, and keeps its output in case the call fails.

use super::{Event, Events, Subject};
use crate::execution::account::Owed;
use crate::execution::{Progress, Severity, Sink};
use crate::tool::text::elided;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, OnceLock, PoisonError};
use std::time::Duration;
use tokio::time::Instant;

/// The part of an output kept for a failed call, in bytes: its end, which shows what the tool was
/// doing.
const KEPT: usize = 64 << 10;

/// The log target of the tools' own messages.
const TOOL_LOG: &str = "palisade::tool";
/// The maximum length of a tool's message in the log, in characters.
const MAX_LOGGED: usize = 4_096;
/// The maximum length of a call's id and of a tool's name in the log, in characters.
const MAX_NAME: usize = 128;

/// The events of one call.
pub(crate) struct CallSink {
    events: Events,
    subject: Subject,
    tail: Mutex<Tail>,
    started: OnceLock<Instant>,
    has_ended: AtomicBool,
}

impl CallSink {
    pub(crate) fn new(events: Events, subject: Subject) -> Self {
        Self {
            events,
            subject,
            tail: Mutex::default(),
            started: OnceLock::new(),
            has_ended: AtomicBool::new(false),
        }
    }

    /// Builds and sends an event about this call if there are subscribers. Events after the call's
    /// end, from a tool that still cleans up, are dropped.
    pub(crate) fn tell(&self, event: impl FnOnce(Subject) -> Event) {
        if !self.has_ended.load(Ordering::Acquire) {
            self.events.emit(|| event(self.subject.clone()));
        }
    }

    /// Sends the start of the tool.
    pub(crate) fn tell_start(&self) {
        let _ = self.started.set(Instant::now());
        self.tell(Event::Called);
    }

    /// Sends the end of the call, once.
    pub(crate) fn tell_end(&self, event: impl FnOnce(Subject) -> Event) {
        if !self.has_ended.swap(true, Ordering::AcqRel) {
            self.events.emit(|| event(self.subject.clone()));
        }
    }

    /// Returns true if the tool has started.
    pub(crate) fn has_started(&self) -> bool {
        self.started.get().is_some()
    }

    /// Returns the time since the start of the tool.
    pub(crate) fn elapsed(&self) -> Duration {
        self.started.get().map_or(Duration::ZERO, Instant::elapsed)
    }

    pub(crate) fn subject(&self) -> &Subject {
        &self.subject
    }

    /// Returns the end of the tool's emitted output, if there is any.
    pub(crate) fn emitted(&self) -> Option<String> {
        let tail = self.tail.lock().unwrap_or_else(PoisonError::into_inner);
        (!tail.text.is_empty()).then(|| last(&tail.text).to_owned())
    }
}

impl Sink for CallSink {
    fn log(&self, severity: Severity, message: &str) {
        write_log(&self.subject, severity, message);
        self.tell(|subject| Event::Log(subject, severity, message.to_owned()));
    }

    fn progress(&self, progress: Progress) {
        self.tell(|subject| Event::Progress(subject, progress));
    }

    fn emit(&self, chunk: &str) {
        self.tail.lock().unwrap_or_else(PoisonError::into_inner).keep(chunk);
        self.tell(|subject| Event::OutputDelta(subject, chunk.to_owned()));
    }
}

/// Writes a message of a tool to the host's log, on one line: a tool's words must not pass for the
/// host's.
fn write_log(subject: &Subject, severity: Severity, message: &str) {
    macro_rules! write_at {
        ($level:ident) => {
            tracing::event!(
                target: TOOL_LOG,
                tracing::Level::$level,
                call = &*elided(subject.call_id.as_str(), MAX_NAME),
                tool = &*elided(&subject.tool, MAX_NAME),
                "{}",
                elided(message, MAX_LOGGED)
            )
        };
    }
    match severity {
        Severity::Trace => write_at!(TRACE),
        Severity::Debug => write_at!(DEBUG),
        Severity::Info => write_at!(INFO),
        Severity::Warn => write_at!(WARN),
        Severity::Error => write_at!(ERROR),
    }
}

/// The end of an output, counted towards the memory of all calls.
#[derive(Default)]
struct Tail {
    text: String,
    owed: Owed,
}

impl Tail {
    /// Appends a chunk. The text is cut only at twice its bound, so that each byte is moved once on
    /// average.
    fn keep(&mut self, chunk: &str) {
        self.text.push_str(last(chunk));
        if self.text.len() > 2 * KEPT {
            self.text = last(&self.text).to_owned();
        }
        self.owed.set(self.text.capacity());
    }
}

/// Returns the end of a text, at most as long as the kept part of an output.
pub(crate) fn last(text: &str) -> &str {
    &text[text.ceil_char_boundary(text.len().saturating_sub(KEPT))..]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn terminal_event_is_sent_once_and_last() {
        struct Names(Mutex<Vec<&'static str>>);
        impl crate::events::Subscriber for Names {
            fn receive(&self, event: &crate::events::Envelope) {
                self.0.lock().unwrap_or_else(PoisonError::into_inner).push(event.event.name());
            }
        }
        let names = std::sync::Arc::new(Names(Mutex::default()));
        let call_id = crate::tool::CallId::new("c");
        let subject = Subject {
            call_id,
            session_id: None,
            turn_id: None,
            tool: "t".into(),
            side_effects: None,
            parent: None,
        };
        let sink = CallSink::new(Events::new(vec![names.clone()]), subject);
        sink.tell_start();
        sink.tell_end(|subject| Event::InputInvalid(subject, String::new()));
        sink.emit("still here");
        sink.tell_end(|subject| Event::InputInvalid(subject, String::new()));
        let heard = names.0.lock().unwrap_or_else(PoisonError::into_inner).clone();
        assert_eq!(heard, ["tool.called", "tool.input_invalid"]);
    }

    #[test]
    fn only_the_end_of_an_output_is_kept() {
        let mut tail = Tail::default();
        for number in 0..100_000 {
            tail.keep(&format!("é{number}\n"));
        }
        assert!(tail.text.len() <= 2 * KEPT && last(&tail.text).len() <= KEPT);
        assert!(last(&tail.text).ends_with("é99999\n"));
        tail.keep(&"x".repeat(3 * KEPT));
        assert_eq!(last(&tail.text), "x".repeat(KEPT));
        assert_eq!(tail.owed.get(), tail.text.capacity() as u64);
    }
}
