//! The `palisade:tool/host` interface: the host functions that every guest can call.

use super::state::State;
use crate::execution::Severity;
use crate::sandbox::bindings::palisade::tool::host::{Host, Level};
use crate::sandbox::bindings::palisade::tool::types;

impl Host for State {
    fn log(&mut self, level: Level, message: String) {
        self.messages.log(level.into(), &message);
    }

    fn progress(&mut self, done: f64, total: Option<f64>, message: Option<String>) {
        self.messages.progress(done, total, message);
    }

    fn emit(&mut self, chunk: String) {
        self.messages.emit(&chunk);
    }

    fn cancelled(&mut self) -> bool {
        self.messages.poll_cancellation()
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
