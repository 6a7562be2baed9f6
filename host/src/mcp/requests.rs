//! The requests of one client that are under way, by their ids, and those that were cancelled: none of these ids may be used again, as the protocol says, for what
//! is still said about the old request would be taken for an answer to the new one.

use rmcp::model::{ClientJsonRpcMessage, ClientNotification, JsonRpcMessage, RequestId};
use std::collections::{HashMap, VecDeque};
use std::hash::{BuildHasher as _, RandomState};
use tokio_util::sync::CancellationToken;

/// The most that are answered at once. What runs of them at once is the session's cap.
const AT_ONCE: usize = 64;
/// How many cancelled ones are remembered. Whoever comes around again after that has waited long enough for the old request to have ended.
const REMEMBERED: usize = 4096;
/// The longest id, in bytes.
const ID: usize = 1024;

/// The book of one client.
#[derive(Debug, Default)]
pub(super) struct Requests {
    /// Each with what ends it.
    under_way: HashMap<RequestId, CancellationToken>,
    /// What stands for each: a client has long ids for nothing.
    cancelled: VecDeque<u64>,
    marks: RandomState,
}

/// Why a request is not taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(super) enum NotTaken {
    #[error("a request of this id is still being answered, or was cancelled; no id may be used twice")]
    Duplicate,
    #[error("an id may have {ID} bytes; this one has more")]
    LongId,
    #[error("{AT_ONCE} requests are being answered; send more when some of them have been")]
    Busy,
}

impl Requests {
    fn mark(&self, id: &RequestId) -> u64 {
        self.marks.hash_one(id)
    }

    /// Takes note of a request. What it gives is cancelled when the request is, for whoever has no other way to hear of it.
    pub(super) fn begin(&mut self, id: &RequestId) -> Result<CancellationToken, NotTaken> {
        if matches!(id, RequestId::String(text) if text.len() > ID) {
            return Err(NotTaken::LongId);
        }
        if self.under_way.contains_key(id) || self.cancelled.contains(&self.mark(id)) {
            return Err(NotTaken::Duplicate);
        }
        if self.under_way.len() >= AT_ONCE {
            return Err(NotTaken::Busy);
        }
        let ends = CancellationToken::new();
        self.under_way.insert(id.clone(), ends.clone());
        Ok(ends)
    }

    /// Whether the one that `begin` gave this for is still to be answered, which it is with this: whoever reads the answer may use its id again at once.
    pub(super) fn answer(&mut self, id: &RequestId, ends: &CancellationToken) -> bool {
        !ends.is_cancelled() && self.under_way.remove(id).is_some()
    }

    /// It was answered, or will not be.
    pub(super) fn end(&mut self, id: &RequestId) {
        self.under_way.remove(id);
    }

    /// It is not to be answered any more.
    pub(super) fn cancel(&mut self, id: &RequestId) {
        if let Some(ends) = self.under_way.remove(id) {
            ends.cancel();
            if self.cancelled.len() >= REMEMBERED {
                self.cancelled.pop_front();
            }
            self.cancelled.push_back(self.mark(id));
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.under_way.is_empty()
    }
}

/// The request that a message cancels, if it is such a one.
pub(super) fn cancelled(message: &ClientJsonRpcMessage) -> Option<&RequestId> {
    let JsonRpcMessage::Notification(notification) = message else { return None };
    match &notification.notification {
        ClientNotification::CancelledNotification(cancelled) => cancelled.params.request_id.as_ref(),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn id(number: usize) -> RequestId {
        RequestId::String(number.to_string().into())
    }

    #[test]
    fn so_many_are_under_way_and_each_under_an_id_of_its_own() {
        let mut requests = Requests::default();
        assert!((0..AT_ONCE).all(|number| requests.begin(&id(number)).is_ok()));
        assert_eq!(requests.begin(&id(AT_ONCE)).err(), Some(NotTaken::Busy));
        assert_eq!(requests.begin(&id(0)).err(), Some(NotTaken::Duplicate));
        requests.end(&id(0));
        assert!(requests.begin(&id(0)).is_ok(), "what was answered is over");
    }

    #[test]
    fn an_answer_frees_its_id_and_what_was_cancelled_gets_none() {
        let mut requests = Requests::default();
        let first = requests.begin(&id(1)).expect("it is new");
        assert!(requests.answer(&id(1), &first) && !requests.answer(&id(1), &first));
        let again = requests.begin(&id(1)).expect("it was answered");
        requests.cancel(&id(1));
        assert!(!requests.answer(&id(1), &again));
        // When nobody remembers the cancellation, the answer to the old one is none to the new one.
        requests.cancelled.clear();
        let new = requests.begin(&id(1)).expect("it is new");
        assert!(!requests.answer(&id(1), &again) && requests.answer(&id(1), &new));
    }

    #[test]
    fn an_id_has_a_bound() {
        let of = |bytes: usize| RequestId::String("x".repeat(bytes).into());
        let mut requests = Requests::default();
        assert!(requests.begin(&of(ID)).is_ok());
        assert_eq!(requests.begin(&of(ID + 1)).err(), Some(NotTaken::LongId));
    }

    #[test]
    fn the_last_ids_that_were_cancelled_are_known_and_so_many_of_them() {
        let mut requests = Requests::default();
        for number in 0..=REMEMBERED {
            let ends = requests.begin(&id(number)).expect("it is new");
            requests.cancel(&id(number));
            assert!(ends.is_cancelled());
        }
        assert!(requests.begin(&id(0)).is_ok());
        assert_eq!(requests.begin(&id(1)).err(), Some(NotTaken::Duplicate));
        requests.cancel(&id(REMEMBERED + 7));
        assert!(requests.begin(&id(REMEMBERED + 7)).is_ok(), "nothing was cancelled there");
    }
}
