//! The oracle: checks the invariants of the process and the workspace after any hostile call.
//!
//! The process is alive and no thread panicked. Each call had exactly one terminal event and a
//! valid result, in time. Files outside of the workspace are unchanged and unread. Threads, file
//! descriptors and memory have returned to their former level, and the next call of a benign plugin
//! succeeds. During the call, the process grows by no more than the call's memory limit and a
//! constant for the host, and concurrent benign calls are answered. The counters belong to the
//! whole process, so only one oracle runs at a time; it holds its turn until a case has run through
//! the program as well.

mod books;
mod canary;
mod heard;
mod lateness;
mod loading;
mod peak;
mod ping;
mod served;
#[cfg(test)]
mod tests;

use std::future::Future;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, Once, PoisonError};
use std::time::{Duration, Instant};

use palisade::{
    CacheMode, Call, ConfirmationQueue, Event, Host, HostBuilder, Session, Shipped, ToolResult,
};
use serde_json::{Value, json};

pub use books::Books;
pub use loading::{Loaded, loading, loading_bytes};
pub use peak::{HOST_ROOM, Peak};
pub use served::{Served, served};

use crate::case::{Case, PATIENCE};
use crate::events::Recorder;
use crate::guest::{HOSTILE_ECHO, cache};
use crate::seen::{Run, Seen};
use crate::stage::Stage;
use crate::uniform;
use crate::world::World;
use canary::Canary;
use heard::Heard;
use lateness::Lateness;
use ping::{Others, Pings};

/// The time that a call may exceed its timeout by, on an idle machine.
pub const SLACK: Duration = Duration::from_millis(100);
/// The time for threads, file descriptors and memory to return to their former level.
const SETTLING: Duration = Duration::from_secs(1);
/// The maximum time of the next call of a benign plugin.
const BENIGN: Duration = Duration::from_millis(50);

/// The lock of the running oracle: the counters belong to the whole process.
static TURN: Mutex<()> = Mutex::new(());

/// A host with hostile plugins and a benign one, and the observers around it.
pub struct Oracle {
    /// The host, its workspace and its recorded events.
    pub stage: Stage,
    runtime: tokio::runtime::Runtime,
    heard: Heard,
    events: Mutex<Vec<Event>>,
    panics: usize,
    memory: usize,
    aside: Aside,
    turn: MutexGuard<'static, ()>,
}

/// The session and the runtime of the concurrent benign calls.
struct Aside {
    session: Session,
    runtime: tokio::runtime::Runtime,
}

/// The result and the measurements of one round.
struct Timed<T> {
    done: T,
    took: Duration,
    late: Duration,
    pings: Pings,
}

/// A value that contains results of calls, each of which is checked.
pub trait Results {
    /// Returns all results.
    fn results(&self) -> Vec<&ToolResult>;

    /// Returns the memory that the results themselves occupy, in bytes, which is no leak: the text
    /// in raw form and in rendered form.
    fn held(&self) -> usize {
        self.results()
            .iter()
            .map(|result| result.output().map_or(0, |output| output.len() * 3))
            .sum()
    }
}

impl Results for ToolResult {
    fn results(&self) -> Vec<&ToolResult> {
        vec![self]
    }
}

impl Results for Vec<ToolResult> {
    fn results(&self) -> Vec<&ToolResult> {
        self.iter().collect()
    }
}

impl Results for () {
    fn results(&self) -> Vec<&ToolResult> {
        Vec::new()
    }
}

/// Waits for the turn of the oracle. A test without an oracle takes the turn if it counts resources
/// of the whole process, or if it allocates so much memory that a concurrent oracle would report a
/// leak.
pub fn turn() -> MutexGuard<'static, ()> {
    TURN.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Oracle {
    /// Creates an oracle with a host that the test configures.
    ///
    /// # Panics
    ///
    /// If the host cannot be built, or rejects a plugin.
    #[must_use]
    #[track_caller]
    pub fn new(change: impl FnOnce(&World, HostBuilder) -> HostBuilder) -> Self {
        let base = |world: &World, confirmations: &ConfirmationQueue| {
            let builder =
                Host::builder().workspace(world.root()).cache(CacheMode::Directory(cache()));
            change(
                world,
                builder.shipped(Shipped::LeftOut).confirmer(Arc::new(confirmations.clone())),
            )
        };
        Self::over(World::new, base)
    }

    /// Creates an oracle with the host and the world of a case.
    ///
    /// # Panics
    ///
    /// As [`new`](Self::new).
    #[must_use]
    #[track_caller]
    pub fn of(case: &Case) -> Self {
        Self::over(
            || case.world(),
            |world, confirmations| case.builder(world).confirmer(Arc::new(confirmations.clone())),
        )
    }

    #[track_caller]
    fn over(
        world: impl FnOnce() -> World,
        host: impl FnOnce(&World, &ConfirmationQueue) -> HostBuilder,
    ) -> Self {
        let turn = turn();
        let heard = Heard::listening();
        let (world, confirmations, recorder) =
            (Arc::new(world()), ConfirmationQueue::default(), Recorder::default());
        let builder = host(&world, &confirmations).subscriber(Arc::new(Others(recorder.clone())));
        let host =
            builder.plugins(HOSTILE_ECHO.directory()).build().expect("the host can be built");
        assert!(host.rejected().is_empty(), "a plugin was rejected: {:?}", host.rejected());
        static ONCE: Once = Once::new();
        ONCE.call_once(|| {
            if !canary::can_be_seen(&world) {
                crate::skip("this file system does not write down who reads what: canaries are only compared");
            }
        });
        let memory = usize::try_from(host.limits().memory).unwrap_or(usize::MAX);
        let aside = Aside { session: ping::session(&host), runtime: runtime() };
        let stage = Stage { world, host: Arc::new(host), confirmations, recorder };
        Self {
            stage,
            runtime: runtime(),
            heard,
            events: Mutex::default(),
            panics: 0,
            memory,
            aside,
            turn,
        }
    }

    /// Ends the oracle, and returns its turn.
    fn into_turn(self) -> MutexGuard<'static, ()> {
        let Self { turn, .. } = self;
        turn
    }

    /// Expects this number of panics in each round.
    #[must_use]
    pub fn panicking(self, panics: usize) -> Self {
        Self { panics, ..self }
    }

    /// Allows the memory of this number of concurrent calls.
    #[must_use]
    pub fn at_once(self, calls: usize) -> Self {
        Self { memory: self.memory.saturating_mul(calls), ..self }
    }

    /// Makes one call and checks every invariant. Concurrent benign calls run on the same thread,
    /// which the call must not block for long.
    ///
    /// # Panics
    ///
    /// If an invariant is violated.
    #[track_caller]
    pub fn call(&self, call: &Call, within: Duration) -> ToolResult {
        complete(self.called(call, within))
    }

    fn called(&self, call: &Call, within: Duration) -> (ToolResult, Vec<String>) {
        let timed = || {
            let host = &self.stage.host;
            self.timed(|| {
                let one = bounded(host.dispatch(host.session(), call.clone()));
                self.runtime.block_on(ping::beside(host, &self.aside.session, one))
            })
        };
        self.judged(within, &timed)
    }

    /// Runs hostile work within its time, and checks every invariant. The work may be repeated, to
    /// distinguish a leak from memory that is allocated once. Concurrent benign calls run on
    /// another thread.
    ///
    /// # Panics
    ///
    /// If an invariant is violated.
    #[track_caller]
    pub fn watch<T: Results, F: Future<Output = T>>(
        &self,
        within: Duration,
        work: impl Fn(&Stage) -> F,
    ) -> T {
        complete(self.watched(within, &work))
    }

    fn watched<T: Results, F: Future<Output = T>>(
        &self,
        within: Duration,
        work: &impl Fn(&Stage) -> F,
    ) -> (T, Vec<String>) {
        let timed = || {
            self.timed(|| {
                self.calling_aside(|| {
                    self.runtime.block_on(async { bounded(work(&self.stage)).await })
                })
            })
        };
        self.judged(within, &timed)
    }

    /// Runs work, with benign calls on another thread until the work is done.
    fn calling_aside<T>(&self, work: impl FnOnce() -> T) -> (T, Pings) {
        let over = AtomicBool::new(false);
        std::thread::scope(|scope| {
            let Aside { session, runtime } = &self.aside;
            let calling = scope.spawn(|| ping::until(&over, &self.stage.host, session, runtime));
            // Catch a panic of the work: the scope waits for the other thread, which must be
            // stopped first.
            let done = std::panic::catch_unwind(std::panic::AssertUnwindSafe(work));
            over.store(true, Ordering::Relaxed);
            calling.thread().unpark();
            let pings = calling.join().unwrap_or_default();
            (done.unwrap_or_else(|panic| std::panic::resume_unwind(panic)), pings)
        })
    }

    /// Returns the recorded events of the last round.
    #[must_use]
    pub fn events(&self) -> Vec<Event> {
        self.events.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Returns the result of the work and the violated invariants.
    fn judged<T: Results>(
        &self,
        within: Duration,
        work: &impl Fn() -> Timed<T>,
    ) -> (T, Vec<String>) {
        // Make a benign call first, so that resources that are created once, such as the clock's
        // thread, exist before the first count.
        let mut broken: Vec<String> = self.benign().err().into_iter().collect();
        for _ in 1..rounds() {
            let (done, unsettled) = self.round(within, work, &mut broken);
            if unsettled.is_empty() || !broken.is_empty() {
                broken.extend(unsettled);
                return (done, broken);
            }
        }
        let (done, unsettled) = self.round(within, work, &mut broken);
        broken.extend(unsettled);
        (done, broken)
    }

    /// Runs one round. Returns its result and the resources that have not returned to their former
    /// level.
    fn round<T: Results>(
        &self,
        within: Duration,
        work: &impl Fn() -> Timed<T>,
        broken: &mut Vec<String>,
    ) -> (T, Vec<String>) {
        self.stage.recorder.forget();
        self.heard.forget();
        let canary = Canary::beside(&self.stage.world);
        let (books, peak) = (Books::now(), Peak::of_this());
        let Timed { done, took, late, pings } = work();
        broken.extend(peak.beyond(self.memory));
        let allowed = within + SLACK + late * 4;
        if took > allowed {
            broken.push(format!("it took {took:?}, and {allowed:?} were allowed"));
        }
        broken.extend(done.results().into_iter().filter_map(|result| {
            let error = result.error()?.to_json();
            overdue(&error, result.duration(), late)
        }));
        broken.extend(pings.complaints(late));
        broken.extend(canary.touched(&self.stage.world));
        broken.extend(
            self.stage
                .recorder
                .unended(done.results().iter().map(|result| result.call_id().as_str())),
        );
        broken.extend(self.heard.complaints(self.panics));
        broken.extend(done.results().into_iter().filter_map(invalid));
        *self.events.lock().unwrap_or_else(PoisonError::into_inner) = self.stage.recorder.events();
        broken.extend(self.benign().err());
        self.stage.recorder.forget();
        let held = done.held();
        (done, Books { memory: books.memory + held, ..books }.settled(SETTLING))
    }

    fn timed<T>(&self, work: impl FnOnce() -> (T, Pings)) -> Timed<T> {
        let (late, start) = (Lateness::watched(), Instant::now());
        let (done, pings) = work();
        Timed { done, took: start.elapsed(), late: late.worst(), pings }
    }

    /// Checks the fastest of several calls of a benign plugin: a damaged host is slow in all of
    /// them, a busy machine is not.
    fn benign(&self) -> Result<(), String> {
        let mut quickest = Duration::MAX;
        for _ in 0..5 {
            let start = Instant::now();
            let call = self.stage.host.call("echo", json!({"text": "still here"}), json!({}));
            let result = self.runtime.block_on(call);
            if result.output().as_deref() != Some("still here") {
                return Err(format!("the next call of a benign plugin fails: {result}"));
            }
            quickest = quickest.min(start.elapsed());
        }
        if quickest <= BENIGN {
            Ok(())
        } else {
            Err(format!("the next call of a benign plugin takes {quickest:?}"))
        }
    }
}

/// Returns the number of repetitions after which growth counts as a leak. glibc keeps freed memory
/// in each arena that a thread has used, and has up to eight arenas for each core. A leak grows
/// every time.
pub(crate) fn rounds() -> usize {
    4 + 8 * std::thread::available_parallelism().map_or(1, std::num::NonZero::get)
}

fn runtime() -> tokio::runtime::Runtime {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    runtime.expect("a runtime can be started")
}

async fn bounded<T>(work: impl Future<Output = T>) -> T {
    tokio::time::timeout(PATIENCE, work).await.expect("it comes to an end")
}

#[track_caller]
fn complete<T>((done, broken): (T, Vec<String>)) -> T {
    assert!(
        broken.is_empty(),
        "what must hold after every call does not:\n  {}",
        broken.join("\n  ")
    );
    done
}

/// Makes the call of a case through the library, and checks every invariant.
///
/// # Panics
///
/// If an invariant is violated.
#[must_use]
#[track_caller]
pub fn around(case: &Case) -> Seen {
    Seen::alone(run(case).0)
}

/// Checks a case as [`around`] does, then runs it through the program, and requires equal results.
///
/// # Panics
///
/// If an invariant is violated, or the two results differ.
#[must_use]
#[track_caller]
pub fn around_both(case: &Case) -> Seen {
    // Hold the turn while the program runs: its pipes and their reader threads belong to this
    // process.
    let (library, _turn) = run(case);
    Seen::compare(library, case.in_program(), case.varies())
}

#[track_caller]
fn run(case: &Case) -> (Run, MutexGuard<'static, ()>) {
    let oracle = Oracle::of(case);
    let run = Run::start(oracle.stage.world.clone());
    let result = oracle.call(&case.to_call(&oracle.stage.world), case.time());
    let run = run.ended_in_library(result.to_json(), oracle.events());
    (run, oracle.into_turn())
}

/// Returns a complaint if a call that timed out ended too long after its timeout, by its own
/// duration.
fn overdue(error: &Value, took: Duration, late: Duration) -> Option<String> {
    let limit = error["detail"]["value_ms"].as_f64().filter(|_| error["class"] == "timeout")?;
    let limit = Duration::from_secs_f64(limit / 1e3);
    let allowed = limit + SLACK + late * 4;
    (took > allowed)
        .then(|| format!("a call of {limit:?} ended after {took:?}, and {allowed:?} were allowed"))
}

/// Returns a complaint if the result violates the contract.
fn invalid(result: &ToolResult) -> Option<String> {
    let json = result.to_json();
    let checked = std::panic::catch_unwind(|| uniform::check_shape(&json));
    checked.is_err().then(|| format!("a result is not valid: {json}"))
}
