//! A count of the calls that wait for the code of a plugin. Loading is cancelled when no call waits
//! any more.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio_util::sync::CancellationToken;

/// The number of calls that wait for a result in progress.
#[derive(Debug, Default)]
pub(super) struct Interest(Mutex<Count>);

#[derive(Debug, Default)]
struct Count {
    wanting: usize,
    given_up: CancellationToken,
}

/// One waiting call. The work is cancelled when the last one is dropped.
#[derive(Debug)]
pub(super) struct Wanted {
    interest: Arc<Interest>,
    given_up: CancellationToken,
    afterwards: Afterwards,
}

/// The effect on the work when the last waiting call leaves.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Afterwards {
    GivenUp,
    GoesOn,
}

impl Interest {
    /// Adds a waiting call.
    pub(super) fn want(self: &Arc<Self>) -> Wanted {
        let mut count = self.count();
        if count.wanting == 0 {
            // A new token: the old one was cancelled, or belongs to work that goes on without a
            // waiting call.
            count.given_up = CancellationToken::new();
        }
        count.wanting += 1;
        Wanted {
            interest: self.clone(),
            given_up: count.given_up.clone(),
            afterwards: Afterwards::GivenUp,
        }
    }

    fn leave(&self, afterwards: Afterwards) {
        let mut count = self.count();
        count.wanting = count.wanting.saturating_sub(1);
        if count.wanting == 0 && afterwards == Afterwards::GivenUp {
            count.given_up.cancel();
        }
    }

    fn count(&self) -> MutexGuard<'_, Count> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Wanted {
    /// Returns the token that is cancelled when no call waits any more.
    pub(super) fn given_up(&self) -> &CancellationToken {
        &self.given_up
    }

    /// Stops waiting, without cancelling the work, so that a later call can use its result.
    pub(super) fn leave_to_later(mut self) {
        self.afterwards = Afterwards::GoesOn;
    }
}

impl Drop for Wanted {
    fn drop(&mut self) {
        self.interest.leave(self.afterwards);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_last_of_them_leaves_is_given_up_and_wanted_again_by_the_next() {
        let interest = Arc::new(Interest::default());
        let (one, other) = (interest.want(), interest.want());
        let given_up = one.given_up().clone();
        drop(one);
        assert!(!given_up.is_cancelled(), "another waits for it");
        drop(other);
        assert!(given_up.is_cancelled());
        assert!(!interest.want().given_up().is_cancelled());
    }

    #[test]
    fn what_the_last_leaves_to_later_goes_on() {
        let interest = Arc::new(Interest::default());
        let wanted = interest.want();
        let given_up = wanted.given_up().clone();
        wanted.leave_to_later();
        drop(interest.want());
        assert!(!given_up.is_cancelled());
    }
}
