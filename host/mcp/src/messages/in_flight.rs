//! The in-flight requests of one client, and the ids of cancelled ones.
//!
//! The protocol forbids the reuse of these ids: a late message about the old request would be taken
//! for one about the new request.

use super::request_id::{MAX_LENGTH, is_long};
use super::response_resources::ResponseResources;
use rmcp::model::{
    ClientJsonRpcMessage, ClientNotification, ClientRequest, JsonRpcMessage, RequestId,
};
use std::collections::{HashMap, VecDeque};
use std::hash::{BuildHasher as _, RandomState};
use tokio_util::sync::CancellationToken;

/// The maximum number of in-flight requests per weight. The session limits separately how many of
/// the heavy ones run at once.
const MAX_IN_FLIGHT: usize = 64;
/// The number of cancelled ids that are remembered. After that many more cancellations, the old
/// request is assumed to have ended.
const MAX_CANCELLED: usize = 4096;

/// The cost of a request. Each weight has its own limit, so that a client with many calls in flight
/// can still ping the server and list its tools.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Weight {
    /// Answered from the server's own state: a ping, a list, a handshake.
    Light,
    /// Runs a plugin, or stays open.
    Heavy,
}

/// The request table of one client.
#[derive(Debug, Default)]
pub(crate) struct InFlightRequests {
    requests: HashMap<RequestId, InFlightRequest>,
    /// Hashes of the cancelled ids, which bound the memory that long ids take.
    cancelled: VecDeque<u64>,
    hash_state: RandomState,
}

/// The reason why a request is rejected.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(crate) enum AdmissionError {
    #[error(
        "a request of this id is still being answered, or was cancelled; no id may be used twice"
    )]
    Duplicate,
    #[error("the id is longer than {MAX_LENGTH} bytes, the most that is accepted")]
    LongId,
    #[error(
        "{MAX_IN_FLIGHT} requests are in flight, the most that is accepted; wait for a response before the next request"
    )]
    Busy,
}

impl InFlightRequests {
    /// Records a request. Returns a token that is cancelled with the request, for calls that `rmcp`
    /// does not know of.
    pub(crate) fn begin(
        &mut self,
        id: &RequestId,
        weight: Weight,
    ) -> Result<CancellationToken, AdmissionError> {
        if is_long(id) {
            return Err(AdmissionError::LongId);
        }
        if self.requests.contains_key(id) || self.cancelled.contains(&self.hash(id)) {
            return Err(AdmissionError::Duplicate);
        }
        if self.requests.values().filter(|known| known.weight == weight).count() >= MAX_IN_FLIGHT {
            return Err(AdmissionError::Busy);
        }
        let cancelled = CancellationToken::new();
        self.requests.insert(
            id.clone(),
            InFlightRequest { weight, cancelled: cancelled.clone(), resources: None },
        );
        Ok(cancelled)
    }

    /// Removes the request if it is still the one that `begin` returned this token for. Returns
    /// false if it was cancelled, so that it must not be answered. Must be called before the
    /// response is written: the client may reuse the id as soon as it has read the response.
    pub(crate) fn finish(&mut self, id: &RequestId, cancelled: &CancellationToken) -> bool {
        !cancelled.is_cancelled() && self.requests.remove(id).is_some()
    }

    /// Attaches the resources for its response to an in-flight request.
    pub(crate) fn attach(&mut self, id: &RequestId, resources: &ResponseResources) {
        if let Some(known) = self.requests.get_mut(id) {
            known.resources = Some(resources.clone());
        }
    }

    /// Removes a request that is about to be answered, or will not be. Returns the resources for
    /// its response, if there are any.
    pub(crate) fn remove(&mut self, id: &RequestId) -> Option<ResponseResources> {
        self.requests.remove(id)?.resources
    }

    /// Cancels a request, which may still wait in its transport.
    pub(crate) fn cancel(&mut self, id: &RequestId, is_waiting: bool) {
        let known = self.requests.remove(id);
        if let Some(known) = &known {
            known.cancelled.cancel();
        }
        if known.is_some() || is_waiting {
            if self.cancelled.len() >= MAX_CANCELLED {
                self.cancelled.pop_front();
            }
            self.cancelled.push_back(self.hash(id));
        }
    }

    /// Returns true if no request is in flight.
    pub(crate) fn is_empty(&self) -> bool {
        self.requests.is_empty()
    }

    fn hash(&self, id: &RequestId) -> u64 {
        self.hash_state.hash_one(id)
    }
}

impl Weight {
    /// Returns the weight of a request.
    pub(crate) fn of(request: &ClientRequest) -> Self {
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
pub(crate) fn cancelled_request(message: &ClientJsonRpcMessage) -> Option<&RequestId> {
    let JsonRpcMessage::Notification(notification) = message else { return None };
    match &notification.notification {
        ClientNotification::CancelledNotification(cancelled) => {
            cancelled.params.request_id.as_ref()
        }
        _ => None,
    }
}

/// A request in the table.
#[derive(Debug)]
struct InFlightRequest {
    weight: Weight,
    /// Cancelled when the request is.
    cancelled: CancellationToken,
    /// The resources for the response.
    resources: Option<ResponseResources>,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn id(number: usize) -> RequestId {
        RequestId::String(number.to_string().into())
    }

    #[test]
    fn heavy_requests_are_bounded_and_have_unique_ids() {
        let mut requests = InFlightRequests::default();
        assert!(
            (0..MAX_IN_FLIGHT).all(|number| requests.begin(&id(number), Weight::Heavy).is_ok())
        );
        assert_eq!(
            requests.begin(&id(MAX_IN_FLIGHT), Weight::Heavy).err(),
            Some(AdmissionError::Busy)
        );
        assert_eq!(requests.begin(&id(0), Weight::Heavy).err(), Some(AdmissionError::Duplicate));
        requests.remove(&id(0));
        assert!(requests.begin(&id(0), Weight::Heavy).is_ok(), "what was answered is over");
    }

    #[test]
    fn light_requests_have_their_own_limit() {
        let mut requests = InFlightRequests::default();
        assert!(
            (0..MAX_IN_FLIGHT).all(|number| requests.begin(&id(number), Weight::Heavy).is_ok())
        );
        assert!(
            (MAX_IN_FLIGHT..2 * MAX_IN_FLIGHT)
                .all(|number| requests.begin(&id(number), Weight::Light).is_ok())
        );
        assert_eq!(
            requests.begin(&id(2 * MAX_IN_FLIGHT), Weight::Light).err(),
            Some(AdmissionError::Busy)
        );
    }

    #[test]
    fn answer_releases_its_id_and_cancelled_requests_get_none() {
        let mut requests = InFlightRequests::default();
        let first = requests.begin(&id(1), Weight::Heavy).expect("it is new");
        assert!(requests.finish(&id(1), &first) && !requests.finish(&id(1), &first));
        let again = requests.begin(&id(1), Weight::Heavy).expect("it was answered");
        requests.cancel(&id(1), false);
        assert!(!requests.finish(&id(1), &again));
        // Even if the id is forgotten and used again, the old response must not pass for the new
        // one.
        requests.cancelled.clear();
        let new = requests.begin(&id(1), Weight::Heavy).expect("it is new");
        assert!(!requests.finish(&id(1), &again) && requests.finish(&id(1), &new));
    }

    #[test]
    fn id_length_is_bounded() {
        let of = |bytes: usize| RequestId::String("x".repeat(bytes).into());
        let mut requests = InFlightRequests::default();
        assert!(requests.begin(&of(MAX_LENGTH), Weight::Heavy).is_ok());
        assert_eq!(
            requests.begin(&of(MAX_LENGTH + 1), Weight::Heavy).err(),
            Some(AdmissionError::LongId)
        );
    }

    #[test]
    fn recently_cancelled_ids_are_remembered() {
        let mut requests = InFlightRequests::default();
        for number in 0..=MAX_CANCELLED {
            let ends = requests.begin(&id(number), Weight::Heavy).expect("it is new");
            requests.cancel(&id(number), false);
            assert!(ends.is_cancelled());
        }
        assert!(requests.begin(&id(0), Weight::Heavy).is_ok());
        assert_eq!(requests.begin(&id(1), Weight::Heavy).err(), Some(AdmissionError::Duplicate));
        requests.cancel(&id(MAX_CANCELLED + 7), false);
        assert!(
            requests.begin(&id(MAX_CANCELLED + 7), Weight::Heavy).is_ok(),
            "nothing was cancelled there"
        );
        requests.cancel(&id(MAX_CANCELLED + 8), true);
        assert_eq!(
            requests.begin(&id(MAX_CANCELLED + 8), Weight::Heavy).err(),
            Some(AdmissionError::Duplicate),
            "it waited"
        );
    }
}
