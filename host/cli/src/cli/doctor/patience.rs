//! The time that doctor waits for file systems, shared by all of its checks.

use palisade::internal::within;
use palisade::sandbox::limits;
use std::cell::Cell;
use std::io;
use std::time::Duration;

/// The timeout after a first file system has timed out: other file systems still answer at once.
const AFTERWARDS: Duration = Duration::from_millis(300);

#[derive(Default)]
pub(super) struct Patience {
    has_run_out: Cell<bool>,
}

impl Patience {
    /// Returns true if a file system has timed out.
    pub(super) fn has_run_out(&self) -> bool {
        self.has_run_out.get()
    }

    /// Returns the timeout for the next check.
    pub(super) fn left(&self) -> Duration {
        if self.has_run_out() { AFTERWARDS } else { limits::OPENING }
    }

    /// Runs work that may block in the kernel on a separate thread, which is abandoned at the
    /// timeout.
    pub(super) fn within<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> io::Result<T> {
        let done = within(self.left(), work);
        self.note(done.as_ref().is_err_and(|error| error.kind() == io::ErrorKind::TimedOut));
        done
    }

    /// Records whether another wait has timed out.
    pub(super) fn note(&self, in_vain: bool) {
        self.has_run_out.set(self.has_run_out() || in_vain);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn second_wait_uses_short_timeout() {
        let patience = Patience::default();
        assert!(
            patience.within(|| ()).is_ok()
                && !patience.has_run_out()
                && patience.left() == limits::OPENING
        );
        patience.note(false);
        assert!(!patience.has_run_out());
        patience.note(true);
        patience.note(false);
        assert!(
            patience.within(|| ()).is_ok()
                && patience.has_run_out()
                && patience.left() == AFTERWARDS
        );
    }
}
