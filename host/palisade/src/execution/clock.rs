//! The clock of one call: it starts when the call runs and is paused while the call waits for a
//! response.

use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Duration;
use tokio::time::Instant;

/// The clock of one call. It uses the runtime's time, so that tests can control it.
pub(crate) struct CallClock {
    budget: Duration,
    /// The clock of the call that makes this one, which has to end within its time.
    outer: Option<Arc<CallClock>>,
    start: OnceLock<Start>,
    waits: Mutex<Waits>,
}

/// The start of a clock.
#[derive(Clone, Copy)]
struct Start {
    at: Instant,
    budget: Duration,
}

/// The time that the call has waited for responses.
#[derive(Default)]
struct Waits {
    over: Duration,
    /// The begin of the current wait, if there is one.
    since: Option<Instant>,
    /// The number of reasons to wait: calls that the call makes may wait for answers at once.
    pauses: usize,
}

impl CallClock {
    /// Creates a clock with this budget, which has not started.
    pub(crate) fn new(budget: Duration) -> Arc<Self> {
        Self::made(budget, None)
    }

    /// Creates the clock of a call that another call makes: when it starts, its budget is at most
    /// the time that is left to the other call.
    pub(crate) fn within(budget: Duration, outer: Arc<Self>) -> Arc<Self> {
        Self::made(budget, Some(outer))
    }

    fn made(budget: Duration, outer: Option<Arc<Self>>) -> Arc<Self> {
        Arc::new(Self { budget, outer, start: OnceLock::new(), waits: Mutex::default() })
    }

    /// Returns the budget at the start of the clock.
    pub(crate) fn budget(&self) -> Duration {
        self.budget
    }

    pub(crate) fn has_started(&self) -> bool {
        self.start.get().is_some()
    }

    /// Returns true for a call that another call makes, if the time of the other call is over. Such
    /// a call must not begin. Starts the clock.
    pub(crate) fn is_late(&self) -> bool {
        self.outer.is_some() && self.left().is_zero()
    }

    /// Returns the deadline, which a later pause may move. Starts the clock.
    pub(crate) fn deadline(&self) -> Instant {
        self.first_deadline() + self.waits.lock().unwrap_or_else(PoisonError::into_inner).over
    }

    /// Returns the time left. Starts the clock.
    pub(crate) fn left(&self) -> Duration {
        let first = self.first_deadline();
        let waits = self.waits.lock().unwrap_or_else(PoisonError::into_inner);
        (first + waits.over).saturating_duration_since(waits.since.unwrap_or_else(Instant::now))
    }

    /// Returns the time that the clock has run, which exceeds the budget if the call is late.
    /// Starts the clock.
    pub(crate) fn ran(&self) -> Duration {
        let begun = self.start().at;
        let waits = self.waits.lock().unwrap_or_else(PoisonError::into_inner);
        let now = waits.since.unwrap_or_else(Instant::now);
        now.saturating_duration_since(begun + waits.over)
    }

    /// Completes when the budget is used up. Starts the clock.
    pub(crate) async fn run_out(&self) {
        // While the clock is paused, the time left is a lower bound for the remaining wait.
        loop {
            match self.left() {
                Duration::ZERO => return,
                left => tokio::time::sleep(left).await,
            }
        }
    }

    /// Pauses the clock until the guard is dropped. With several guards, it runs again after the
    /// last one.
    pub(crate) fn pause(self: &Arc<Self>) -> ClockPause {
        let mut waits = self.waits.lock().unwrap_or_else(PoisonError::into_inner);
        waits.pauses += 1;
        waits.since.get_or_insert_with(Instant::now);
        drop(waits);
        ClockPause(self.clone())
    }

    /// Returns the deadline without any pause.
    fn first_deadline(&self) -> Instant {
        let Start { at, budget } = self.start();
        at + budget
    }

    fn start(&self) -> Start {
        *self.start.get_or_init(|| {
            let left = self.outer.as_ref().map_or(self.budget, |outer| outer.left());
            Start { at: Instant::now(), budget: self.budget.min(left) }
        })
    }
}

/// A guard that keeps the clock paused.
pub(crate) struct ClockPause(Arc<CallClock>);

impl Drop for ClockPause {
    fn drop(&mut self) {
        let mut waits = self.0.waits.lock().unwrap_or_else(PoisonError::into_inner);
        waits.pauses = waits.pauses.saturating_sub(1);
        if waits.pauses == 0
            && let Some(since) = waits.since.take()
        {
            waits.over += since.elapsed();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MINUTE: Duration = Duration::from_secs(60);

    #[tokio::test(start_paused = true)]
    async fn held_clock_stands_still() {
        let clock = CallClock::new(MINUTE);
        assert!(!clock.has_started());
        assert_eq!(clock.left(), MINUTE);
        tokio::time::advance(MINUTE / 4).await;
        let pause = clock.pause();
        tokio::time::advance(MINUTE * 5).await;
        assert_eq!(clock.left(), MINUTE * 3 / 4);
        assert_eq!(clock.ran(), MINUTE / 4);
        drop(pause);
        assert_eq!(clock.left(), MINUTE * 3 / 4);
        assert_eq!(clock.deadline(), Instant::now() + MINUTE * 3 / 4);
    }

    #[tokio::test(start_paused = true)]
    async fn clock_held_twice_runs_after_the_last_release() {
        let clock = CallClock::new(MINUTE);
        let _ = clock.deadline();
        let first = clock.pause();
        tokio::time::advance(MINUTE).await;
        let second = clock.pause();
        tokio::time::advance(MINUTE).await;
        drop(first);
        tokio::time::advance(MINUTE).await;
        assert_eq!(clock.left(), MINUTE);
        drop(second);
        tokio::time::advance(MINUTE / 4).await;
        assert_eq!(clock.left(), MINUTE * 3 / 4);
    }

    #[tokio::test(start_paused = true)]
    async fn call_of_a_call_ends_within_the_time_of_both() {
        let outer = CallClock::new(MINUTE);
        let _ = outer.deadline();
        let (long, short, late) = (MINUTE * 5, MINUTE / 4, MINUTE);
        let [long, short, late] =
            [long, short, late].map(|it| CallClock::within(it, outer.clone()));
        tokio::time::advance(MINUTE / 2).await;
        assert_eq!((long.left(), short.left()), (MINUTE / 2, MINUTE / 4));
        tokio::time::advance(MINUTE).await;
        assert_eq!((late.left(), late.ran()), (Duration::ZERO, Duration::ZERO));
        assert_eq!(long.ran(), MINUTE);
    }

    #[tokio::test(start_paused = true)]
    async fn elapsed_time_includes_an_overrun() {
        let clock = CallClock::new(MINUTE);
        let _ = clock.deadline();
        tokio::time::advance(MINUTE * 3).await;
        assert_eq!((clock.left(), clock.ran()), (Duration::ZERO, MINUTE * 3));
    }

    #[tokio::test(start_paused = true)]
    async fn timeout_wait_includes_held_time() {
        let clock = CallClock::new(MINUTE);
        let begun = Instant::now();
        let waited = async {
            tokio::time::sleep(MINUTE / 2).await;
            let _pause = clock.pause();
            tokio::time::sleep(MINUTE * 3).await;
        };
        let ((), ()) = tokio::join!(waited, clock.run_out());
        let took = begun.elapsed();
        assert!(took >= MINUTE * 4 && took < MINUTE * 4 + Duration::from_millis(5), "{took:?}");
    }
}
