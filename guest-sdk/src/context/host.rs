//! The backend in a component: the functions of the host.

use crate::Level;
use crate::bindings::palisade::tool::host;

/// Forwards all messages to the host.
#[derive(Debug)]
pub(super) struct Backend;

impl Backend {
    pub(super) fn new() -> Self {
        Self
    }

    pub(super) fn log(&self, level: Level, message: &str) {
        host::log(level, message);
    }

    pub(super) fn progress(&self, done: f64, total: Option<f64>, message: Option<&str>) {
        host::progress(done, total, message);
    }

    pub(super) fn emit(&self, chunk: &str) {
        host::emit(chunk);
    }

    pub(super) fn cancelled(&self) -> bool {
        host::cancelled()
    }
}
