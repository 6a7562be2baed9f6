//! How long doctor waits for file systems, all of its checks together: who has waited in vain once does not wait again.

use crate::sandbox::limits;
use crate::workspace::within;
use std::cell::Cell;
use std::io;
use std::time::Duration;

/// What a file system gets after one has not answered: what is not on that one still answers at once.
const AFTERWARDS: Duration = Duration::from_millis(300);

#[derive(Default)]
pub(super) struct Patience {
    has_run_out: Cell<bool>,
}

impl Patience {
    /// Whether something has not answered in time.
    pub(super) fn has_run_out(&self) -> bool {
        self.has_run_out.get()
    }

    /// How long the next answer is waited for.
    pub(super) fn left(&self) -> Duration {
        if self.has_run_out() { AFTERWARDS } else { limits::OPENING }
    }

    /// Does what may hang in the kernel, on a thread that is left to itself where it does not come back in time.
    pub(super) fn within<T: Send + 'static>(&self, work: impl FnOnce() -> T + Send + 'static) -> io::Result<T> {
        let done = within(self.left(), work);
        self.note(done.as_ref().is_err_and(|error| error.kind() == io::ErrorKind::TimedOut));
        done
    }

    /// Remembers that something else has been waited for in vain.
    pub(super) fn note(&self, in_vain: bool) {
        self.has_run_out.set(self.has_run_out() || in_vain);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_has_waited_in_vain_does_not_wait_as_long_again() {
        let patience = Patience::default();
        assert!(patience.within(|| ()).is_ok() && !patience.has_run_out() && patience.left() == limits::OPENING);
        patience.note(false);
        assert!(!patience.has_run_out());
        patience.note(true);
        patience.note(false);
        assert!(patience.within(|| ()).is_ok() && patience.has_run_out() && patience.left() == AFTERWARDS);
    }
}
