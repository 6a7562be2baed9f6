//! The requests of one client that are under way, by their ids, and those that were cancelled: none of these ids may be used again, as the protocol says, for what
//! is still said about the old request would be taken for an answer to the new one.

use rmcp::model::{ClientJsonRpcMessage, ClientNotification, JsonRpcMessage, RequestId};
use std::collections::{HashMap, VecDeque};
use tokio_util::sync::CancellationToken;

/// The most that are answered at once. What runs of them at once is the session's cap.
const AT_ONCE: usize = 64;
/// How many cancelled ones are remembered. Whoever comes around again after that has waited long enough for the old request to have ended.
const REMEMBERED: usize = 4096;

/// The book of one client.
#[derive(Debug, Default)]
pub(super) struct Requests {
    /// Each with what ends it.
    under_way: HashMap<RequestId, CancellationToken>,
    cancelled: VecDeque<RequestId>,
}

/// Why a request is not taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(super) enum NotTaken {
    #[error("a request of this id is still being answered, or was cancelled; no id may be used twice")]
    Duplicate,
    #[error("{AT_ONCE} requests are being answered; send more when some of them have been")]
    Busy,
}

impl Requests {
    /// Takes note of a request. What it gives is cancelled when the request is, for whoever has no other way to hear of it.
    pub(super) fn begin(&mut self, id: &RequestId) -> Result<CancellationToken, NotTaken> {
        if self.under_way.contains_key(id) || self.cancelled.contains(id) {
            return Err(NotTaken::Duplicate);
        }
        if self.under_way.len() >= AT_ONCE {
            return Err(NotTaken::Busy);
        }
        let ends = CancellationToken::new();
        self.under_way.insert(id.clone(), ends.clone());
        Ok(ends)
    }

    /// Whether it is still to be answered.
    pub(super) fn has(&self, id: &RequestId) -> bool {
        self.under_way.contains_key(id)
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
            self.cancelled.push_back(id.clone());
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
