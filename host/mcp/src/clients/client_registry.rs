//! The registry of stateless HTTP clients, identified by their token, their address and the name
//! that they claim.
//!
//! The name is unverified and grants no rights. It decides only which calls share a limit and the
//! shares of a session, which are within those of the token and address, and which questions belong
//! together.

use super::client::{Client, TransportKind};
use crate::http::{Caller, ClientAddress};
use palisade::Host;
use palisade::tool::Digest;
use rmcp::model::Implementation;
use std::cmp::Reverse;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::time::Instant;

/// The maximum number of known clients. Above it, of the clients of the caller that has the most,
/// the one that has been idle longest is evicted, because a caller can claim any number of names.
const MAX_CLIENTS: usize = 64;
/// The idle timeout of a client.
const IDLE_TIMEOUT: Duration = Duration::from_secs(600);

/// The identity of a client. Its name and version are hashed, since they may be long.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct ClientIdentity {
    caller: Option<Caller>,
    address: Option<ClientAddress>,
    info: Option<Digest>,
}

impl ClientIdentity {
    /// Creates the identity of a client with this token and address, which may claim a name and
    /// version.
    pub(crate) fn new(
        (caller, address): (Option<Caller>, Option<ClientAddress>),
        info: Option<&Implementation>,
    ) -> Self {
        let digest = |info: &Implementation| {
            Digest::of(format!("{}\0{}", info.name, info.version).as_bytes())
        };
        Self { caller, address, info: info.map(digest) }
    }

    /// Returns the caller, to whose shares the client belongs.
    fn sender(&self) -> Option<Digest> {
        Some(self.caller?.at(self.address?))
    }

    /// Returns true if both clients belong to one caller.
    fn has_sender_of(&self, other: &Self) -> bool {
        (self.caller, self.address) == (other.caller, other.address)
    }
}

/// The known clients.
#[derive(Default)]
pub(crate) struct ClientRegistry(Mutex<HashMap<ClientIdentity, KnownClient>>);

impl ClientRegistry {
    /// Cancels the calls of all known clients.
    pub(crate) fn disconnect_all(&self) {
        let known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        known.values().for_each(|known| known.client.disconnect());
    }

    /// Returns the client with this identity, adding it if necessary.
    pub(crate) fn get_or_add(&self, host: &Host, identity: ClientIdentity) -> Arc<Client> {
        let now = Instant::now();
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        // Eviction cancels no call: an in-flight call keeps its client alive.
        known.retain(|_, known| now.saturating_duration_since(known.seen) < IDLE_TIMEOUT);
        if known.len() >= MAX_CLIENTS && !known.contains_key(&identity) {
            to_evict(&known).and_then(|evicted| known.remove(&evicted));
        }
        let sender = identity.sender();
        let make = || {
            let client = match sender {
                Some(sender) => Client::of_caller(host, sender),
                None => Client::new(host, TransportKind::Http),
            };
            KnownClient { client: Arc::new(client), seen: now }
        };
        let known = known.entry(identity).or_insert_with(make);
        known.seen = now;
        known.client.clone()
    }
}

/// Returns the client to evict: the one that has been idle longest of the caller with the most.
fn to_evict(known: &HashMap<ClientIdentity, KnownClient>) -> Option<ClientIdentity> {
    let of_sender =
        |one: &ClientIdentity| known.keys().filter(|other| other.has_sender_of(one)).count();
    let evicted = known.iter().max_by_key(|(one, known)| (of_sender(one), Reverse(known.seen)));
    evicted.map(|(identity, _)| identity.clone())
}

/// A client, with the time of its last request.
struct KnownClient {
    client: Arc<Client>,
    seen: Instant,
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]

    use super::*;
    use palisade::plugins::Shipped;
    use std::net::IpAddr;

    fn named(name: &str) -> ClientIdentity {
        let sender = (Some(Caller::Unauthenticated), Some(ClientAddress::Local));
        ClientIdentity::new(sender, Some(&Implementation::new(name, "1")))
    }

    fn host() -> Host {
        let place = std::env::temp_dir();
        Host::builder().workspace(place).shipped(Shipped::LeftOut).build().unwrap()
    }

    #[tokio::test(start_paused = true)]
    async fn client_is_identified_by_name_token_and_address() {
        let host = host();
        let known = ClientRegistry::default();
        let one = known.get_or_add(&host, named("one"));
        assert!(Arc::ptr_eq(&one, &known.get_or_add(&host, named("one"))));
        assert!(!Arc::ptr_eq(&one, &known.get_or_add(&host, named("two"))));
        let (info, local) = (Implementation::new("one", "1"), Some(ClientAddress::Local));
        let remote = Some(ClientAddress::from(IpAddr::from([192, 0, 2, 1])));
        let caller = Some(Caller::Unauthenticated);
        let bearer = Some(Caller::Bearer(blake3::hash(b"token")));
        for other in [
            ClientIdentity::new((caller, local), None),
            ClientIdentity::new((bearer, local), Some(&info)),
            ClientIdentity::new((caller, remote), Some(&info)),
        ] {
            assert!(!Arc::ptr_eq(&one, &known.get_or_add(&host, other)));
        }
    }

    #[tokio::test(start_paused = true)]
    async fn known_clients_are_bounded_and_expire() {
        let host = host();
        let known = ClientRegistry::default();
        let first = known.get_or_add(&host, named("first"));
        for number in 1..MAX_CLIENTS {
            tokio::time::advance(Duration::from_millis(1)).await;
            known.get_or_add(&host, named(&number.to_string()));
        }
        assert!(Arc::ptr_eq(&first, &known.get_or_add(&host, named("first"))));
        tokio::time::advance(Duration::from_millis(1)).await;
        known.get_or_add(&host, named("one more"));
        assert!(
            Arc::ptr_eq(&first, &known.get_or_add(&host, named("first"))),
            "another was there for longer"
        );
        tokio::time::advance(IDLE_TIMEOUT).await;
        assert!(!Arc::ptr_eq(&first, &known.get_or_add(&host, named("first"))));
    }

    #[tokio::test(start_paused = true)]
    async fn caller_with_many_names_evicts_no_client_of_another() {
        let host = host();
        let known = ClientRegistry::default();
        let remote = Some(ClientAddress::from(IpAddr::from([192, 0, 2, 1])));
        let info = Implementation::new("first", "1");
        let identity = || ClientIdentity::new((Some(Caller::Unauthenticated), remote), Some(&info));
        let first = known.get_or_add(&host, identity());
        for number in 0..2 * MAX_CLIENTS {
            tokio::time::advance(Duration::from_millis(1)).await;
            known.get_or_add(&host, named(&number.to_string()));
        }
        assert!(Arc::ptr_eq(&first, &known.get_or_add(&host, identity())));
    }
}
