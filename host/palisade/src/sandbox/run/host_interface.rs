//! The `palisade:tool/host` interface: log messages, progress and text from a running guest, and
//! its poll for cancellation.

use super::bindings::palisade::tool::host::{Host, Level};
use super::bindings::palisade::tool::types;
use super::limits;
use super::state::State;
use super::turns::Signs;
use crate::execution::{Progress, Severity, Silent, Sink};
use crate::tool::text::cut;
use std::sync::Arc;
use tokio_util::sync::CancellationToken;

/// The remaining message budgets of one call, and the sink for its messages.
pub(super) struct Talk {
    sink: Arc<dyn Sink>,
    cancel: CancellationToken,
    signs: Arc<Signs>,
    log_left: usize,
    emit_left: usize,
    steps_left: usize,
    dropped: u64,
}

impl Talk {
    pub(super) fn new(sink: Arc<dyn Sink>, cancel: CancellationToken) -> Self {
        Self {
            sink,
            cancel,
            signs: Arc::default(),
            log_left: limits::LOG,
            emit_left: limits::EMITTED,
            steps_left: limits::PROGRESS_STEPS,
            dropped: 0,
        }
    }

    /// Creates an instance for `definitions`, which discards all messages.
    pub(super) fn silent() -> Self {
        Self::new(Arc::new(Silent), CancellationToken::new())
    }

    /// Returns the signals from the guest to the future that polls it.
    pub(super) fn signs(&self) -> &Arc<Signs> {
        &self.signs
    }

    pub(super) fn cancel(&self) -> &CancellationToken {
        &self.cancel
    }

    /// Returns the number of dropped bytes of messages.
    pub(super) fn dropped(&self) -> u64 {
        self.dropped
    }

    /// Logs a warning of the host itself in the tool's log.
    pub(super) fn warn(&self, message: &str) {
        self.sink.log(Severity::Warn, message);
    }

    fn charge(left: &mut usize, dropped: &mut u64, text: &str, max: usize) -> String {
        let kept = cut(text, max.min(*left));
        *left -= kept.len();
        *dropped += (text.len() - kept.len()) as u64;
        kept.to_owned()
    }
}

impl Host for State {
    fn log(&mut self, level: Level, message: String) {
        let talk = &mut self.talk;
        let kept = Talk::charge(&mut talk.log_left, &mut talk.dropped, &message, limits::MESSAGE);
        if !kept.is_empty() {
            talk.sink.log(level.into(), &kept);
        }
    }

    fn progress(&mut self, done: f64, total: Option<f64>, message: Option<String>) {
        let talk = &mut self.talk;
        let finite = done.is_finite() && total.is_none_or(f64::is_finite);
        let Some(left) = talk.steps_left.checked_sub(1).filter(|_| finite) else { return };
        talk.steps_left = left;
        let message = message.map(|text| {
            Talk::charge(&mut talk.log_left, &mut talk.dropped, &text, limits::MESSAGE)
        });
        talk.sink.progress(Progress { done, total, message });
    }

    fn emit(&mut self, chunk: String) {
        let talk = &mut self.talk;
        let kept = Talk::charge(&mut talk.emit_left, &mut talk.dropped, &chunk, limits::EMITTED);
        if !kept.is_empty() {
            talk.sink.emit(&kept);
        }
    }

    fn cancelled(&mut self) -> bool {
        self.talk.signs.note_asked();
        self.talk.cancel.is_cancelled()
    }
}

impl types::Host for State {}

impl From<Level> for Severity {
    fn from(level: Level) -> Self {
        match level {
            Level::Trace => Self::Trace,
            Level::Debug => Self::Debug,
            Level::Info => Self::Info,
            Level::Warn => Self::Warn,
            Level::Error => Self::Error,
        }
    }
}
