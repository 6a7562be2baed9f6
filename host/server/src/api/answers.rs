//! The answers to requests with an `Idempotency-Key`, so that a repeated request is not run again.

use super::guarded::Guarded;
use super::kept::{Bounds, Kept};
use super::offload;
use super::open_sessions::Owner;
use super::problem::{ApiError, PROBLEM};
use super::state::App;
use crate::role::Role;
use axum::body::{Body, Bytes};
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use palisade::internal::{Account, Charge, Owed, address_space_limit};
use palisade::tool::Digest;
use palisade::tool::budget::Exhausted;
use palisade::tool::json::text_length;
use serde::Serialize;
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
#[derive(Debug)]
pub(super) struct Answer {
    pub(super) status: StatusCode,
    pub(super) content_type: &'static str,
    pub(super) location: Option<String>,
    pub(super) body: Bytes,
    /// The memory of the body, until it is sent.
    pub(super) owed: Option<Arc<Vec<Owed>>>,
}

/// An answer in a table, which bounds what it keeps.
#[derive(Debug)]
pub(super) struct KeptAnswer {
    status: StatusCode,
    content_type: &'static str,
    location: Option<String>,
    body: Bytes,
}

impl KeptAnswer {
    /// Returns the answer to another request. Its account is charged for the body until it is sent,
    /// because the client may read it long after the table has forgotten it.
    pub(super) fn to_send(&self, account: &Account) -> Result<Answer, ApiError> {
        let room = account.charge(self.body.len() as u64).map_err(ApiError::NoMemory)?;
        Ok(Answer {
            status: self.status,
            content_type: self.content_type,
            location: self.location.clone(),
            body: self.body.clone(),
            owed: Some(Arc::new(vec![room.into_owed()])),
        })
    }
}

impl Answer {
    /// Creates an answer with a short JSON body.
    pub(super) fn json(status: StatusCode, value: &impl Serialize) -> Self {
        // Serialization fails only for maps with non-string keys, and there are none.
        Self::of_body(status, serde_json::to_vec(value).unwrap_or_default())
    }

    /// Creates an answer with a JSON body, whose memory is reserved in the account before it is
    /// made. It counts for the sender of the request until it is sent, so that more requests of a
    /// sender that does not read its answers are refused.
    pub(super) fn within(
        account: &Account,
        status: StatusCode,
        value: &impl Serialize,
    ) -> Result<Self, Exhausted> {
        let room = account.charge(text_length(value) as u64)?;
        Self::in_room(status, value, vec![room])
    }

    /// Creates an answer with a JSON body of any length. Its memory is charged to the sender of the
    /// request until it is sent, and a long text is written in the turns of the sender.
    pub(super) async fn of_value(
        app: &App,
        role: &Role,
        value: impl Serialize + Send + 'static,
    ) -> Result<Self, ApiError> {
        let account = app.account_for(role, 0)?;
        let (own, length) = (account.clone(), text_length(&value));
        let write = move || Self::within(&own, StatusCode::OK, &value);
        let written = offload::work(length, &account, write).await.flatten();
        written.map_err(ApiError::NoMemory)
    }

    /// Creates an answer with a JSON body in memory that was reserved for it.
    pub(super) fn in_room(
        status: StatusCode,
        value: &impl Serialize,
        room: Vec<Charge>,
    ) -> Result<Self, Exhausted> {
        let length = text_length(value);
        let no_space = |_| Exhausted::AddressSpace { limit: address_space_limit().unwrap_or(0) };
        let mut body = Vec::new();
        body.try_reserve_exact(length).map_err(no_space)?;
        // Serialization fails only for maps with non-string keys, and there are none.
        let _ = serde_json::to_writer(&mut body, value);
        let owed = Arc::new(room.into_iter().map(Charge::into_owed).collect());
        Ok(Self { owed: Some(owed), ..Self::of_body(status, body) })
    }

    /// Creates an answer of a JSON text in memory that was reserved for it.
    pub(super) fn of_text(status: StatusCode, text: String, room: Charge) -> Self {
        let owed = Arc::new(vec![room.into_owed()]);
        Self { owed: Some(owed), ..Self::of_body(status, text.into_bytes()) }
    }

    /// Creates the answer of a problem.
    pub(super) fn problem(error: &ApiError) -> Self {
        let problem = error.problem();
        let status = error.status();
        Self { content_type: PROBLEM, ..Self::json(status, &problem) }
    }

    fn of_body(status: StatusCode, body: Vec<u8>) -> Self {
        let content_type = "application/json";
        Self { status, content_type, location: None, body: body.into(), owed: None }
    }

    /// Returns the answer for a table.
    pub(super) fn to_keep(&self) -> KeptAnswer {
        KeptAnswer {
            status: self.status,
            content_type: self.content_type,
            location: self.location.clone(),
            body: self.body.clone(),
        }
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

/// A key with its sender and its resource: keys of different senders and resources are different.
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
    answer: Option<(Arc<KeptAnswer>, Instant)>,
}

/// The beginning of a request with a key.
pub(super) enum Begun {
    /// It is the first.
    New(Slot),
    /// It was answered before.
    Known(Arc<KeptAnswer>),
}

/// The place of an answer. Dropping it without one forgets the request, or keeps its failure if its
/// calls had begun.
pub(super) struct Slot {
    answers: Arc<Answers>,
    key: Key,
    stage: Stage,
}

/// The stage of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stage {
    /// Nothing has run.
    Begun,
    /// Its calls may have had effects.
    Running,
    /// Its answer is kept.
    Answered,
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
        Ok(Begun::New(Slot { answers: self.clone(), key, stage: Stage::Begun }))
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
    /// Notes that the calls of the request begin.
    pub(super) fn begins_calls(&mut self) {
        self.stage = Stage::Running;
    }

    /// Keeps the answer.
    pub(super) fn fill(mut self, answer: &Answer) {
        self.put(answer);
    }

    fn put(&mut self, answer: &Answer) {
        self.stage = Stage::Answered;
        let mut table = self.answers.table();
        table.in_flight -= 1;
        let Some(entry) = table.entries.get_mut(&self.key) else { return };
        entry.answer = Some((Arc::new(answer.to_keep()), Instant::now()));
        for key in table.done.add(&self.key.owner, self.key.clone(), answer.body.len()) {
            table.entries.remove(&key);
        }
    }
}

impl Drop for Slot {
    fn drop(&mut self) {
        match self.stage {
            Stage::Begun => {
                let mut table = self.answers.table();
                table.in_flight -= 1;
                table.entries.remove(&self.key);
            }
            // A panic, for example.
            Stage::Running => self.put(&Answer::problem(&ApiError::Internal)),
            Stage::Answered => {}
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
    async fn failure_after_the_begin_of_the_calls_is_kept() {
        let answers = Arc::new(Answers::default());
        let mut running = slot(&answers, "a");
        running.begins_calls();
        drop(running);
        match answers.begin(key("a"), Digest::of(b"body")) {
            Ok(Begun::Known(answer)) => {
                let seen = (answer.status, answer.content_type);
                assert_eq!(seen, (StatusCode::INTERNAL_SERVER_ERROR, PROBLEM));
            }
            _ => panic!("its calls would run again"),
        }
        assert_eq!(answers.table().in_flight, 0);
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
