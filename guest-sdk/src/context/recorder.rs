//! The backend in a native test: records the messages of a tool.

use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::Level;
use crate::testing::{Progress, Record};

/// Records all messages, and reports cancellation after a number of polls.
#[derive(Debug)]
pub(crate) struct Backend {
    record: Mutex<Record>,
    polls_left: AtomicU32,
}

impl Backend {
    pub(super) fn new() -> Self {
        Self { record: Mutex::default(), polls_left: AtomicU32::new(u32::MAX) }
    }

    /// Reports cancellation to every poll after the first `polls`. [`u32::MAX`] means never.
    pub(crate) fn cancel_after(&mut self, polls: u32) {
        self.polls_left = AtomicU32::new(polls);
    }

    pub(crate) fn record(&self) -> Record {
        self.lock().clone()
    }

    pub(super) fn log(&self, level: Level, message: &str) {
        self.lock().logs.push((level, message.to_owned()));
    }

    pub(super) fn progress(&self, done: f64, total: Option<f64>, message: Option<&str>) {
        let message = message.unwrap_or_default().to_owned();
        self.lock().progress.push(Progress { done, total, message });
    }

    pub(super) fn emit(&self, chunk: &str) {
        self.lock().emitted.push(chunk.to_owned());
    }

    pub(super) fn cancelled(&self) -> bool {
        let count = |left: u32| if left == u32::MAX { Some(left) } else { left.checked_sub(1) };
        self.polls_left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, count).is_err()
    }

    /// Ignores poisoning: a panic of the tool under test leaves the record valid.
    fn lock(&self) -> MutexGuard<'_, Record> {
        self.record.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
