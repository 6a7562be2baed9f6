//! The answers to requests with an `Idempotency-Key`, so that a repeated request is not run again.

use super::guarded::Guarded;
use super::kept::{Bounds, Kept};
use super::open_sessions::Owner;
use super::problem::ApiError;
use axum::body::{Body, Bytes};
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use palisade::internal::{Account, Owed};
use palisade::tool::Digest;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::time::Instant;

/// How long an answer is kept, unless newer ones need the room.
const KEPT: Duration = Duration::from_secs(24 * 60 * 60);
/// The number of kept answers, and of requests in flight.
const ANSWERS: usize = 4096;
/// The size of all kept answers, in bytes.
const BYTES: usize = 64 << 20;
/// The longest key, in characters.
const KEY: usize = 255;

/// A complete answer.
#[derive(Debug, Clone)]
pub(super) struct Answer {
    pub(super) status: StatusCode,
    pub(super) content_type: &'static str,
    pub(super) location: Option<String>,
    pub(super) body: Bytes,
    /// The memory of the body, until it is sent.
    pub(super) owed: Option<Arc<Owed>>,
}

impl Answer {
    /// Creates an answer with a JSON body.
    pub(super) fn json(status: StatusCode, value: &impl serde::Serialize) -> Self {
        // Serialization fails only for maps with non-string keys, and there are none.
        let body = serde_json::to_vec(value).unwrap_or_default().into();
        Self { status, content_type: "application/json", location: None, body, owed: None }
    }

    /// Counts the memory of the body for the sender of the request until it is sent. More requests
    /// of a sender that does not read its answers are refused then.
    pub(super) fn counted(self, account: &Account) -> Self {
        let owed = Arc::new(account.owed(self.body.len()));
        Self { owed: Some(owed), ..self }
    }

    /// Returns the answer as it is kept: the tables of kept answers have bounds of their own.
    pub(super) fn to_keep(&self) -> Self {
        Self { owed: None, ..self.clone() }
    }
}

impl IntoResponse for Answer {
    fn into_response(self) -> Response {
        let mut response = Response::new(Body::new(Guarded::new(self.body, self.owed)));
        *response.status_mut() = self.status;
        let headers = response.headers_mut();
        headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(self.content_type));
        if let Some(location) = self.location.and_then(|to| HeaderValue::try_from(to).ok()) {
            headers.insert(header::LOCATION, location);
        }
        response
    }
}

/// What a key stands for: keys of different senders and resources are different.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct Key {
    pub(super) owner: Owner,
    pub(super) path: String,
    pub(super) key: String,
}

/// Reads the key of a request.
pub(super) fn key_of(headers: &HeaderMap) -> Result<Option<String>, ApiError> {
    let name = "idempotency-key";
    let Some(value) = headers.get(name) else { return Ok(None) };
    let accepted = "it has 1 to 255 visible ASCII characters";
    let refused = || ApiError::Header { name, accepted };
    let text = value.to_str().map_err(|_| refused())?;
    let is_fit = (1..=KEY).contains(&text.len()) && text.bytes().all(|b| b.is_ascii_graphic());
    if is_fit { Ok(Some(text.to_owned())) } else { Err(refused()) }
}

#[derive(Default)]
pub(super) struct Answers(Mutex<Table>);

struct Table {
    entries: HashMap<Key, Entry>,
    /// The keys of the kept answers.
    done: Kept<Key>,
    in_flight: usize,
}

impl Default for Table {
    fn default() -> Self {
        let most = Bounds { answers: ANSWERS, bytes: BYTES };
        Self { entries: HashMap::new(), done: Kept::new(most), in_flight: 0 }
    }
}

struct Entry {
    body: Digest,
    answer: Option<(Answer, Instant)>,
}

/// The beginning of a request with a key.
pub(super) enum Begun {
    /// It is the first.
    New(Slot),
    /// It was answered before.
    Known(Answer),
}

/// The place of an answer. Dropping it without one forgets the request.
pub(super) struct Slot {
    answers: Arc<Answers>,
    key: Key,
    is_filled: bool,
}

impl Answers {
    /// Begins a request whose body has this digest.
    pub(super) fn begin(self: &Arc<Self>, key: Key, body: Digest) -> Result<Begun, ApiError> {
        let mut table = self.table();
        table.forget_old();
        match table.entries.get(&key) {
            Some(entry) if entry.body != body => return Err(ApiError::KeyReused),
            Some(Entry { answer: Some((answer, _)), .. }) => {
                return Ok(Begun::Known(answer.clone()));
            }
            Some(Entry { answer: None, .. }) => return Err(ApiError::KeyInFlight),
            None => {}
        }
        if table.in_flight >= ANSWERS {
            return Err(ApiError::KeysFull { limit: ANSWERS });
        }
        table.in_flight += 1;
        table.entries.insert(key.clone(), Entry { body, answer: None });
        Ok(Begun::New(Slot { answers: self.clone(), key, is_filled: false }))
    }

    fn table(&self) -> MutexGuard<'_, Table> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Table {
    fn forget_old(&mut self) {
        loop {
            let is_old = |key: &&Key| {
                let answer = self.entries.get(*key).and_then(|entry| entry.answer.as_ref());
                answer.is_none_or(|(_, at)| at.elapsed() >= KEPT)
            };
            let Some(old) = self.done.oldest().find(is_old).cloned() else { return };
            self.done.remove(&old.owner, &old);
            self.entries.remove(&old);
        }
    }
}

impl Slot {
    /// Keeps the answer.
    pub(super) fn fill(mut self, answer: &Answer) {
        self.is_filled = true;
        let mut table = self.answers.table();
        table.in_flight -= 1;
        let Some(entry) = table.entries.get_mut(&self.key) else { return };
        entry.answer = Some((answer.to_keep(), Instant::now()));
        for key in table.done.add(&self.key.owner, self.key.clone(), answer.body.len()) {
            table.entries.remove(&key);
        }
    }
}

impl Drop for Slot {
    fn drop(&mut self) {
        if !self.is_filled {
            let mut table = self.answers.table();
            table.in_flight -= 1;
            table.entries.remove(&self.key);
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test whose preparation fails has failed")]
    use super::*;

    fn key(key: &str) -> Key {
        Key { owner: Owner::Operators, path: "/calls".to_owned(), key: key.to_owned() }
    }

    fn slot(answers: &Arc<Answers>, of: &str) -> Slot {
        match answers.begin(key(of), Digest::of(b"body")) {
            Ok(Begun::New(slot)) => slot,
            _ => panic!("`{of}` is known"),
        }
    }

    fn is_known(answers: &Arc<Answers>, of: &str) -> bool {
        matches!(answers.begin(key(of), Digest::of(b"body")), Ok(Begun::Known(_)))
    }

    fn answer(bytes: usize) -> Answer {
        let body = Bytes::from(vec![b'x'; bytes]);
        let content_type = "text/plain";
        Answer { status: StatusCode::OK, content_type, location: None, body, owed: None }
    }

    #[tokio::test(start_paused = true)]
    async fn answer_is_kept_for_a_day() {
        let answers = Arc::new(Answers::default());
        let first = slot(&answers, "a");
        assert!(matches!(answers.begin(key("a"), Digest::of(b"body")), Err(ApiError::KeyInFlight)));
        first.fill(&answer(1));
        assert!(matches!(answers.begin(key("a"), Digest::of(b"other")), Err(ApiError::KeyReused)));
        tokio::time::advance(KEPT - Duration::from_secs(1)).await;
        assert!(is_known(&answers, "a"));
        tokio::time::advance(Duration::from_secs(1)).await;
        drop(slot(&answers, "a"));
        drop(slot(&answers, "a"));
    }

    #[tokio::test]
    async fn kept_answers_are_bounded() {
        let answers = Arc::new(Answers::default());
        for number in 0..10 {
            slot(&answers, &number.to_string()).fill(&answer(BYTES / 8));
        }
        assert!(!answers.table().entries.contains_key(&key("1")) && is_known(&answers, "9"));
        assert_eq!(answers.table().done.held().bytes, BYTES);
        for number in 0..2 * ANSWERS {
            slot(&answers, &format!("small {number}")).fill(&answer(1));
        }
        assert_eq!(answers.table().entries.len(), ANSWERS);
        assert_eq!(answers.table().done.held(), Bounds { answers: ANSWERS, bytes: ANSWERS });
    }
}
