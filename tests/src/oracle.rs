//! The oracle of hostile calls: what must hold of the process and of the machine after any call, whatever it tried.
//!
//! The process is alive and nothing in it panicked; each call had exactly one terminal event and a valid result, in time; what lies beside the workspace is
//! untouched and unread; threads, descriptors and memory are back where they were; and the next call of a benign plugin works. During the call, the process grows by
//! no more than the call's memory and a fixed room for the host, and benign calls beside it are answered. What is counted belongs to the whole process, so only one
//! oracle is at work at a time, and the turn lasts until a case has gone through the program as well.

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

use palisade::{CacheMode, Call, Desk, Event, Host, HostBuilder, Session, Shipped, ToolResult};
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

/// What a call may take beyond its own time, on a machine that has nothing else to do.
pub const SLACK: Duration = Duration::from_millis(100);
/// How long threads, descriptors and memory have to come back.
const SETTLING: Duration = Duration::from_secs(1);
/// What the next call of a benign plugin takes at most.
const BENIGN: Duration = Duration::from_millis(50);
/// How often something is done at most before growth counts as a leak: an allocator keeps what it was given once.
const ROUNDS: usize = 4;

/// One at a time: what is counted belongs to the whole process.
static TURN: Mutex<()> = Mutex::new(());

/// A host with hostile plugins and a benign one, and everything that is watched around it.
pub struct Oracle {
    /// The host, its workspace and what is heard of it.
    pub stage: Stage,
    runtime: tokio::runtime::Runtime,
    heard: Heard,
    events: Mutex<Vec<Event>>,
    panics: usize,
    memory: usize,
    aside: Aside,
    turn: MutexGuard<'static, ()>,
}

/// What makes the benign calls beside.
struct Aside {
    session: Session,
    runtime: tokio::runtime::Runtime,
}

/// What was measured of one round.
struct Timed<T> {
    done: T,
    took: Duration,
    late: Duration,
    pings: Pings,
}

/// The results that came of something, each of which is looked at.
pub trait Results {
    /// All of them.
    fn results(&self) -> Vec<&ToolResult>;

    /// The memory that they hold themselves, which is no leak, in bytes: text, as it came and as it is shown.
    fn held(&self) -> usize {
        self.results().iter().map(|result| result.output().map_or(0, |output| output.len() * 3)).sum()
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

/// Waits for one's turn. A test takes it without an oracle where it counts by itself what belongs to the whole process,
/// and where it holds much memory of its own, which an oracle beside it would take for a leak.
pub fn turn() -> MutexGuard<'static, ()> {
    TURN.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Oracle {
    /// Over a host that a test configures.
    ///
    /// # Panics
    ///
    /// Where the host cannot be built, or rejects a plugin.
    #[must_use]
    #[track_caller]
    pub fn new(change: impl FnOnce(&World, HostBuilder) -> HostBuilder) -> Self {
        let base = |world: &World, desk: &Desk| {
            let builder = Host::builder().workspace(world.root()).cache(CacheMode::Directory(cache()));
            change(world, builder.shipped(Shipped::LeftOut).confirmer(Arc::new(desk.clone())))
        };
        Self::over(World::new, base)
    }

    /// Over the host of a case, in its world.
    ///
    /// # Panics
    ///
    /// As [`new`](Self::new).
    #[must_use]
    #[track_caller]
    pub fn of(case: &Case) -> Self {
        Self::over(|| case.world(), |world, desk| case.builder(world).confirmer(Arc::new(desk.clone())))
    }

    #[track_caller]
    fn over(world: impl FnOnce() -> World, host: impl FnOnce(&World, &Desk) -> HostBuilder) -> Self {
        let turn = turn();
        let heard = Heard::listening();
        let (world, desk, recorder) = (Arc::new(world()), Desk::default(), Recorder::default());
        let builder = host(&world, &desk).subscriber(Arc::new(Others(recorder.clone())));
        let host = builder.plugins(HOSTILE_ECHO.directory()).build().expect("the host can be built");
        assert!(host.rejected().is_empty(), "a plugin was rejected: {:?}", host.rejected());
        static ONCE: Once = Once::new();
        ONCE.call_once(|| {
            if !canary::can_be_seen(&world) {
                crate::skip("this file system does not write down who reads what: canaries are only compared");
            }
        });
        let memory = usize::try_from(host.limits().memory).unwrap_or(usize::MAX);
        let aside = Aside { session: ping::session(&host), runtime: runtime() };
        let stage = Stage { world, host: Arc::new(host), desk, recorder };
        Self { stage, runtime: runtime(), heard, events: Mutex::default(), panics: 0, memory, aside, turn }
    }

    /// The turn, once this is over.
    fn into_turn(self) -> MutexGuard<'static, ()> {
        let Self { turn, .. } = self;
        turn
    }

    /// Where a panic is part of the case, so many times in each round.
    #[must_use]
    pub fn panicking(self, panics: usize) -> Self {
        Self { panics, ..self }
    }

    /// Where so many calls run at once, each of which may have its own memory.
    #[must_use]
    pub fn at_once(self, calls: usize) -> Self {
        Self { memory: self.memory.saturating_mul(calls), ..self }
    }

    /// Makes one call and checks every point. Benign calls are made beside it on the same thread, which no call may hold for long.
    ///
    /// # Panics
    ///
    /// Where a point does not hold.
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

    /// Does something hostile within its time, and checks every point. It may be done again, to tell what is kept for good from what is kept once. Benign calls are
    /// made beside it on a thread of their own.
    ///
    /// # Panics
    ///
    /// Where a point does not hold.
    #[track_caller]
    pub fn watch<T: Results, F: Future<Output = T>>(&self, within: Duration, work: impl Fn(&Stage) -> F) -> T {
        complete(self.watched(within, &work))
    }

    fn watched<T: Results, F: Future<Output = T>>(
        &self,
        within: Duration,
        work: &impl Fn(&Stage) -> F,
    ) -> (T, Vec<String>) {
        let timed =
            || self.timed(|| self.calling_aside(|| self.runtime.block_on(async { bounded(work(&self.stage)).await })));
        self.judged(within, &timed)
    }

    /// Does something, and makes benign calls on another thread until it is done.
    fn calling_aside<T>(&self, work: impl FnOnce() -> T) -> (T, Pings) {
        let over = AtomicBool::new(false);
        std::thread::scope(|scope| {
            let Aside { session, runtime } = &self.aside;
            let calling = scope.spawn(|| ping::until(&over, &self.stage.host, session, runtime));
            // A case that stops the test must not leave the thread behind, for which the scope waits.
            let done = std::panic::catch_unwind(std::panic::AssertUnwindSafe(work));
            over.store(true, Ordering::Relaxed);
            calling.thread().unpark();
            let pings = calling.join().unwrap_or_default();
            (done.unwrap_or_else(|panic| std::panic::resume_unwind(panic)), pings)
        })
    }

    /// What was heard of the last that was done.
    #[must_use]
    pub fn events(&self) -> Vec<Event> {
        self.events.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// What came of it, and the points that do not hold.
    fn judged<T: Results>(&self, within: Duration, work: &impl Fn() -> Timed<T>) -> (T, Vec<String>) {
        // Whatever is made once, such as the clock's thread, is made before anything is counted.
        let mut broken: Vec<String> = self.benign().err().into_iter().collect();
        for _ in 1..ROUNDS {
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

    /// One round: what came of it, and what has not come back.
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
        broken.extend(self.stage.recorder.unended());
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

    /// The quickest of a few calls of a benign plugin: a host that was harmed is slow in each, a machine that is busy is not.
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
        if quickest <= BENIGN { Ok(()) } else { Err(format!("the next call of a benign plugin takes {quickest:?}")) }
    }
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
    assert!(broken.is_empty(), "what must hold after every call does not:\n  {}", broken.join("\n  "));
    done
}

/// Makes the call of a case through the library, and checks every point.
///
/// # Panics
///
/// Where a point does not hold.
#[must_use]
#[track_caller]
pub fn around(case: &Case) -> Seen {
    Seen::alone(run(case).0)
}

/// As [`around`], and then through the program, which must come to the same.
///
/// # Panics
///
/// Where a point does not hold, or the two differ.
#[must_use]
#[track_caller]
pub fn around_both(case: &Case) -> Seen {
    // The turn lasts as long as the program runs: its pipes, and the threads that read them, belong to this process.
    let (library, _turn) = run(case);
    Seen::compare(library, case.in_program(), case.varies())
}

#[track_caller]
fn run(case: &Case) -> (Run, MutexGuard<'static, ()>) {
    let oracle = Oracle::of(case);
    let run = Run::start(oracle.stage.world.clone());
    let result = oracle.call(&case.to_call(&oracle.stage.world), case.time());
    let run = run.ended(result.to_json(), oracle.events());
    (run, oracle.into_turn())
}

/// What a call that ran out of time took beyond it, by its own account.
fn overdue(error: &Value, took: Duration, late: Duration) -> Option<String> {
    let limit = error["detail"]["value_ms"].as_f64().filter(|_| error["class"] == "timeout")?;
    let limit = Duration::from_secs_f64(limit / 1e3);
    let allowed = limit + SLACK + late * 4;
    (took > allowed).then(|| format!("a call of {limit:?} ended after {took:?}, and {allowed:?} were allowed"))
}

/// What is wrong with a result.
fn invalid(result: &ToolResult) -> Option<String> {
    let json = result.to_json();
    let checked = std::panic::catch_unwind(|| uniform::check_shape(&json));
    checked.is_err().then(|| format!("a result is not valid: {json}"))
}
