//! The messages of a guest to the host, within the budgets of one call.

use super::guest_signals::GuestSignals;
use crate::execution::{Progress, Severity, Silent, Sink};
use crate::sandbox::limits;
use crate::tool::text::cut;
use std::sync::Arc;
use tokio_util::sync::CancellationToken;

/// The longest part of a printed line in one message, in bytes.
const PRINTED: usize = limits::MESSAGE - 16;
/// The most messages for printed lines. The host makes them at the end of a call, when no deadline
/// can stop them: 256 KiB of short lines would hold up all other calls.
const PRINTED_LINES: usize = 500;

/// The remaining message budgets of one call, and the sink for its messages.
pub(crate) struct Messages {
    sink: Arc<dyn Sink>,
    cancel: CancellationToken,
    signals: Arc<GuestSignals>,
    log_left: usize,
    lines_left: usize,
    emit_left: usize,
    steps_left: usize,
    dropped: u64,
}

impl Messages {
    pub(crate) fn new(sink: Arc<dyn Sink>, cancel: CancellationToken) -> Self {
        Self {
            sink,
            cancel,
            signals: Arc::default(),
            log_left: limits::LOG,
            lines_left: PRINTED_LINES,
            emit_left: limits::EMITTED,
            steps_left: limits::PROGRESS_STEPS,
            dropped: 0,
        }
    }

    /// Creates an instance for `definitions`, which discards all messages.
    pub(crate) fn silent() -> Self {
        Self::new(Arc::new(Silent), CancellationToken::new())
    }

    /// Returns the signals from the guest to the future that polls it.
    pub(crate) fn signals(&self) -> &Arc<GuestSignals> {
        &self.signals
    }

    pub(crate) fn cancel(&self) -> &CancellationToken {
        &self.cancel
    }

    /// Returns the number of dropped bytes of messages.
    pub(crate) fn dropped(&self) -> u64 {
        self.dropped
    }

    /// Logs a warning of the host itself in the tool's log.
    pub(crate) fn warn(&self, message: &str) {
        self.sink.log(Severity::Warn, message);
    }

    /// Records that the guest has polled for cancellation, and returns true if it is cancelled.
    pub(super) fn poll_cancellation(&self) -> bool {
        self.signals.note_cancellation_poll();
        self.cancel.is_cancelled()
    }

    /// Logs a message of the guest.
    pub(super) fn log(&mut self, severity: Severity, message: &str) {
        let kept = self.keep_message(message);
        if !kept.is_empty() {
            self.sink.log(severity, &kept);
        }
    }

    /// Logs the lines that the guest has printed to a standard stream, within the rest of its log's
    /// budget. Bytes without room are not counted as dropped: the stream itself has kept them.
    pub(crate) fn log_printed(&mut self, stream: &str, text: &str) {
        for mut line in text.lines().filter(|line| !line.trim().is_empty()) {
            while !line.is_empty() {
                let (piece, rest) = line.split_at(cut(line, PRINTED).len());
                let left = self.log_left.checked_sub(stream.len() + piece.len());
                let (Some(left), 1..) = (left, self.lines_left) else {
                    self.sink.log(Severity::Info, &format!("{stream}: the rest is left out"));
                    return;
                };
                self.log_left = left;
                self.lines_left -= 1;
                self.sink.log(Severity::Info, &format!("{stream}: {piece}"));
                line = rest;
            }
        }
    }

    /// Reports the progress of the guest.
    pub(super) fn progress(&mut self, done: f64, total: Option<f64>, message: Option<String>) {
        let is_finite = done.is_finite() && total.is_none_or(f64::is_finite);
        let Some(left) = self.steps_left.checked_sub(1).filter(|_| is_finite) else { return };
        self.steps_left = left;
        let message = message.map(|text| self.keep_message(&text));
        self.sink.progress(Progress { done, total, message });
    }

    /// Emits a chunk of the guest's output.
    pub(super) fn emit(&mut self, chunk: &str) {
        let kept = charge(&mut self.emit_left, &mut self.dropped, chunk, limits::EMITTED);
        if !kept.is_empty() {
            self.sink.emit(&kept);
        }
    }

    fn keep_message(&mut self, message: &str) -> String {
        charge(&mut self.log_left, &mut self.dropped, message, limits::MESSAGE)
    }
}

/// Returns the part of a text that is within `max` and the budget, and counts the rest.
fn charge(left: &mut usize, dropped: &mut u64, text: &str, max: usize) -> String {
    let kept = cut(text, max.min(*left));
    *left -= kept.len();
    *dropped += (text.len() - kept.len()) as u64;
    kept.to_owned()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]

    use super::*;
    use std::sync::Mutex;

    /// The messages of a log.
    #[derive(Default)]
    struct Log(Mutex<Vec<String>>);

    impl Sink for Log {
        fn log(&self, _: Severity, message: &str) {
            self.0.lock().unwrap().push(message.to_owned());
        }
        fn progress(&self, _: Progress) {}
        fn emit(&self, _: &str) {}
    }

    #[test]
    fn printed_lines_are_bounded_in_number() {
        let log = Arc::new(Log::default());
        let mut messages = Messages::new(log.clone(), CancellationToken::new());
        messages.log_printed("stdout", &"a\n".repeat(PRINTED_LINES));
        assert_eq!(log.0.lock().unwrap().len(), PRINTED_LINES);
        messages.log_printed("stderr", &"b\n".repeat(100_000));
        let log = log.0.lock().unwrap();
        assert_eq!(log.len(), PRINTED_LINES + 1);
        assert_eq!(log.last().map(String::as_str), Some("stderr: the rest is left out"));
    }
}
