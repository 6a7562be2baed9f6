//! Who makes requests that stand for themselves: clients known again by what they say of themselves, and by their token.
//!
//! That is their own word, and nothing is allowed because of it; it decides whose calls share a cap, and whose questions belong together.

use super::client::{Client, Transport};
use crate::host::Host;
use crate::http::Caller;
use crate::tool::Digest;
use rmcp::model::Implementation;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::time::Instant;

/// The most clients that are known at once; the one that has not been heard of for the longest time makes room.
const KNOWN: usize = 64;
/// How long a client is known that asks nothing.
const IDLE: Duration = Duration::from_secs(600);

/// What a client is known by. A digest of its own words, which may be long.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct Principal {
    caller: Option<Caller>,
    info: Option<Digest>,
}

impl Principal {
    /// Whoever came through this door, and says this of itself. Nothing need be said.
    pub(super) fn new(caller: Option<Caller>, info: Option<&Implementation>) -> Self {
        let words = |info: &Implementation| Digest::of(format!("{}\0{}", info.name, info.version).as_bytes());
        Self { caller, info: info.map(words) }
    }
}

/// The clients that are known.
#[derive(Default)]
pub(super) struct Principals(Mutex<HashMap<Principal, Known>>);

struct Known {
    client: Arc<Client>,
    seen: Instant,
}

impl Principals {
    /// Ends all that they have begun.
    pub(super) fn leave(&self) {
        let known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        known.values().for_each(|known| known.client.leave());
    }

    /// The client that this is.
    pub(super) fn client(&self, host: &Host, principal: Principal) -> Arc<Client> {
        let now = Instant::now();
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        // Whoever still has a call under way keeps its client by that.
        known.retain(|_, known| now.saturating_duration_since(known.seen) < IDLE);
        if known.len() >= KNOWN && !known.contains_key(&principal) {
            let oldest = known.iter().min_by_key(|(_, known)| known.seen).map(|(principal, _)| principal.clone());
            oldest.and_then(|oldest| known.remove(&oldest));
        }
        let make = || Known { client: Arc::new(Client::new(host, Transport::Http)), seen: now };
        let known = known.entry(principal).or_insert_with(make);
        known.seen = now;
        known.client.clone()
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]

    use super::*;
    use crate::plugins::Shipped;

    fn named(name: &str) -> Principal {
        Principal::new(Some(Caller::Anybody), Some(&Implementation::new(name, "1")))
    }

    fn host() -> Host {
        let place = std::env::temp_dir();
        Host::builder().workspace(place).shipped(Shipped::LeftOut).build().unwrap()
    }

    #[tokio::test(start_paused = true)]
    async fn a_client_is_known_again_by_its_words_and_its_token() {
        let (host, known) = (host(), Principals::default());
        let one = known.client(&host, named("one"));
        assert!(Arc::ptr_eq(&one, &known.client(&host, named("one"))));
        assert!(!Arc::ptr_eq(&one, &known.client(&host, named("two"))));
        assert!(!Arc::ptr_eq(&one, &known.client(&host, Principal::new(Some(Caller::Anybody), None))));
        let bearer = Caller::Bearer(blake3::hash(b"token"));
        let with_token = Principal::new(Some(bearer), Some(&Implementation::new("one", "1")));
        assert!(!Arc::ptr_eq(&one, &known.client(&host, with_token)));
    }

    #[tokio::test(start_paused = true)]
    async fn so_many_are_known_and_each_for_so_long() {
        let (host, known) = (host(), Principals::default());
        let first = known.client(&host, named("first"));
        for number in 1..KNOWN {
            tokio::time::advance(Duration::from_millis(1)).await;
            known.client(&host, named(&number.to_string()));
        }
        assert!(Arc::ptr_eq(&first, &known.client(&host, named("first"))));
        tokio::time::advance(Duration::from_millis(1)).await;
        known.client(&host, named("one more"));
        assert!(Arc::ptr_eq(&first, &known.client(&host, named("first"))), "another was there for longer");
        tokio::time::advance(IDLE).await;
        assert!(!Arc::ptr_eq(&first, &known.client(&host, named("first"))));
    }
}
