//! Calls of a benign plugin beside what is hostile: each is answered, and soon.

use std::cell::Cell;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use palisade::{Call, Envelope, Host, Session, Subscriber};
use serde_json::json;

use crate::events::Recorder;

/// The session of these calls, whose events are no part of any case.
const SESSION: &str = "beside";
/// The pause between two calls.
const PERIOD: Duration = Duration::from_millis(10);
/// How much slower the host is where nothing of it is optimised.
const UNOPTIMISED: u32 = if cfg!(debug_assertions) { 10 } else { 1 };
/// The longest time without an answer, on a machine that has nothing else to do.
pub(super) const SILENCE: Duration = Duration::from_millis(100).saturating_mul(UNOPTIMISED);

/// What came of the calls beside.
#[derive(Debug, Default)]
pub(super) struct Pings {
    /// The longest time without an answer.
    pub(super) silence: Duration,
    /// The first answer that was wrong.
    pub(super) wrong: Option<String>,
}

impl Pings {
    /// What is wrong with them, on a machine that is this late itself.
    pub(super) fn complaints(&self, late: Duration) -> Vec<String> {
        let allowed = SILENCE + late * 4;
        let slow = (self.silence > allowed).then(|| {
            format!("a benign call beside it got no answer for {:?}, and {allowed:?} were allowed", self.silence)
        });
        let wrong = self.wrong.as_ref().map(|wrong| format!("a benign call beside it fails: {wrong}"));
        slow.into_iter().chain(wrong).collect()
    }

    async fn once(&mut self, host: &Host, session: &Session) {
        let result = host.dispatch(session, Call::new("echo", json!({"text": "beside"}))).await;
        if result.output().as_deref() != Some("beside") {
            self.wrong.get_or_insert_with(|| result.to_string());
        }
    }
}

/// The session that they are made in.
pub(super) fn session(host: &Host) -> Session {
    host.new_session(SESSION).build()
}

/// Does some work and makes calls beside it, in one task: work that holds its thread holds them up.
pub(super) async fn beside<T>(host: &Host, session: &Session, work: impl Future<Output = T>) -> (T, Pings) {
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

/// Makes calls on a thread of their own until they are told that it is over.
pub(super) fn until(over: &AtomicBool, host: &Host, session: &Session, runtime: &tokio::runtime::Runtime) -> Pings {
    let mut pings = Pings::default();
    while !over.load(Ordering::Relaxed) {
        let begun = Instant::now();
        runtime.block_on(pings.once(host, session));
        pings.silence = pings.silence.max(begun.elapsed());
        std::thread::park_timeout(PERIOD);
    }
    pings
}

/// Hears what is said of all other calls.
pub(super) struct Others(pub(super) Recorder);

impl Subscriber for Others {
    fn receive(&self, event: &Envelope) {
        let session = event.event.subject().and_then(|subject| subject.session_id.as_deref());
        if session != Some(SESSION) {
            self.0.receive(event);
        }
    }
}
