//! How much may wait for a reader that takes its time: counted in bytes, since one event may be as large as thousands of
//! others.

use super::{Envelope, Event};
use crate::execution::account::Owed;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// What may wait in one queue.
#[derive(Debug)]
pub(super) struct Room {
    events: Count,
    bytes: Count,
}

/// So many of something, and the most that there may be.
#[derive(Debug)]
struct Count {
    taken: AtomicUsize,
    bound: usize,
}

impl Count {
    fn new(bound: usize) -> Self {
        Self { taken: AtomicUsize::new(0), bound }
    }

    /// Takes so many where a part of the bound has room for them. How many were taken before.
    fn take(&self, more: usize, part: Part) -> Option<usize> {
        let bound = if part == Part::Half { self.bound / 2 } else { self.bound };
        let fits = |taken: usize| taken.checked_add(more).filter(|sum| *sum <= bound);
        self.taken.fetch_update(Ordering::Relaxed, Ordering::Relaxed, fits).ok()
    }

    fn give_back(&self, less: usize) {
        self.taken.fetch_sub(less, Ordering::Relaxed);
    }
}

/// How much of a room an event may take.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Part {
    Half,
    All,
}

/// An event that waits, and its place in the room, which is free again when it is dropped.
pub(super) struct Waiting {
    pub(super) event: Envelope,
    /// How many waited before it.
    pub(super) before: usize,
    _place: Place,
}

struct Place {
    room: Arc<Room>,
    bytes: usize,
    /// What waits counts among the memory of all calls.
    _owed: Owed,
}

impl Drop for Place {
    fn drop(&mut self) {
        self.room.bytes.give_back(self.bytes);
        self.room.events.give_back(1);
    }
}

impl Room {
    /// Room for so many events, and for so many bytes of them.
    pub(super) fn new(events: usize, bytes: usize) -> Arc<Self> {
        Arc::new(Self { events: Count::new(events), bytes: Count::new(bytes) })
    }

    /// How many events wait.
    #[cfg(test)]
    pub(super) fn waiting(&self) -> usize {
        self.events.taken.load(Ordering::Relaxed)
    }

    /// A copy of the event, if there is room for it. Half of the room is kept for the beginnings and ends of calls, so that
    /// no tool can push those out by talking.
    pub(super) fn admit(self: &Arc<Self>, event: &Envelope) -> Option<Waiting> {
        let (bytes, part) = (event.bytes(), if event.event.is_chatter() { Part::Half } else { Part::All });
        let before = self.events.take(1, part)?;
        if self.bytes.take(bytes, part).is_none() {
            self.events.give_back(1);
            return None;
        }
        let place = Place { room: self.clone(), bytes, _owed: Owed::new(bytes) };
        Some(Waiting { event: event.clone(), before, _place: place })
    }
}

impl Envelope {
    /// The memory that the event takes, in bytes, with the names that outlive its call in it.
    fn bytes(&self) -> usize {
        let names = self.event.subject().map_or(0, |subject| {
            let ids = [subject.session_id.as_deref(), subject.turn_id.as_deref()];
            subject.call_id.as_str().len() + subject.tool.len() + ids.into_iter().flatten().map(str::len).sum::<usize>()
        });
        size_of::<Waiting>() + names + self.event.text_bytes()
    }
}

impl Event {
    /// The bytes of the text that is the event's own.
    fn text_bytes(&self) -> usize {
        let all = |texts: &[String]| texts.iter().map(|text| size_of::<String>() + text.len()).sum::<usize>();
        match self {
            Self::Called(_) | Self::Completed(..) => 0,
            Self::Failed(_, failure) => failure.message.len() + failure.partial_output.as_ref().map_or(0, String::len),
            Self::InputInvalid(_, text) | Self::OutputDelta(_, text) | Self::Log(_, _, text) => text.len(),
            Self::ConfirmationRequested(_, request) => {
                request.input_summary.len() + all(&request.projected_modifications)
            }
            Self::ConfirmationResolved(_, id, _) => id.as_str().len(),
            Self::Progress(_, step) => step.message.as_ref().map_or(0, String::len),
            Self::PluginLoaded(facts) | Self::PluginChanged(facts) | Self::PluginRemoved(facts) => all(&facts.tools),
            Self::PluginRejected { file, reason } => file.len() + reason.len(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::events::{Completion, Subject};
    use crate::execution::Severity;
    use crate::tool::CallId;
    use std::time::{Duration, SystemTime};

    fn subject() -> Subject {
        Subject { call_id: CallId::new("c"), session_id: None, turn_id: None, tool: "t".into(), side_effects: None }
    }

    fn envelope(event: Event) -> Envelope {
        Envelope { seq: 1, time: SystemTime::UNIX_EPOCH, event }
    }

    #[test]
    fn what_waits_is_bounded_in_bytes_and_talk_takes_half_of_the_room() {
        let room = Room::new(100, 100 << 10);
        let log = envelope(Event::Log(subject(), Severity::Info, "x".repeat(10 << 10)));
        let waiting: Vec<_> = std::iter::from_fn(|| room.admit(&log)).collect();
        assert_eq!(waiting.len(), 4, "ten would fit");
        let ended = envelope(Event::Completed(subject(), Completion { success: true, duration: Duration::ZERO }));
        assert!(room.admit(&ended).is_some());
        drop(waiting);
        assert_eq!((room.waiting(), room.bytes.taken.load(Ordering::Relaxed)), (0, 0));
        let failed = envelope(Event::InputInvalid(subject(), "x".repeat(90 << 10)));
        assert!(
            room.admit(&failed).is_some_and(|first| room.admit(&failed).is_none() && !first.event.event.is_chatter())
        );
    }

    #[test]
    fn what_waits_is_bounded_in_number_and_talk_takes_half_of_the_places() {
        let room = Room::new(10, 100 << 10);
        let log = envelope(Event::Log(subject(), Severity::Info, String::new()));
        let talk: Vec<_> = std::iter::from_fn(|| room.admit(&log)).collect();
        let begun = envelope(Event::Called(subject()));
        let begun: Vec<_> = std::iter::from_fn(|| room.admit(&begun)).collect();
        assert_eq!((talk.len(), begun.len(), room.waiting()), (5, 5, 10));
    }

    #[test]
    fn the_names_of_a_call_count_since_they_outlive_it() {
        let room = Room::new(10, 100 << 10);
        let named = |subject| envelope(Event::Called(subject));
        let long = || "x".repeat(60 << 10);
        for subject in
            [Subject { tool: long().into(), ..subject() }, Subject { session_id: Some(long().into()), ..subject() }]
        {
            let first = room.admit(&named(subject.clone()));
            assert!(first.is_some() && room.admit(&named(subject)).is_none());
        }
    }
}
