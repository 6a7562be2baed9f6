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
use std::io;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;
use tokio::time::Instant;

/// The maximum length of a state, in characters.
const MAX_LENGTH: usize = 384 << 10;
/// The maximum number of used states that are remembered. A client has at most as many as are free,
/// so that none takes them all. Above that its states are rejected until some expire: a state that
/// was forgotten early could be replayed.
const MAX_USED: usize = 100_000;
/// The length of the MAC, in bytes.
const MAC_LENGTH: usize = blake3::OUT_LEN;

/// Signs and verifies states.
pub(crate) struct StateSigner {
    key: [u8; blake3::KEY_LEN],
    start: Instant,
    used: Mutex<UsedStates>,
}

/// The reason why a state is rejected. [`Self::Foreign`] covers every kind of tampering, so that
/// errors tell an attacker nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(crate) enum StateError {
    /// The state was not made for this call, or was used.
    #[error(
        "the `requestState` is not one that was made for this call, or has been used: make the call again without it. A program may have changed something before its question: look at that first"
    )]
    Foreign,
    /// The state has expired.
    #[error(
        "the `requestState` has expired: make the call again without it. A program may have changed something before its question: look at that first"
    )]
    Expired,
    /// Too many used states are remembered.
    #[error("too many answers at once: make the call again in a few minutes")]
    Crowded,
}

impl StateSigner {
    /// Creates a signer with a key of its own.
    ///
    /// # Errors
    ///
    /// Fails if the system provides no random numbers.
    pub(crate) fn new() -> io::Result<Self> {
        let mut key = [0; blake3::KEY_LEN];
        getrandom::fill(&mut key).map_err(io::Error::other)?;
        Ok(Self { key, start: Instant::now(), used: Mutex::default() })
    }

    /// Signs a state that is valid for this purpose and this long. `None` without random numbers
    /// from the system, or if the state would be too long.
    pub(crate) fn sign<P: Serialize, T: Serialize>(
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
    pub(crate) fn verify<P: DeserializeOwned + PartialEq, T: DeserializeOwned>(
        &self,
        client: &str,
        text: &str,
        purpose: &P,
    ) -> Result<T, StateError> {
        let bytes = self.authenticated(text).ok_or(StateError::Foreign)?;
        let envelope: Envelope<P, T> =
            serde_json::from_slice(&bytes).map_err(|_| StateError::Foreign)?;
        if envelope.purpose != *purpose {
            return Err(StateError::Foreign);
        }
        if envelope.until < self.now() {
            return Err(StateError::Expired);
        }
        self.mark_used(client, envelope.nonce, envelope.until)?;
        Ok(envelope.body)
    }

    fn authenticated(&self, text: &str) -> Option<Vec<u8>> {
        if text.len() > MAX_LENGTH {
            return None;
        }
        let mut bytes = URL_SAFE_NO_PAD.decode(text).ok()?;
        let mac: [u8; MAC_LENGTH] =
            bytes.split_off(bytes.len().checked_sub(MAC_LENGTH)?).try_into().ok()?;
        // The equality of `blake3::Hash` runs in constant time.
        (blake3::keyed_hash(&self.key, &bytes) == blake3::Hash::from_bytes(mac)).then_some(bytes)
    }

    fn mark_used(&self, client: &str, nonce: u128, until: u64) -> Result<(), StateError> {
        let mut used = self.used.lock().unwrap_or_else(PoisonError::into_inner);
        if !used.has_room(client) {
            used.forget_before(self.now());
        }
        if !used.has_room(client) {
            return Err(StateError::Crowded);
        }
        used.add(client, nonce, until).then_some(()).ok_or(StateError::Foreign)
    }

    fn now(&self) -> u64 {
        millis(self.start.elapsed())
    }
}

/// The used states, with their expiry, by client.
#[derive(Default)]
struct UsedStates {
    clients: HashMap<String, HashMap<u128, u64>>,
    count: usize,
}

/// A signed state, as it travels.
#[derive(Serialize, Deserialize)]
struct Envelope<P, T> {
    nonce: u128,
    /// The expiry, in milliseconds of the signer's own clock.
    until: u64,
    /// The only purpose that the state is valid for.
    purpose: P,
    body: T,
}

impl UsedStates {
    fn has_room(&self, client: &str) -> bool {
        let free = MAX_USED.saturating_sub(self.count);
        free > 0 && self.clients.get(client).map_or(0, HashMap::len) < free
    }

    fn forget_before(&mut self, now: u64) {
        self.clients.retain(|_, used| {
            used.retain(|_, until| *until >= now);
            !used.is_empty()
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

    fn signed(signer: &StateSigner) -> String {
        signer.sign("this", vec![1, 2, 3], LIFETIME).unwrap()
    }

    fn open(signer: &StateSigner, text: &str) -> Result<Vec<u8>, StateError> {
        open_as("client", signer, text)
    }

    fn open_as(client: &str, signer: &StateSigner, text: &str) -> Result<Vec<u8>, StateError> {
        signer.verify(client, text, &"this".to_owned())
    }

    #[tokio::test(start_paused = true)]
    async fn state_opens_once() {
        let signer = StateSigner::new().unwrap();
        let text = signed(&signer);
        assert_eq!(open(&signer, &text), Ok(vec![1, 2, 3]));
        assert_eq!(open(&signer, &text), Err(StateError::Foreign));
        assert_ne!(signed(&signer), signed(&signer), "no two states are equal");
    }

    #[tokio::test(start_paused = true)]
    async fn modified_state_is_refused() {
        let signer = StateSigner::new().unwrap();
        let text = signed(&signer);
        for place in 0..text.len() {
            let mut other = text.clone().into_bytes();
            other[place] = if other[place] == b'A' { b'B' } else { b'A' };
            let other = String::from_utf8(other).unwrap();
            if other != text {
                assert_eq!(open(&signer, &other), Err(StateError::Foreign), "at {place}");
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
            assert_eq!(open(&signer, other), Err(StateError::Foreign), "{other}");
        }
        assert!(open(&signer, &text).is_ok(), "none of them has used it up");
    }

    #[tokio::test(start_paused = true)]
    async fn state_is_bound_to_purpose_process_and_time() {
        let signer = StateSigner::new().unwrap();
        let other = StateSigner::new().unwrap();
        let text = signed(&signer);
        assert_eq!(
            signer.verify::<_, Vec<u8>>("client", &text, &"that".to_owned()),
            Err(StateError::Foreign)
        );
        assert_eq!(open(&other, &text), Err(StateError::Foreign));
        tokio::time::advance(LIFETIME + Duration::from_millis(1)).await;
        assert_eq!(open(&signer, &text), Err(StateError::Expired));
        let text = signed(&signer);
        tokio::time::advance(LIFETIME).await;
        assert!(open(&signer, &text).is_ok(), "to its last millisecond");
    }

    #[tokio::test(start_paused = true)]
    async fn state_length_is_bounded() {
        let signer = StateSigner::new().unwrap();
        let of = |length: usize| signer.sign("this", "x".repeat(length), LIFETIME);
        // The nonce has up to 39 digits, so that the length differs from state to state.
        let room = MAX_LENGTH / 4 * 3
            - MAC_LENGTH
            - r#"{"nonce":,"until":300000,"purpose":"this","body":""}"#.len();
        let text = (0..10_000)
            .find_map(|_| of(room - 39).filter(|text| text.len() == MAX_LENGTH))
            .unwrap();
        assert!(signer.verify::<_, String>("client", &text, &"this".to_owned()).is_ok());
        assert_eq!(of(room), None);
        let mut bytes = serde_json::to_vec(&Envelope {
            nonce: 1,
            until: u64::MAX,
            purpose: "this",
            body: "x".repeat(room),
        })
        .unwrap();
        bytes.extend(blake3::keyed_hash(&signer.key, &bytes).as_bytes());
        let longer = URL_SAFE_NO_PAD.encode(bytes);
        assert!(longer.len() > MAX_LENGTH);
        assert_eq!(
            signer.verify::<_, String>("client", &longer, &"this".to_owned()),
            Err(StateError::Foreign)
        );
    }

    #[tokio::test(start_paused = true)]
    async fn used_states_are_remembered_until_they_expire() {
        let signer = StateSigner::new().unwrap();
        let kept = signed(&signer);
        let used = signed(&signer);
        assert!(open(&signer, &used).is_ok());
        let until = signer.now() + 1000;
        for nonce in 0.. {
            if signer.mark_used("client", nonce, until).is_err() {
                break;
            }
        }
        assert_eq!(signer.used.lock().unwrap().count, MAX_USED / 2);
        assert_eq!(open(&signer, &used), Err(StateError::Crowded));
        assert_eq!(open(&signer, &kept), Err(StateError::Crowded));
        assert!(
            open_as("another", &signer, &signed(&signer)).is_ok(),
            "no client takes all of them"
        );
        tokio::time::advance(Duration::from_secs(2)).await;
        assert_eq!(open(&signer, &used), Err(StateError::Foreign));
        assert!(open(&signer, &kept).is_ok());
    }
}
