//! The operators who are attached and could answer a confirmation request.

use std::sync::Arc;
use std::time::Duration;
use tokio::sync::watch;
use tokio::time::{Instant, sleep_until};

/// How long a question stays open after the last operator has left, so that a page can be loaded
/// again.
pub const GRACE: Duration = Duration::from_secs(10);

/// When a question waits for an answer.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Attached {
    /// While an operator reads events, and for [`GRACE`] afterwards. Else the call is refused at
    /// once.
    #[default]
    WhileWatched,
    /// Always: the operator will come to look.
    Always,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Presence {
    Nobody,
    Present(usize),
    /// The last one left then.
    Left(Instant),
}

/// The operators who are attached. Clones share it.
#[derive(Debug, Clone)]
pub(super) struct Attendance {
    attached: Attached,
    presence: Arc<watch::Sender<Presence>>,
}

/// An attached operator. Dropping it ends the attendance.
#[derive(Debug)]
pub struct Attending(Arc<watch::Sender<Presence>>);

impl Attendance {
    pub(super) fn new(attached: Attached) -> Self {
        Self { attached, presence: Arc::new(watch::Sender::new(Presence::Nobody)) }
    }

    pub(super) fn enter(&self) -> Attending {
        self.presence.send_modify(|presence| {
            *presence = match *presence {
                Presence::Present(count) => Presence::Present(count + 1),
                Presence::Nobody | Presence::Left(_) => Presence::Present(1),
            };
        });
        Attending(self.presence.clone())
    }

    /// Completes when a question would not be answered: nobody is attached, and the last one has
    /// been away for [`GRACE`].
    pub(super) async fn is_over(&self) {
        let mut presence = self.presence.subscribe();
        if self.attached == Attached::Always {
            return std::future::pending().await;
        }
        loop {
            let until = match *presence.borrow_and_update() {
                Presence::Nobody => return,
                Presence::Present(_) => None,
                Presence::Left(at) => Some(at + GRACE),
            };
            let over = async {
                match until {
                    Some(until) => sleep_until(until).await,
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                () = over => return,
                // `self` holds the sender.
                _ = presence.changed() => {}
            }
        }
    }

    /// Returns the number of attached operators.
    pub(super) fn count(&self) -> usize {
        match *self.presence.borrow() {
            Presence::Present(count) => count,
            Presence::Nobody | Presence::Left(_) => 0,
        }
    }
}

impl Drop for Attending {
    fn drop(&mut self) {
        self.0.send_modify(|presence| {
            *presence = match *presence {
                Presence::Present(count) if count > 1 => Presence::Present(count - 1),
                _ => Presence::Left(Instant::now()),
            };
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::time::timeout;

    const MOMENT: Duration = Duration::from_millis(1);

    async fn is_over(attendance: &Attendance, within: Duration) -> bool {
        timeout(within, attendance.is_over()).await.is_ok()
    }

    #[tokio::test(start_paused = true)]
    async fn question_outlives_a_reload() {
        let attendance = Attendance::new(Attached::WhileWatched);
        assert!(is_over(&attendance, MOMENT).await, "nobody was ever there");
        let (first, second) = (attendance.enter(), attendance.enter());
        drop(first);
        assert!(!is_over(&attendance, 2 * GRACE).await && attendance.count() == 1);
        drop(second);
        assert!(!is_over(&attendance, GRACE - MOMENT).await);
        let third = attendance.enter();
        assert!(!is_over(&attendance, 2 * GRACE).await, "the page is back");
        drop(third);
        assert!(is_over(&attendance, GRACE).await);
        assert!(is_over(&attendance, MOMENT).await, "and nobody has come since");
    }

    #[tokio::test(start_paused = true)]
    async fn question_waits_for_ever_where_someone_will_come() {
        assert!(!is_over(&Attendance::new(Attached::Always), Duration::from_secs(3600)).await);
    }
}
