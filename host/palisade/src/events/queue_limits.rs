//! Limits the events queued for a slow reader, in count and in bytes: one event may be as large as
//! thousands of others.

use super::{Envelope, Event};
use crate::execution::account::Owed;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// The limits of one queue.
#[derive(Debug)]
pub(super) struct QueueLimits {
    events: BoundedCount,
    bytes: BoundedCount,
}

/// A counter with an upper bound.
#[derive(Debug)]
struct BoundedCount {
    taken: AtomicUsize,
    bound: usize,
}

impl BoundedCount {
    fn new(bound: usize) -> Self {
        Self { taken: AtomicUsize::new(0), bound }
    }

    /// Takes `more` if a part of the bound has room. Returns the previous count.
    fn take(&self, more: usize, part: Part) -> Option<usize> {
        let bound = if part == Part::Half { self.bound / 2 } else { self.bound };
        let fits = |taken: usize| taken.checked_add(more).filter(|sum| *sum <= bound);
        self.taken.fetch_update(Ordering::Relaxed, Ordering::Relaxed, fits).ok()
    }

    fn release(&self, less: usize) {
        self.taken.fetch_sub(less, Ordering::Relaxed);
    }
}

/// The part of a queue that an event may use.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Part {
    Half,
    All,
}

/// A queued event. Dropping it frees its place in the queue.
pub(super) struct QueuedEvent {
    pub(super) event: Envelope,
    /// The number of events queued before it.
    pub(super) before: usize,
    _slot: QueueSlot,
}

struct QueueSlot {
    limits: Arc<QueueLimits>,
    bytes: usize,
    /// Counts the event towards the memory of all calls.
    _owed: Owed,
}

impl Drop for QueueSlot {
    fn drop(&mut self) {
        self.limits.bytes.release(self.bytes);
        self.limits.events.release(1);
    }
}

impl QueueLimits {
    /// Creates the limits for a number of events and their bytes.
    pub(super) fn new(events: usize, bytes: usize) -> Arc<Self> {
        Arc::new(Self { events: BoundedCount::new(events), bytes: BoundedCount::new(bytes) })
    }

    /// Returns the number of queued events.
    #[cfg(test)]
    pub(super) fn waiting(&self) -> usize {
        self.events.taken.load(Ordering::Relaxed)
    }

    /// Returns a copy of the event if there is room. Half of the queue is reserved for events other
    /// than chatter, so that a verbose tool cannot push out the start and end of calls.
    pub(super) fn admit(self: &Arc<Self>, event: &Envelope) -> Option<QueuedEvent> {
        let bytes = event.bytes();
        let part = if event.event.is_chatter() { Part::Half } else { Part::All };
        let before = self.events.take(1, part)?;
        if self.bytes.take(bytes, part).is_none() {
            self.events.release(1);
            return None;
        }
        let slot = QueueSlot { limits: self.clone(), bytes, _owed: Owed::new(bytes) };
        Some(QueuedEvent { event: event.clone(), before, _slot: slot })
    }
}

impl Envelope {
    /// Returns the memory of the event in bytes, including the names that outlive its call.
    fn bytes(&self) -> usize {
        let names = self.event.subject().map_or(0, |subject| {
            let ids = [subject.session_id.as_deref(), subject.turn_id.as_deref()];
            subject.call_id.as_str().len()
                + subject.tool.len()
                + ids.into_iter().flatten().map(str::len).sum::<usize>()
        });
        size_of::<QueuedEvent>() + names + self.event.text_bytes()
    }
}

impl Event {
    /// Returns the length of the event's own text in bytes.
    fn text_bytes(&self) -> usize {
        let all = |texts: &[String]| {
            texts.iter().map(|text| size_of::<String>() + text.len()).sum::<usize>()
        };
        match self {
            Self::Called(_) => 0,
            Self::Completed(_, done) => done.effects.bytes(),
            Self::Failed(_, failure) => {
                failure.message.len()
                    + failure.partial_output.as_ref().map_or(0, String::len)
                    + failure.effects.bytes()
            }
            Self::InputInvalid(_, text) | Self::OutputDelta(_, text) | Self::Log(_, _, text) => {
                text.len()
            }
            Self::ConfirmationRequested(_, request) => {
                let caller = request.called_by.as_ref().map_or(0, |caller| {
                    let names = [caller.plugin.as_ref(), caller.place.as_ref()];
                    caller.tool.len() + names.into_iter().flatten().map(String::len).sum::<usize>()
                });
                request.input_summary.len()
                    + all(&request.projected_modifications)
                    + all(&request.grants)
                    + request.plugin.as_ref().map_or(0, String::len)
                    + caller
            }
            Self::ConfirmationResolved(_, id, _) => id.as_str().len(),
            Self::Progress(_, step) => step.message.as_ref().map_or(0, String::len),
            Self::PluginLoaded(facts) | Self::PluginChanged(facts) | Self::PluginRemoved(facts) => {
                facts.plugin.len() + all(&facts.tools) + all(&facts.grants)
            }
            Self::PluginRejected { file, reason } => file.len() + reason.len(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::events::{Completion, Effects, Subject};
    use crate::execution::Severity;
    use crate::tool::CallId;
    use std::time::{Duration, SystemTime};

    fn subject() -> Subject {
        Subject {
            call_id: CallId::new("c"),
            parent: None,
            session_id: None,
            turn_id: None,
            tool: "t".into(),
            side_effects: None,
        }
    }

    fn envelope(event: Event) -> Envelope {
        Envelope { seq: 1, time: SystemTime::UNIX_EPOCH, event }
    }

    #[test]
    fn chatter_takes_half_of_the_queue_bytes() {
        let limits = QueueLimits::new(100, 100 << 10);
        let log = envelope(Event::Log(subject(), Severity::Info, "x".repeat(10 << 10)));
        let waiting: Vec<_> = std::iter::from_fn(|| limits.admit(&log)).collect();
        assert_eq!(waiting.len(), 4, "ten would fit");
        let ended = envelope(Event::Completed(
            subject(),
            Completion { success: true, duration: Duration::ZERO, effects: Effects::default() },
        ));
        assert!(limits.admit(&ended).is_some());
        drop(waiting);
        assert_eq!((limits.waiting(), limits.bytes.taken.load(Ordering::Relaxed)), (0, 0));
        let failed = envelope(Event::InputInvalid(subject(), "x".repeat(90 << 10)));
        assert!(limits.admit(&failed).is_some_and(
            |first| limits.admit(&failed).is_none() && !first.event.event.is_chatter()
        ));
    }

    #[test]
    fn chatter_takes_half_of_the_queue_entries() {
        let limits = QueueLimits::new(10, 100 << 10);
        let log = envelope(Event::Log(subject(), Severity::Info, String::new()));
        let talk: Vec<_> = std::iter::from_fn(|| limits.admit(&log)).collect();
        let begun = envelope(Event::Called(subject()));
        let begun: Vec<_> = std::iter::from_fn(|| limits.admit(&begun)).collect();
        assert_eq!((talk.len(), begun.len(), limits.waiting()), (5, 5, 10));
    }

    #[test]
    fn call_names_count_in_the_queue() {
        let limits = QueueLimits::new(10, 100 << 10);
        let named = |subject| envelope(Event::Called(subject));
        let long = || "x".repeat(60 << 10);
        for subject in [
            Subject { tool: long().into(), ..subject() },
            Subject { session_id: Some(long().into()), ..subject() },
        ] {
            let first = limits.admit(&named(subject.clone()));
            assert!(first.is_some() && limits.admit(&named(subject)).is_none());
        }
    }
}
