//! The order of the questions about the calls of one message: that of the calls, although their
//! inputs are checked at the same time.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, PoisonError};

/// The calls of a message that may still ask a question.
#[derive(Debug, Default)]
pub(super) struct QuestionOrder {
    undecided: Mutex<BTreeSet<usize>>,
    changed: tokio::sync::Notify,
}

impl QuestionOrder {
    /// Returns the turns of this many calls, in their order.
    pub(super) fn turns(calls: usize) -> impl Iterator<Item = QuestionTurn> {
        let order =
            Arc::new(Self { undecided: Mutex::new((0..calls).collect()), ..Self::default() });
        (0..calls).map(move |index| QuestionTurn { order: order.clone(), index })
    }
}

/// The turn of one call to ask its question. Dropping it passes it.
#[derive(Debug)]
pub(super) struct QuestionTurn {
    order: Arc<QuestionOrder>,
    index: usize,
}

impl QuestionTurn {
    /// Completes when every earlier call has asked, or will not ask.
    pub(super) async fn comes(&self) {
        loop {
            // Created before the check, so that no wake-up is lost between the check and the wait.
            let changed = self.order.changed.notified();
            if self.is_next() {
                return;
            }
            changed.await;
        }
    }

    /// Lets the next call ask: this one has asked, or will not ask.
    pub(super) fn pass(&self) {
        let mut undecided = self.order.undecided.lock().unwrap_or_else(PoisonError::into_inner);
        if undecided.remove(&self.index) {
            drop(undecided);
            self.order.changed.notify_waiters();
        }
    }

    fn is_next(&self) -> bool {
        let undecided = self.order.undecided.lock().unwrap_or_else(PoisonError::into_inner);
        undecided.first().is_none_or(|first| *first >= self.index)
    }
}

impl Drop for QuestionTurn {
    fn drop(&mut self) {
        self.pass();
    }
}
