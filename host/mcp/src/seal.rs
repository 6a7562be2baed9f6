//! Signed state that travels through a client: only this process can create it, and it is valid for
//! one purpose, for a limited time, and once.
//!
//! The state is authenticated, not encrypted: the client knows its content anyway. The MAC is keyed
//! BLAKE3, with a key that lives as long as the process.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;
use tokio::time::Instant;

/// The maximum length of a state, in characters.
const MAX_LENGTH: usize = 384 << 10;
/// The maximum number of used states that are remembered. A client has at most as many as are free,
/// so that none takes them all. Above that its states are rejected until some expire: a state that
/// was forgotten early could be replayed.
const MAX_SPENT: usize = 100_000;
/// The length of the MAC, in bytes.
const SEAL: usize = blake3::OUT_LEN;

/// Signs and verifies states.
pub(super) struct Sealer {
    key: [u8; blake3::KEY_LEN],
    start: Instant,
    spent: Mutex<Spent>,
}

/// The used states, with their expiry, by client.
#[derive(Default)]
struct Spent {
    clients: HashMap<String, HashMap<u128, u64>>,
    count: usize,
}

/// The reason why a state is rejected. [`Self::Foreign`] covers every kind of tampering, so that
/// errors tell an attacker nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(super) enum Unsealed {
    #[error(
        "the `requestState` is not one that was made for this call, or has been used: make the call again without it"
    )]
    Foreign,
    #[error("the `requestState` has expired: make the call again without it")]
    Expired,
    #[error("too many answers at once: make the call again in a few minutes")]
    Crowded,
}

#[derive(Serialize, Deserialize)]
struct Envelope<P, T> {
    nonce: u128,
    /// The expiry, in milliseconds of the sealer's own clock.
    until: u64,
    /// The only purpose that the state is valid for.
    purpose: P,
    body: T,
}

impl Sealer {
    pub(super) fn new() -> Result<Self, getrandom::Error> {
        let mut key = [0; blake3::KEY_LEN];
        getrandom::fill(&mut key)?;
        Ok(Self { key, start: Instant::now(), spent: Mutex::default() })
    }

    /// Signs a state that is valid for this purpose and this long. `None` without random numbers
    /// from the system, or if the state would be too long.
    pub(super) fn seal<P: Serialize, T: Serialize>(
        &self,
        purpose: P,
        body: T,
        lifetime: Duration,
    ) -> Option<String> {
        let mut nonce = [0; 16];
        getrandom::fill(&mut nonce).ok()?;
        let until = self.now().saturating_add(millis(lifetime));
        let envelope = Envelope { nonce: u128::from_ne_bytes(nonce), until, purpose, body };
        let mut bytes = serde_json::to_vec(&envelope).ok()?;
        bytes.extend(blake3::keyed_hash(&self.key, &bytes).as_bytes());
        Some(URL_SAFE_NO_PAD.encode(bytes)).filter(|text| text.len() <= MAX_LENGTH)
    }

    /// Verifies a state that was signed for this purpose, and marks it as used by this client.
    pub(super) fn open<P: DeserializeOwned + PartialEq, T: DeserializeOwned>(
        &self,
        client: &str,
        text: &str,
        purpose: &P,
    ) -> Result<T, Unsealed> {
        let bytes = self.authentic(text).ok_or(Unsealed::Foreign)?;
        let envelope: Envelope<P, T> =
            serde_json::from_slice(&bytes).map_err(|_| Unsealed::Foreign)?;
        if envelope.purpose != *purpose {
            return Err(Unsealed::Foreign);
        }
        if envelope.until < self.now() {
            return Err(Unsealed::Expired);
        }
        self.spend(client, envelope.nonce, envelope.until)?;
        Ok(envelope.body)
    }

    fn authentic(&self, text: &str) -> Option<Vec<u8>> {
        if text.len() > MAX_LENGTH {
            return None;
        }
        let mut bytes = URL_SAFE_NO_PAD.decode(text).ok()?;
        let seal: [u8; SEAL] = bytes.split_off(bytes.len().checked_sub(SEAL)?).try_into().ok()?;
        // The equality of `blake3::Hash` runs in constant time.
        (blake3::keyed_hash(&self.key, &bytes) == blake3::Hash::from_bytes(seal)).then_some(bytes)
    }

    fn spend(&self, client: &str, nonce: u128, until: u64) -> Result<(), Unsealed> {
        let mut spent = self.spent.lock().unwrap_or_else(PoisonError::into_inner);
        if !spent.has_room(client) {
            spent.forget_before(self.now());
        }
        if !spent.has_room(client) {
            return Err(Unsealed::Crowded);
        }
        spent.add(client, nonce, until).then_some(()).ok_or(Unsealed::Foreign)
    }

    fn now(&self) -> u64 {
        millis(self.start.elapsed())
    }
}

impl Spent {
    fn has_room(&self, client: &str) -> bool {
        let free = MAX_SPENT.saturating_sub(self.count);
        free > 0 && self.clients.get(client).map_or(0, HashMap::len) < free
    }

    fn forget_before(&mut self, now: u64) {
        self.clients.retain(|_, spent| {
            spent.retain(|_, until| *until >= now);
            !spent.is_empty()
        });
        self.count = self.clients.values().map(HashMap::len).sum();
    }

    /// Adds a state. Returns false if it is known.
    fn add(&mut self, client: &str, nonce: u128, until: u64) -> bool {
        let is_new =
            self.clients.entry(client.to_owned()).or_default().insert(nonce, until).is_none();
        self.count += usize::from(is_new);
        is_new
    }
}

fn millis(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]

    use super::*;

    const LIFETIME: Duration = Duration::from_secs(300);

    fn sealed(sealer: &Sealer) -> String {
        sealer.seal("this", vec![1, 2, 3], LIFETIME).unwrap()
    }

    fn open(sealer: &Sealer, text: &str) -> Result<Vec<u8>, Unsealed> {
        open_as("client", sealer, text)
    }

    fn open_as(client: &str, sealer: &Sealer, text: &str) -> Result<Vec<u8>, Unsealed> {
        sealer.open(client, text, &"this".to_owned())
    }

    #[tokio::test(start_paused = true)]
    async fn state_opens_once() {
        let sealer = Sealer::new().unwrap();
        let text = sealed(&sealer);
        assert_eq!(open(&sealer, &text), Ok(vec![1, 2, 3]));
        assert_eq!(open(&sealer, &text), Err(Unsealed::Foreign));
        assert_ne!(sealed(&sealer), sealed(&sealer), "no two states are equal");
    }

    #[tokio::test(start_paused = true)]
    async fn modified_state_is_refused() {
        let sealer = Sealer::new().unwrap();
        let text = sealed(&sealer);
        for place in 0..text.len() {
            let mut other = text.clone().into_bytes();
            other[place] = if other[place] == b'A' { b'B' } else { b'A' };
            let other = String::from_utf8(other).unwrap();
            if other != text {
                assert_eq!(open(&sealer, &other), Err(Unsealed::Foreign), "at {place}");
            }
        }
        for other in [
            "",
            "x",
            &text[1..],
            &text[..text.len() - 1],
            &format!("{text}A"),
            &format!("{text}-TAMPERED"),
        ] {
            assert_eq!(open(&sealer, other), Err(Unsealed::Foreign), "{other}");
        }
        assert!(open(&sealer, &text).is_ok(), "none of them has used it up");
    }

    #[tokio::test(start_paused = true)]
    async fn state_is_bound_to_purpose_process_and_time() {
        let sealer = Sealer::new().unwrap();
        let other = Sealer::new().unwrap();
        let text = sealed(&sealer);
        assert_eq!(
            sealer.open::<_, Vec<u8>>("client", &text, &"that".to_owned()),
            Err(Unsealed::Foreign)
        );
        assert_eq!(open(&other, &text), Err(Unsealed::Foreign));
        tokio::time::advance(LIFETIME + Duration::from_millis(1)).await;
        assert_eq!(open(&sealer, &text), Err(Unsealed::Expired));
        let text = sealed(&sealer);
        tokio::time::advance(LIFETIME).await;
        assert!(open(&sealer, &text).is_ok(), "to its last millisecond");
    }

    #[tokio::test(start_paused = true)]
    async fn state_length_is_bounded() {
        let sealer = Sealer::new().unwrap();
        let of = |length: usize| sealer.seal("this", "x".repeat(length), LIFETIME);
        // The nonce has up to 39 digits, so that the length differs from state to state.
        let room = MAX_LENGTH / 4 * 3
            - SEAL
            - r#"{"nonce":,"until":300000,"purpose":"this","body":""}"#.len();
        let text = (0..10_000)
            .find_map(|_| of(room - 39).filter(|text| text.len() == MAX_LENGTH))
            .unwrap();
        assert!(sealer.open::<_, String>("client", &text, &"this".to_owned()).is_ok());
        assert_eq!(of(room), None);
        let mut bytes = serde_json::to_vec(&Envelope {
            nonce: 1,
            until: u64::MAX,
            purpose: "this",
            body: "x".repeat(room),
        })
        .unwrap();
        bytes.extend(blake3::keyed_hash(&sealer.key, &bytes).as_bytes());
        let longer = URL_SAFE_NO_PAD.encode(bytes);
        assert!(longer.len() > MAX_LENGTH);
        assert_eq!(
            sealer.open::<_, String>("client", &longer, &"this".to_owned()),
            Err(Unsealed::Foreign)
        );
    }

    #[tokio::test(start_paused = true)]
    async fn used_states_are_remembered_until_they_expire() {
        let sealer = Sealer::new().unwrap();
        let kept = sealed(&sealer);
        let used = sealed(&sealer);
        assert!(open(&sealer, &used).is_ok());
        let until = sealer.now() + 1000;
        for nonce in 0.. {
            if sealer.spend("client", nonce, until).is_err() {
                break;
            }
        }
        assert_eq!(sealer.spent.lock().unwrap().count, MAX_SPENT / 2);
        assert_eq!(open(&sealer, &used), Err(Unsealed::Crowded));
        assert_eq!(open(&sealer, &kept), Err(Unsealed::Crowded));
        assert!(
            open_as("another", &sealer, &sealed(&sealer)).is_ok(),
            "no client takes all of them"
        );
        tokio::time::advance(Duration::from_secs(2)).await;
        assert_eq!(open(&sealer, &used), Err(Unsealed::Foreign));
        assert!(open(&sealer, &kept).is_ok());
    }
}
