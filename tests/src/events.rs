//! A subscriber that records events and can react to them at once.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use palisade::events::{Envelope, Event, Subscriber};

/// A function called at each event.
type Reaction = Arc<dyn Fn(&Event) + Send + Sync>;

/// The most messages of running calls that are recorded. The recorder is in the process whose
/// memory the oracle measures, and a guest may send hundreds of thousands.
const MAX_MESSAGES: usize = 40_000;

/// A recorder of every event about a call, apart from messages of running calls beyond 40,000.
#[derive(Clone, Default)]
pub struct Recorder {
    events: Arc<Mutex<Vec<Event>>>,
    messages: Arc<AtomicUsize>,
    react: Option<Reaction>,
    more: Arc<tokio::sync::Notify>,
}

impl Recorder {
    /// Creates a recorder that calls `react` at each event, on the thread of the call.
    #[must_use]
    pub fn reacting(react: impl Fn(&Event) + Send + Sync + 'static) -> Self {
        Self { react: Some(Arc::new(react)), ..Self::default() }
    }

    /// Returns the recorded events.
    #[must_use]
    pub fn events(&self) -> Vec<Event> {
        self.events.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Completes once `enough` accepts the recorded events.
    pub async fn until(&self, enough: impl Fn(&[Event]) -> bool) {
        loop {
            let more = self.more.notified();
            if enough(&self.events()) {
                return;
            }
            more.await;
        }
    }

    /// Returns the recorded events of one call.
    #[must_use]
    pub fn events_of(&self, call: &str) -> Vec<Event> {
        self.events()
            .into_iter()
            .filter(|event| event.subject().is_some_and(|s| s.call_id.as_str() == call))
            .collect()
    }

    /// Returns the names of the recorded events of one call.
    #[must_use]
    pub fn names_of(&self, call: &str) -> Vec<&'static str> {
        self.events_of(call).iter().map(Event::name).collect()
    }

    /// Returns the names of the recorded events.
    #[must_use]
    pub fn names(&self) -> Vec<&'static str> {
        self.events().iter().map(Event::name).collect()
    }

    /// Clears the recorded events.
    pub fn forget(&self) {
        self.events.lock().unwrap_or_else(PoisonError::into_inner).clear();
        self.messages.store(0, Ordering::Relaxed);
    }

    /// Returns a description of each call that does not have exactly one terminal event, at its
    /// end: of the calls that have returned, and of all others with an event.
    #[must_use]
    pub fn unended<'a>(&self, returned: impl IntoIterator<Item = &'a str>) -> Vec<String> {
        let events = self.events();
        let recorded =
            events.iter().filter_map(|event| Some(event.subject()?.call_id.as_str().to_owned()));
        let calls: BTreeSet<String> =
            returned.into_iter().map(str::to_owned).chain(recorded).collect();
        calls.iter().filter_map(|call| self.unended_call(call)).collect()
    }

    fn unended_call(&self, call: &str) -> Option<String> {
        let events = self.events_of(call);
        let ends = events.iter().filter(|event| event.is_terminal()).count();
        let names = || events.iter().map(Event::name).collect::<Vec<_>>();
        match ends {
            1 if events.last().is_some_and(Event::is_terminal) => None,
            1 => Some(format!("`{call}` has events after its end: {:?}", names())),
            _ => Some(format!("`{call}` has {ends} ends: {:?}", names())),
        }
    }

    /// Counts a message of a running call. Returns false if it is beyond the recorded ones.
    fn has_room_for(&self, event: &Event) -> bool {
        let is_message =
            matches!(event, Event::Log(..) | Event::OutputDelta(..) | Event::Progress(..));
        !is_message || self.messages.fetch_add(1, Ordering::Relaxed) < MAX_MESSAGES
    }

    /// Returns the recorded terminal events.
    #[must_use]
    pub fn terminal(&self) -> Vec<Event> {
        self.events().into_iter().filter(Event::is_terminal).collect()
    }
}

impl Subscriber for Recorder {
    fn receive(&self, event: &Envelope) {
        // Plugin events belong to no call and are emitted before the first one.
        if event.event.subject().is_none() {
            return;
        }
        if self.has_room_for(&event.event) {
            self.events.lock().unwrap_or_else(PoisonError::into_inner).push(event.event.clone());
        }
        if let Some(react) = &self.react {
            react(&event.event);
        }
        self.more.notify_waiters();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use palisade::CallId;
    use palisade::events::Subject;

    fn subject() -> Subject {
        Subject {
            call_id: CallId::new("a"),
            tool: Arc::from("t"),
            parent: None,
            session_id: None,
            turn_id: None,
            side_effects: None,
        }
    }

    fn send(recorder: &Recorder, event: Event) {
        recorder.receive(&Envelope { seq: 0, time: std::time::SystemTime::UNIX_EPOCH, event });
    }

    #[test]
    fn call_without_terminal_event_is_found() {
        let recorder = Recorder::default();
        assert_eq!(recorder.unended([]), Vec::<String>::new());
        assert_eq!(recorder.unended(["a"]), ["`a` has 0 ends: []"]);
        send(&recorder, Event::InputInvalid(subject(), String::new()));
        assert_eq!(recorder.unended(["a"]), Vec::<String>::new());
        assert_eq!(recorder.unended(["a", "b"]), ["`b` has 0 ends: []"]);
    }

    #[test]
    fn recorded_messages_are_bounded() {
        let recorder = Recorder::default();
        // As if there had been so many: they would leave memory to the tests of the oracle.
        recorder.messages.store(MAX_MESSAGES - 2, Ordering::Relaxed);
        for _ in 0..10 {
            send(&recorder, Event::OutputDelta(subject(), "x".to_owned()));
        }
        send(&recorder, Event::InputInvalid(subject(), String::new()));
        assert_eq!(recorder.events().len(), 3);
        assert_eq!(recorder.unended(["a"]), Vec::<String>::new());
    }
}
