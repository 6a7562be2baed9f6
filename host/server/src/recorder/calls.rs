//! The journal's numbers of the calls in flight. Callers choose the ids of their calls, so two
//! calls in flight may have the same.

use crate::journal::CallKey;
use palisade::CallId;
use palisade::events::Subject;
use std::collections::HashMap;
use std::sync::Arc;

/// The most calls that are remembered. A host has far fewer in flight.
const CALLS: usize = 16_384;

/// The session of a call, if it has one, and the call's id.
type SessionAndId = (Option<Arc<str>>, Arc<str>);

/// The calls in flight by session and id.
#[derive(Debug, Default)]
pub(super) struct Calls {
    by_id: HashMap<SessionAndId, Vec<Call>>,
    len: usize,
}

#[derive(Debug)]
struct Call {
    /// Where the text of the call's id is in memory. All events of a call share the text, so that
    /// it tells calls of the same id apart.
    address: usize,
    key: CallKey,
    progress: Progress,
}

/// How far a call has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Progress {
    InFlight,
    /// Its end is recorded, and its last event is still to come.
    Ended {
        /// The length of the reason of its failure in bytes, if advice follows in the event.
        reason: Option<usize>,
    },
}

impl Calls {
    /// Returns the number of a call, which is new at its first mention.
    pub(super) fn of(&mut self, subject: &Subject, number: impl FnOnce() -> CallKey) -> CallKey {
        if self.len >= CALLS {
            self.forget_ended();
        }
        let calls = self.by_id.entry(key(subject)).or_default();
        let in_flight = |call: &&Call| call.progress == Progress::InFlight;
        if let Some(call) = calls.iter().filter(in_flight).find(|call| call.is(subject)) {
            return call.key;
        }
        let new = Call { address: address(subject), key: number(), progress: Progress::InFlight };
        let number = new.key;
        calls.push(new);
        self.len += 1;
        number
    }

    /// Returns the number of a call that was mentioned.
    pub(super) fn known(&self, subject: &Subject) -> Option<CallKey> {
        let calls = self.by_id.get(&key(subject))?;
        calls.iter().rev().find(|call| call.is(subject)).map(|call| call.key)
    }

    /// Returns the number of the latest call of this id in the session of another call, if it is in
    /// flight.
    pub(super) fn in_flight(&self, beside: &Subject, id: &CallId) -> Option<CallKey> {
        let calls = self.by_id.get(&(beside.session_id.clone(), id.as_str().into()))?;
        let is_in_flight = |call: &&Call| call.progress == Progress::InFlight;
        calls.iter().rev().find(is_in_flight).map(|call| call.key)
    }

    /// Notes that the end of a call is recorded, whose failure has a reason of so many bytes with
    /// advice behind it.
    pub(super) fn end(&mut self, subject: &Subject, reason: Option<usize>) {
        let calls = self.by_id.get_mut(&key(subject));
        let call = calls.into_iter().flatten().rev().find(|call| call.is(subject));
        if let Some(call) = call {
            call.progress = Progress::Ended { reason };
        }
    }

    /// Forgets a call, whose last event this is. Returns its number, and the length of the reason
    /// that its end was noted with.
    pub(super) fn remove(&mut self, subject: &Subject) -> Option<(CallKey, Option<usize>)> {
        let calls = self.by_id.get_mut(&key(subject))?;
        let index = calls.iter().position(|call| call.is(subject))?;
        let call = calls.remove(index);
        if calls.is_empty() {
            self.by_id.remove(&key(subject));
        }
        self.len -= 1;
        let reason = match call.progress {
            Progress::InFlight => None,
            Progress::Ended { reason } => reason,
        };
        Some((call.key, reason))
    }

    /// Forgets calls whose last event never came, such as those of a recorder that does not
    /// subscribe.
    fn forget_ended(&mut self) {
        for calls in self.by_id.values_mut() {
            calls.retain(|call| call.progress == Progress::InFlight);
        }
        self.by_id.retain(|_, calls| !calls.is_empty());
        self.len = self.by_id.values().map(Vec::len).sum();
    }
}

impl Call {
    fn is(&self, subject: &Subject) -> bool {
        self.address == address(subject)
    }
}

fn key(subject: &Subject) -> (Option<Arc<str>>, Arc<str>) {
    (subject.session_id.clone(), subject.call_id.as_str().into())
}

fn address(subject: &Subject) -> usize {
    subject.call_id.as_str().as_ptr().addr()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn subject(id: &str) -> Subject {
        Subject {
            call_id: CallId::new(id),
            parent: None,
            session_id: Some("s".into()),
            turn_id: None,
            tool: "t".into(),
            side_effects: None,
        }
    }

    #[test]
    fn calls_of_the_same_id_are_told_apart() {
        let mut calls = Calls::default();
        let (first, second) = (subject("c"), subject("c"));
        let number = |number| move || CallKey::new(number);
        assert_eq!(calls.of(&first, number(1)), CallKey::new(1));
        assert_eq!(calls.of(&second, number(2)), CallKey::new(2));
        assert_eq!(calls.of(&first.clone(), number(3)), CallKey::new(1));
        calls.end(&first, Some(7));
        assert_eq!(calls.known(&first), Some(CallKey::new(1)), "its last event is to come");
        assert_eq!(calls.remove(&first), Some((CallKey::new(1), Some(7))));
        assert_eq!((calls.known(&first), calls.known(&second)), (None, Some(CallKey::new(2))));
        assert_eq!(
            (calls.remove(&second), calls.len, calls.by_id.len()),
            (Some((CallKey::new(2), None)), 0, 0)
        );
    }

    #[test]
    fn parent_is_found_in_its_session_while_it_runs() {
        let mut calls = Calls::default();
        let (parent, child) = (subject("c"), subject("c.1"));
        assert_eq!(calls.in_flight(&child, &parent.call_id), None);
        calls.of(&parent, || CallKey::new(1));
        assert_eq!(calls.in_flight(&child, &parent.call_id), Some(CallKey::new(1)));
        let elsewhere = Subject { session_id: Some("other".into()), ..child.clone() };
        assert_eq!(calls.in_flight(&elsewhere, &parent.call_id), None);
        calls.end(&parent, None);
        assert_eq!(calls.in_flight(&child, &parent.call_id), None);
    }

    #[test]
    fn ended_calls_without_a_last_event_are_forgotten() {
        let mut calls = Calls::default();
        let running = subject("running");
        calls.of(&running, || CallKey::new(0));
        for number in 1..100_000 {
            let one = subject(&number.to_string());
            calls.of(&one, || CallKey::new(number));
            calls.end(&one, None);
        }
        assert!(calls.len <= CALLS && calls.by_id.len() <= CALLS);
        assert_eq!(calls.known(&running), Some(CallKey::new(0)));
    }
}
