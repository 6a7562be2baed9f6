//! Yields of operations that look at many entries, so that no operation holds a thread for long.

use std::future::poll_fn;
use std::task::Poll;

/// The steps between two yields. A step looks at one entry; this many take less than a millisecond
/// on a local file system.
const STEPS: u32 = 32;

/// The steps of one operation. The host polls a guest only while its call goes on, so an operation
/// that yields ends with its call, and takes turns with other guests.
#[derive(Debug, Default)]
pub(super) struct Pace {
    steps: u32,
}

impl Pace {
    /// Counts a step, and yields to the host every few steps.
    pub(super) async fn step(&mut self) {
        self.steps = self.steps.saturating_add(1);
        if self.steps < STEPS {
            return;
        }
        self.steps = 0;
        let mut has_yielded = false;
        poll_fn(|cx| {
            if std::mem::replace(&mut has_yielded, true) {
                return Poll::Ready(());
            }
            cx.waker().wake_by_ref();
            Poll::Pending
        })
        .await;
    }
}
