//! What the process said of itself: panics of any thread, and the log.

use crate::program::without_crashes;
use std::io::{self, Write};
use std::panic;
use std::sync::{Mutex, Once, PoisonError};

/// Every panic since it was last forgotten.
static PANICS: Mutex<Vec<String>> = Mutex::new(Vec::new());
/// The log since it was last forgotten.
static LOG: Mutex<Vec<u8>> = Mutex::new(Vec::new());

/// Listens to the process.
pub(super) struct Heard(());

impl Heard {
    /// From now on, for as long as the process lives.
    pub(super) fn listening() -> Self {
        static ONCE: Once = Once::new();
        ONCE.call_once(|| {
            let usual = panic::take_hook();
            panic::set_hook(Box::new(move |info| {
                PANICS.lock().unwrap_or_else(PoisonError::into_inner).push(info.to_string());
                usual(info);
            }));
            let log = tracing_subscriber::fmt().with_ansi(false).with_max_level(tracing::Level::INFO);
            log.with_writer(|| Kept).init();
        });
        Self(())
    }

    /// Begins anew.
    pub(super) fn forget(&self) {
        let Self(()) = self;
        PANICS.lock().unwrap_or_else(PoisonError::into_inner).clear();
        LOG.lock().unwrap_or_else(PoisonError::into_inner).clear();
    }

    /// What should not have been heard, where so many panics are part of the case.
    pub(super) fn complaints(&self, panics: usize) -> Vec<String> {
        let Self(()) = self;
        let heard = PANICS.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let mut complaints = Vec::new();
        if heard.len() != panics {
            complaints.push(format!("{} panics, and {panics} were part of the case: {heard:?}", heard.len()));
        }
        let log = String::from_utf8_lossy(&LOG.lock().unwrap_or_else(PoisonError::into_inner)).into_owned();
        let own = without_crashes(&log);
        if panics == 0 && ["panicked", "stack backtrace"].iter().any(|text| own.contains(text)) {
            complaints.push(format!("the log tells of a panic: {log}"));
        }
        complaints
    }
}

/// Keeps what is logged.
struct Kept;

impl Write for Kept {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        LOG.lock().unwrap_or_else(PoisonError::into_inner).extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
