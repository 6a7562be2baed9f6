//! The in-flight requests of one client, and the ids of cancelled ones.
//!
//! The protocol forbids the reuse of these ids: a late message about the old request would be taken
//! for one about the new request.

use super::maker::Maker;
use rmcp::model::{
    ClientJsonRpcMessage, ClientNotification, ClientRequest, JsonRpcMessage, RequestId,
};
use std::collections::{HashMap, VecDeque};
use std::hash::{BuildHasher as _, RandomState};
use tokio_util::sync::CancellationToken;

/// The maximum number of in-flight requests per weight. The session limits separately how many of
/// the heavy ones run at once.
const AT_ONCE: usize = 64;
/// The number of cancelled ids that are remembered. After that many more cancellations, the old
/// request is assumed to have ended.
const REMEMBERED: usize = 4096;
/// The maximum length of an id, in bytes.
const ID: usize = 1024;

/// The cost of a request. Each weight has its own limit, so that a client with many calls in flight
/// can still ping the server and list its tools.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Weight {
    /// Answered from the server's own state: a ping, a list, a handshake.
    Light,
    /// Runs a plugin, or stays open.
    Heavy,
}

/// The request table of one client.
#[derive(Debug, Default)]
pub(super) struct Requests {
    under_way: HashMap<RequestId, UnderWay>,
    /// Hashes of the cancelled ids, which bound the memory that long ids take.
    cancelled: VecDeque<u64>,
    marks: RandomState,
}

#[derive(Debug)]
struct UnderWay {
    weight: Weight,
    /// Cancelled when the request is.
    ends: CancellationToken,
    /// The resources for the response.
    maker: Option<Maker>,
}

/// The reason why a request is rejected.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(super) enum NotTaken {
    #[error(
        "a request of this id is still being answered, or was cancelled; no id may be used twice"
    )]
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

    /// Records a request. Returns a token that is cancelled with the request, for calls that the
    /// library does not know of.
    pub(super) fn begin(
        &mut self,
        id: &RequestId,
        weight: Weight,
    ) -> Result<CancellationToken, NotTaken> {
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
        self.under_way.insert(id.clone(), UnderWay { weight, ends: ends.clone(), maker: None });
        Ok(ends)
    }

    /// Removes the request if it is still the one that `begin` returned this token for. Returns
    /// false if it was cancelled, so that it must not be answered. Must be called before the
    /// response is written: the client may reuse the id as soon as it has read the response.
    pub(super) fn answer(&mut self, id: &RequestId, ends: &CancellationToken) -> bool {
        !ends.is_cancelled() && self.under_way.remove(id).is_some()
    }

    /// Attaches the resources for its response to an in-flight request.
    pub(super) fn keep(&mut self, id: &RequestId, maker: &Maker) {
        if let Some(known) = self.under_way.get_mut(id) {
            known.maker = Some(maker.clone());
        }
    }

    /// Removes a request that is about to be answered, or will not be. Returns what was
    /// attached to it.
    pub(super) fn end(&mut self, id: &RequestId) -> Option<Maker> {
        self.under_way.remove(id)?.maker
    }

    /// Cancels a request, which may be held back by its transport.
    pub(super) fn cancel(&mut self, id: &RequestId, is_held: bool) {
        let known = self.under_way.remove(id);
        if let Some(known) = &known {
            known.ends.cancel();
        }
        if known.is_some() || is_held {
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

/// Returns true if an id is too long. Responses do not repeat such an id.
pub(super) fn is_long(id: &RequestId) -> bool {
    matches!(id, RequestId::String(text) if text.len() > ID)
}

impl Weight {
    /// Returns the weight of a request.
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

/// Returns the id of the request that a message cancels, if it is a cancellation.
pub(super) fn cancelled(message: &ClientJsonRpcMessage) -> Option<&RequestId> {
    let JsonRpcMessage::Notification(notification) = message else { return None };
    match &notification.notification {
        ClientNotification::CancelledNotification(cancelled) => {
            cancelled.params.request_id.as_ref()
        }
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
    fn heavy_requests_are_bounded_and_have_unique_ids() {
        let mut requests = Requests::default();
        assert!((0..AT_ONCE).all(|number| requests.begin(&id(number), Weight::Heavy).is_ok()));
        assert_eq!(requests.begin(&id(AT_ONCE), Weight::Heavy).err(), Some(NotTaken::Busy));
        assert_eq!(requests.begin(&id(0), Weight::Heavy).err(), Some(NotTaken::Duplicate));
        requests.end(&id(0));
        assert!(requests.begin(&id(0), Weight::Heavy).is_ok(), "what was answered is over");
    }

    #[test]
    fn light_requests_have_their_own_limit() {
        let mut requests = Requests::default();
        assert!((0..AT_ONCE).all(|number| requests.begin(&id(number), Weight::Heavy).is_ok()));
        assert!(
            (AT_ONCE..2 * AT_ONCE).all(|number| requests.begin(&id(number), Weight::Light).is_ok())
        );
        assert_eq!(requests.begin(&id(2 * AT_ONCE), Weight::Light).err(), Some(NotTaken::Busy));
    }

    #[test]
    fn answer_releases_its_id_and_cancelled_requests_get_none() {
        let mut requests = Requests::default();
        let first = requests.begin(&id(1), Weight::Heavy).expect("it is new");
        assert!(requests.answer(&id(1), &first) && !requests.answer(&id(1), &first));
        let again = requests.begin(&id(1), Weight::Heavy).expect("it was answered");
        requests.cancel(&id(1), false);
        assert!(!requests.answer(&id(1), &again));
        // Even if the id is forgotten and used again, the old response must not pass for the new
        // one.
        requests.cancelled.clear();
        let new = requests.begin(&id(1), Weight::Heavy).expect("it is new");
        assert!(!requests.answer(&id(1), &again) && requests.answer(&id(1), &new));
    }

    #[test]
    fn id_length_is_bounded() {
        let of = |bytes: usize| RequestId::String("x".repeat(bytes).into());
        let mut requests = Requests::default();
        assert!(requests.begin(&of(ID), Weight::Heavy).is_ok());
        assert_eq!(requests.begin(&of(ID + 1), Weight::Heavy).err(), Some(NotTaken::LongId));
    }

    #[test]
    fn recently_cancelled_ids_are_remembered() {
        let mut requests = Requests::default();
        for number in 0..=REMEMBERED {
            let ends = requests.begin(&id(number), Weight::Heavy).expect("it is new");
            requests.cancel(&id(number), false);
            assert!(ends.is_cancelled());
        }
        assert!(requests.begin(&id(0), Weight::Heavy).is_ok());
        assert_eq!(requests.begin(&id(1), Weight::Heavy).err(), Some(NotTaken::Duplicate));
        requests.cancel(&id(REMEMBERED + 7), false);
        assert!(
            requests.begin(&id(REMEMBERED + 7), Weight::Heavy).is_ok(),
            "nothing was cancelled there"
        );
        requests.cancel(&id(REMEMBERED + 8), true);
        assert_eq!(
            requests.begin(&id(REMEMBERED + 8), Weight::Heavy).err(),
            Some(NotTaken::Duplicate),
            "it waited"
        );
    }
}
