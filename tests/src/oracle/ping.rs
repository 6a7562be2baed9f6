//! Benign calls concurrent to hostile work, each of which must be answered soon.

use std::cell::Cell;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use palisade::{
    Call, Host, Session,
    events::{Envelope, Subscriber},
};
use serde_json::json;

use crate::events::Recorder;

/// The session of the benign calls, whose events are not recorded for a case.
const SESSION: &str = "beside";
/// The pause between two calls.
const PERIOD: Duration = Duration::from_millis(10);
/// The slowdown of the host without optimization.
const UNOPTIMISED: u32 = if cfg!(debug_assertions) { 10 } else { 1 };
/// The maximum time without a response, on an idle machine.
pub(super) const SILENCE: Duration = Duration::from_millis(100).saturating_mul(UNOPTIMISED);

/// The result of the benign calls.
#[derive(Debug, Default)]
pub(super) struct Pings {
    /// The longest time without a response.
    pub(super) silence: Duration,
    /// The first wrong response.
    pub(super) wrong: Option<String>,
}

impl Pings {
    /// Returns the violated bounds, given the scheduling delay `late` of the machine.
    pub(super) fn complaints(&self, late: Duration) -> Vec<String> {
        let allowed = SILENCE + late * 4;
        let slow = (self.silence > allowed).then(|| {
            format!(
                "a benign call beside it got no answer for {:?}, and {allowed:?} were allowed",
                self.silence
            )
        });
        let wrong =
            self.wrong.as_ref().map(|wrong| format!("a benign call beside it fails: {wrong}"));
        slow.into_iter().chain(wrong).collect()
    }

    async fn once(&mut self, host: &Host, session: &Session) {
        let result = host.dispatch(session, Call::new("echo", json!({"text": "beside"}))).await;
        if result.output().as_deref() != Some("beside") {
            self.wrong.get_or_insert_with(|| result.to_string());
        }
    }
}

/// Creates the session of the benign calls.
pub(super) fn session(host: &Host) -> Session {
    host.new_session(SESSION).build()
}

/// Runs work and benign calls in one task, so that work that blocks its thread delays the calls.
pub(super) async fn beside<T>(
    host: &Host,
    session: &Session,
    work: impl Future<Output = T>,
) -> (T, Pings) {
    let (answered, longest) = (Cell::new(Instant::now()), Cell::new(Duration::ZERO));
    let note = || longest.set(longest.get().max(answered.replace(Instant::now()).elapsed()));
    let mut pings = Pings::default();
    let calling = async {
        loop {
            pings.once(host, session).await;
            note();
            tokio::time::sleep(PERIOD).await;
        }
    };
    let done = tokio::select! {
        biased;
        () = calling => unreachable!("it calls without end"),
        done = work => done,
    };
    note();
    pings.silence = longest.get();
    (done, pings)
}

/// Makes benign calls on the current thread until `over` is set.
pub(super) fn until(
    over: &AtomicBool,
    host: &Host,
    session: &Session,
    runtime: &tokio::runtime::Runtime,
) -> Pings {
    let mut pings = Pings::default();
    while !over.load(Ordering::Relaxed) {
        let begun = Instant::now();
        runtime.block_on(pings.once(host, session));
        pings.silence = pings.silence.max(begun.elapsed());
        std::thread::park_timeout(PERIOD);
    }
    pings
}

/// A subscriber that records the events of all other calls.
pub(super) struct Others(pub(super) Recorder);

impl Subscriber for Others {
    fn receive(&self, event: &Envelope) {
        let session = event.event.subject().and_then(|subject| subject.session_id.as_deref());
        if session != Some(SESSION) {
            self.0.receive(event);
        }
    }
}
