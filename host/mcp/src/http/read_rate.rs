//! The rate at which a connection is read that another protocol has taken over. Its client has
//! little to say, and each message costs time, also one without content.

use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;
use tokio::time::{Instant, Sleep, sleep};

/// The number of bytes that are read at once after a pause.
const BURST: usize = 16 << 10;
/// The number of bytes that are read in each second after a burst.
const PER_SECOND: u128 = 1 << 10;
/// The time after which an exhausted rate is looked at again.
const PAUSE: Duration = Duration::from_millis(500);

/// The rate, which makes a reader wait and loses nothing.
pub(super) struct ReadRate {
    left: usize,
    since: Instant,
    pause: Option<Pin<Box<Sleep>>>,
}

impl ReadRate {
    pub(super) fn new() -> Self {
        Self { left: BURST, since: Instant::now(), pause: None }
    }

    /// Returns the number of bytes that may be read now, at least one.
    pub(super) fn poll_left(&mut self, cx: &mut Context<'_>) -> Poll<usize> {
        loop {
            let gained = self.since.elapsed().as_millis() * PER_SECOND / 1_000;
            if let Ok(gained @ 1..) = usize::try_from(gained) {
                self.left = self.left.saturating_add(gained).min(BURST);
                self.since = Instant::now();
            }
            if self.left > 0 {
                return Poll::Ready(self.left);
            }
            let pause = self.pause.get_or_insert_with(|| Box::pin(sleep(PAUSE)));
            ready!(pause.as_mut().poll(cx));
            self.pause = None;
        }
    }

    pub(super) fn take(&mut self, bytes: usize) {
        self.left = self.left.saturating_sub(bytes);
    }
}
