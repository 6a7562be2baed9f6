//! The requests of one client that are under way, by their ids, and those that were cancelled: none of these ids may be used again, as the protocol says, for what
//! is still said about the old request would be taken for an answer to the new one.

use crate::execution::account::Account;
use rmcp::model::{ClientJsonRpcMessage, ClientNotification, ClientRequest, JsonRpcMessage, RequestId};
use std::collections::{HashMap, VecDeque};
use std::hash::{BuildHasher as _, RandomState};
use tokio_util::sync::CancellationToken;

/// The most of each weight that are answered at once. What runs of the heavy ones at once is the
/// session's cap.
const AT_ONCE: usize = 64;
/// How many cancelled ones are remembered. Whoever comes around again after that has waited long enough for the old request to have ended.
const REMEMBERED: usize = 4096;
/// The longest id, in bytes.
const ID: usize = 1024;

/// What a request may take. Each weight has a bound of its own, so that a client with many calls
/// can still tell whether the server is there, and what it offers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Weight {
    /// It is answered from what the server knows: a ping, a list, a greeting.
    Light,
    /// A plugin is called for it, or it stays open.
    Heavy,
}

/// The book of one client.
#[derive(Debug, Default)]
pub(super) struct Requests {
    under_way: HashMap<RequestId, UnderWay>,
    /// What stands for each: a client has long ids for nothing.
    cancelled: VecDeque<u64>,
    marks: RandomState,
}

#[derive(Debug)]
struct UnderWay {
    weight: Weight,
    /// What ends it.
    ends: CancellationToken,
    /// The account that its answer counts in.
    account: Option<Account>,
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
    pub(super) fn begin(&mut self, id: &RequestId, weight: Weight) -> Result<CancellationToken, NotTaken> {
        if is_long(id) {
            return Err(NotTaken::LongId);
        }
        if self.under_way.contains_key(id) || self.cancelled.contains(&self.mark(id)) {
            return Err(NotTaken::Duplicate);
        }
        if self.under_way.values().filter(|known| known.weight == weight).count() >= AT_ONCE {
            return Err(NotTaken::Busy);
        }
        let ends = CancellationToken::new();
        self.under_way.insert(id.clone(), UnderWay { weight, ends: ends.clone(), account: None });
        Ok(ends)
    }

    /// Whether the one that `begin` gave this for is still to be answered, which it is with this: whoever reads the answer may use its id again at once.
    pub(super) fn answer(&mut self, id: &RequestId, ends: &CancellationToken) -> bool {
        !ends.is_cancelled() && self.under_way.remove(id).is_some()
    }

    /// Keeps the account of a request that is under way.
    pub(super) fn keep(&mut self, id: &RequestId, account: &Account) {
        if let Some(known) = self.under_way.get_mut(id) {
            known.account = Some(account.clone());
        }
    }

    /// It is answered with this, or will not be: the account that was kept for it.
    pub(super) fn end(&mut self, id: &RequestId) -> Option<Account> {
        self.under_way.remove(id)?.account
    }

    /// It is not to be answered any more.
    pub(super) fn cancel(&mut self, id: &RequestId) {
        if let Some(known) = self.under_way.remove(id) {
            known.ends.cancel();
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

/// Whether an id is longer than one may be. Such an id is not repeated in an answer.
pub(super) fn is_long(id: &RequestId) -> bool {
    matches!(id, RequestId::String(text) if text.len() > ID)
}

impl Weight {
    /// What this request takes.
    pub(super) fn of(request: &ClientRequest) -> Self {
        match request {
            ClientRequest::PingRequest(_)
            | ClientRequest::InitializeRequest(_)
            | ClientRequest::DiscoverRequest(_)
            | ClientRequest::SetLevelRequest(_)
            | ClientRequest::ListToolsRequest(_)
            | ClientRequest::ListPromptsRequest(_)
            | ClientRequest::ListResourcesRequest(_)
            | ClientRequest::ListResourceTemplatesRequest(_) => Self::Light,
            _ => Self::Heavy,
        }
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
        assert!((0..AT_ONCE).all(|number| requests.begin(&id(number), Weight::Heavy).is_ok()));
        assert_eq!(requests.begin(&id(AT_ONCE), Weight::Heavy).err(), Some(NotTaken::Busy));
        assert_eq!(requests.begin(&id(0), Weight::Heavy).err(), Some(NotTaken::Duplicate));
        requests.end(&id(0));
        assert!(requests.begin(&id(0), Weight::Heavy).is_ok(), "what was answered is over");
    }

    #[test]
    fn light_requests_have_places_that_heavy_ones_cannot_take_and_are_bounded_as_well() {
        let mut requests = Requests::default();
        assert!((0..AT_ONCE).all(|number| requests.begin(&id(number), Weight::Heavy).is_ok()));
        assert!((AT_ONCE..2 * AT_ONCE).all(|number| requests.begin(&id(number), Weight::Light).is_ok()));
        assert_eq!(requests.begin(&id(2 * AT_ONCE), Weight::Light).err(), Some(NotTaken::Busy));
    }

    #[test]
    fn an_answer_frees_its_id_and_what_was_cancelled_gets_none() {
        let mut requests = Requests::default();
        let first = requests.begin(&id(1), Weight::Heavy).expect("it is new");
        assert!(requests.answer(&id(1), &first) && !requests.answer(&id(1), &first));
        let again = requests.begin(&id(1), Weight::Heavy).expect("it was answered");
        requests.cancel(&id(1));
        assert!(!requests.answer(&id(1), &again));
        // When nobody remembers the cancellation, the answer to the old one is none to the new one.
        requests.cancelled.clear();
        let new = requests.begin(&id(1), Weight::Heavy).expect("it is new");
        assert!(!requests.answer(&id(1), &again) && requests.answer(&id(1), &new));
    }

    #[test]
    fn an_id_has_a_bound() {
        let of = |bytes: usize| RequestId::String("x".repeat(bytes).into());
        let mut requests = Requests::default();
        assert!(requests.begin(&of(ID), Weight::Heavy).is_ok());
        assert_eq!(requests.begin(&of(ID + 1), Weight::Heavy).err(), Some(NotTaken::LongId));
    }

    #[test]
    fn the_last_ids_that_were_cancelled_are_known_and_so_many_of_them() {
        let mut requests = Requests::default();
        for number in 0..=REMEMBERED {
            let ends = requests.begin(&id(number), Weight::Heavy).expect("it is new");
            requests.cancel(&id(number));
            assert!(ends.is_cancelled());
        }
        assert!(requests.begin(&id(0), Weight::Heavy).is_ok());
        assert_eq!(requests.begin(&id(1), Weight::Heavy).err(), Some(NotTaken::Duplicate));
        requests.cancel(&id(REMEMBERED + 7));
        assert!(requests.begin(&id(REMEMBERED + 7), Weight::Heavy).is_ok(), "nothing was cancelled there");
    }
}
