//! The registry of stateless HTTP clients, identified by their token, their address and the name
//! that they claim.
//!
//! The name is unverified and grants no rights. It decides only which calls share a limit and the
//! shares of a session, which are within those of the token and address, and which questions belong
//! together.

use super::client::Client;
use super::client_session::TransportKind;
use super::session_factory::SessionFactory;
use crate::http::{Caller, ClientAddress};
use palisade::tool::Digest;
use rmcp::model::Implementation;
use std::cmp::Reverse;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;
use tokio::time::{Instant, sleep_until};

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
pub(crate) struct ClientRegistry(Arc<Mutex<Table>>);

#[derive(Default)]
struct Table {
    known: HashMap<ClientIdentity, KnownClient>,
    expiry: Expiry,
}

/// Whether a task removes the clients that are idle for too long.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
enum Expiry {
    /// There is no client.
    #[default]
    Stopped,
    Running,
}

impl ClientRegistry {
    /// Cancels the calls of all known clients.
    pub(crate) fn disconnect_all(&self) {
        let clients: Vec<_> =
            lock(&self.0).known.values().map(|known| known.client.clone()).collect();
        clients.iter().for_each(|client| client.disconnect());
    }

    /// Returns the client with this identity, adding it if necessary, such as after the end of its
    /// session. Must be called inside a runtime.
    pub(crate) fn get_or_add(
        &self,
        sessions: &SessionFactory,
        identity: ClientIdentity,
    ) -> Arc<Client> {
        let now = Instant::now();
        let mut table = lock(&self.0);
        // A client is dropped outside of the lock, since the end of its session is reported then.
        // Eviction cancels no call: an in-flight call keeps its client alive.
        let mut gone = table.take_expired(now);
        let mut known = table.known.remove(&identity);
        if known.as_ref().is_some_and(|known| known.client.has_disconnected()) {
            gone.extend(known.take());
        }
        if known.is_none() && table.known.len() >= MAX_CLIENTS {
            gone.extend(to_evict(&table.known).and_then(|evicted| table.known.remove(&evicted)));
        }
        let known = known.unwrap_or_else(|| {
            let client = match identity.sender() {
                Some(sender) => Client::of_caller(sessions, sender),
                None => Client::new(sessions, TransportKind::Http),
            };
            KnownClient { client: Arc::new(client), seen: now }
        });
        let client = known.client.clone();
        table.known.insert(identity, KnownClient { seen: now, ..known });
        if table.expiry == Expiry::Stopped {
            table.expiry = Expiry::Running;
            tokio::spawn(expire(Arc::downgrade(&self.0)));
        }
        drop(table);
        drop(gone);
        client
    }
}

impl Table {
    /// Removes the clients that have been idle for too long.
    fn take_expired(&mut self, now: Instant) -> Vec<KnownClient> {
        let is_idle =
            |known: &KnownClient| now.saturating_duration_since(known.seen) >= IDLE_TIMEOUT;
        self.known.extract_if(|_, known| is_idle(known)).map(|(_, known)| known).collect()
    }

    /// Returns the time at which the next client has been idle for too long. Stops the expiry if
    /// there is none.
    fn next_expiry(&mut self) -> Option<Instant> {
        let earliest = self.known.values().map(|known| known.seen).min();
        if earliest.is_none() {
            self.expiry = Expiry::Stopped;
        }
        earliest.map(|seen| seen + IDLE_TIMEOUT)
    }
}

/// Removes clients when they have been idle for too long, as long as there are any.
async fn expire(table: Weak<Mutex<Table>>) {
    loop {
        let next = {
            let Some(table) = table.upgrade() else { return };
            let mut table = lock(&table);
            let gone = table.take_expired(Instant::now());
            let next = table.next_expiry();
            drop(table);
            drop(gone);
            next
        };
        match next {
            Some(next) => sleep_until(next).await,
            None => return,
        }
    }
}

fn lock(table: &Mutex<Table>) -> MutexGuard<'_, Table> {
    table.lock().unwrap_or_else(PoisonError::into_inner)
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
    use palisade::Host;
    use palisade::plugins::Shipped;
    use std::net::IpAddr;

    fn named(name: &str) -> ClientIdentity {
        let sender = (Some(Caller::Unauthenticated), Some(ClientAddress::Local));
        ClientIdentity::new(sender, Some(&Implementation::new(name, "1")))
    }

    fn sessions() -> SessionFactory {
        let place = std::env::temp_dir();
        let host = Host::builder().workspace(place).shipped(Shipped::LeftOut).build().unwrap();
        SessionFactory::new(Arc::new(host), None).unwrap()
    }

    #[tokio::test(start_paused = true)]
    async fn client_is_identified_by_name_token_and_address() {
        let sessions = sessions();
        let known = ClientRegistry::default();
        let one = known.get_or_add(&sessions, named("one"));
        assert!(Arc::ptr_eq(&one, &known.get_or_add(&sessions, named("one"))));
        assert!(!Arc::ptr_eq(&one, &known.get_or_add(&sessions, named("two"))));
        let (info, local) = (Implementation::new("one", "1"), Some(ClientAddress::Local));
        let remote = Some(ClientAddress::from(IpAddr::from([192, 0, 2, 1])));
        let caller = Some(Caller::Unauthenticated);
        let bearer = Some(Caller::Bearer(blake3::hash(b"token")));
        for other in [
            ClientIdentity::new((caller, local), None),
            ClientIdentity::new((bearer, local), Some(&info)),
            ClientIdentity::new((caller, remote), Some(&info)),
        ] {
            assert!(!Arc::ptr_eq(&one, &known.get_or_add(&sessions, other)));
        }
    }

    #[tokio::test(start_paused = true)]
    async fn known_clients_are_bounded_and_expire() {
        let sessions = sessions();
        let known = ClientRegistry::default();
        let first = known.get_or_add(&sessions, named("first"));
        for number in 1..MAX_CLIENTS {
            tokio::time::advance(Duration::from_millis(1)).await;
            known.get_or_add(&sessions, named(&number.to_string()));
        }
        assert!(Arc::ptr_eq(&first, &known.get_or_add(&sessions, named("first"))));
        tokio::time::advance(Duration::from_millis(1)).await;
        known.get_or_add(&sessions, named("one more"));
        assert!(
            Arc::ptr_eq(&first, &known.get_or_add(&sessions, named("first"))),
            "another was there for longer"
        );
        tokio::time::advance(IDLE_TIMEOUT).await;
        assert!(!Arc::ptr_eq(&first, &known.get_or_add(&sessions, named("first"))));
    }

    #[tokio::test(start_paused = true)]
    async fn caller_with_many_names_evicts_no_client_of_another() {
        let sessions = sessions();
        let known = ClientRegistry::default();
        let remote = Some(ClientAddress::from(IpAddr::from([192, 0, 2, 1])));
        let info = Implementation::new("first", "1");
        let identity = || ClientIdentity::new((Some(Caller::Unauthenticated), remote), Some(&info));
        let first = known.get_or_add(&sessions, identity());
        for number in 0..2 * MAX_CLIENTS {
            tokio::time::advance(Duration::from_millis(1)).await;
            known.get_or_add(&sessions, named(&number.to_string()));
        }
        assert!(Arc::ptr_eq(&first, &known.get_or_add(&sessions, identity())));
    }
    #[tokio::test(start_paused = true)]
    async fn session_of_an_idle_client_ends_without_a_further_request() {
        let sessions = sessions();
        let known = ClientRegistry::default();
        let session = known.get_or_add(&sessions, named("one")).end_token();
        tokio::time::sleep(IDLE_TIMEOUT - Duration::from_secs(1)).await;
        // A request makes the time begin again.
        drop(known.get_or_add(&sessions, named("one")));
        tokio::time::sleep(IDLE_TIMEOUT - Duration::from_secs(1)).await;
        assert!(!session.is_cancelled());
        tokio::time::sleep(Duration::from_secs(2)).await;
        assert!(session.is_cancelled());
        let next = known.get_or_add(&sessions, named("one")).end_token();
        tokio::time::sleep(2 * IDLE_TIMEOUT).await;
        assert!(next.is_cancelled(), "the expiry runs again with the next client");
    }

    #[tokio::test(start_paused = true)]
    async fn client_whose_session_was_ended_gets_a_new_one() {
        let sessions = sessions();
        let known = ClientRegistry::default();
        let first = known.get_or_add(&sessions, named("one"));
        first.disconnect();
        let second = known.get_or_add(&sessions, named("one"));
        assert!(!Arc::ptr_eq(&first, &second) && !second.has_disconnected());
        assert_ne!(first.name(), second.name());
    }
}
