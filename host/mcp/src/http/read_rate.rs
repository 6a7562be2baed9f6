//! The rate at which a connection is read that another protocol has taken over. Its client has
//! little to say, and each message costs time, also one without content.

use crate::rate_limit::{Rate, TokenBucket};
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;
use tokio::time::{Instant, Sleep, sleep};

/// The bytes that each token admits.
const BYTES: usize = 512;
/// 1 KiB per second, after a burst of 16 KiB.
const RATE: Rate = Rate::one_per(Duration::from_millis(500), 32);

/// The rate, which makes a reader wait and loses nothing.
pub(super) struct ReadRate {
    bucket: TokenBucket,
    /// The bytes that the last token still admits.
    left: usize,
    pause: Option<Pin<Box<Sleep>>>,
}

impl ReadRate {
    pub(super) fn new() -> Self {
        Self { bucket: TokenBucket::new(RATE, Instant::now()), left: 0, pause: None }
    }

    /// Returns the number of bytes that may be read now, at least one.
    pub(super) fn poll_left(&mut self, cx: &mut Context<'_>) -> Poll<usize> {
        while self.left == 0 {
            match self.bucket.take(Instant::now()) {
                Ok(()) => self.left = BYTES,
                Err(wait) => {
                    let pause = self.pause.get_or_insert_with(|| Box::pin(sleep(wait)));
                    ready!(pause.as_mut().poll(cx));
                    self.pause = None;
                }
            }
        }
        Poll::Ready(self.left)
    }

    pub(super) fn take(&mut self, bytes: usize) {
        self.left = self.left.saturating_sub(bytes);
    }
}
