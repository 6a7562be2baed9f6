//! The panics of all threads and the log of the process.

use crate::program::without_crashes;
use std::io::{self, Write};
use std::panic;
use std::sync::{Mutex, Once, PoisonError};

/// The panics since the last reset.
static PANICS: Mutex<Vec<String>> = Mutex::new(Vec::new());
/// The log since the last reset.
static LOG: Mutex<Vec<u8>> = Mutex::new(Vec::new());

/// A listener to the panics and the log of the process.
pub(super) struct PanicLog(());

impl PanicLog {
    /// Installs the panic hook and the log subscriber for the lifetime of the process.
    pub(super) fn listening() -> Self {
        static ONCE: Once = Once::new();
        ONCE.call_once(|| {
            let usual = panic::take_hook();
            panic::set_hook(Box::new(move |info| {
                PANICS.lock().unwrap_or_else(PoisonError::into_inner).push(info.to_string());
                usual(info);
            }));
            let log =
                tracing_subscriber::fmt().with_ansi(false).with_max_level(tracing::Level::INFO);
            log.with_writer(|| Kept).init();
        });
        Self(())
    }

    /// Clears the panics and the log.
    pub(super) fn forget(&self) {
        let Self(()) = self;
        PANICS.lock().unwrap_or_else(PoisonError::into_inner).clear();
        LOG.lock().unwrap_or_else(PoisonError::into_inner).clear();
    }

    /// Returns a complaint if the number of panics differs from `panics`, or the log contains an
    /// unexpected panic.
    pub(super) fn complaints(&self, panics: usize) -> Vec<String> {
        let Self(()) = self;
        let heard = PANICS.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let mut complaints = Vec::new();
        if heard.len() != panics {
            complaints.push(format!(
                "{} panics, and {panics} were part of the case: {heard:?}",
                heard.len()
            ));
        }
        let log = String::from_utf8_lossy(&LOG.lock().unwrap_or_else(PoisonError::into_inner))
            .into_owned();
        let own = without_crashes(&log);
        if panics == 0 && ["panicked", "stack backtrace"].iter().any(|text| own.contains(text)) {
            complaints.push(format!("the log tells of a panic: {log}"));
        }
        complaints
    }
}

/// The writer of the log.
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
