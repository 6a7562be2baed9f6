//! The oracle: checks the invariants of the process and the workspace after any hostile call.
//!
//! The process is alive and no thread panicked. Each call had exactly one terminal event and a
//! valid result, in time. Files outside of the workspace are unchanged and unread. Threads, file
//! descriptors and memory have returned to their former level, and the next call of a benign plugin
//! succeeds. During the call, the process grows by no more than the call's memory limit and a
//! constant for the host, and concurrent benign calls are answered. The counters belong to the
//! whole process, so only one oracle runs at a time; it holds its turn until a case has run through
//! the program as well.

mod canary;
mod cases;
mod lateness;
mod loading;
mod panic_log;
mod peak;
mod ping;
mod resources;
mod results;
mod rounds;
mod served;
#[cfg(test)]
mod tests;

use std::future::Future;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, Once, PoisonError};
use std::time::Duration;

use palisade::{
    CacheMode, Call, HostBuilder, Session, ToolResult, confirm::ConfirmationQueue, events::Event,
    plugins::Shipped,
};

pub use cases::{around, around_both};
pub use loading::{Loaded, loading, loading_bytes};
pub use peak::{HOST_ROOM, Peak};
pub use resources::Resources;
pub use results::Results;
pub(crate) use rounds::rounds;
pub use served::{Served, served};

use crate::case::{Case, PATIENCE};
use crate::events::Recorder;
use crate::guest::{HOSTILE_ECHO, cache};
use crate::stage::Stage;
use crate::world::World;
use panic_log::PanicLog;
use ping::{Others, Pings};

/// The time that a call may exceed its timeout by, on an idle machine.
pub const SLACK: Duration = Duration::from_millis(100);

/// The lock of the running oracle: the counters belong to the whole process.
static TURN: Mutex<()> = Mutex::new(());

/// A host with hostile plugins and a benign one, and the observers around it.
pub struct Oracle {
    /// The host, its workspace and its recorded events.
    pub stage: Stage,
    runtime: tokio::runtime::Runtime,
    panic_log: PanicLog,
    events: Mutex<Vec<Event>>,
    panics: usize,
    memory: usize,
    /// The number of rounds in all of which a resource grows if it leaks.
    rounds: usize,
    benign: BenignCalls,
    turn: MutexGuard<'static, ()>,
}

/// The session and the runtime of the concurrent benign calls.
struct BenignCalls {
    session: Session,
    runtime: tokio::runtime::Runtime,
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
                crate::host_builder().workspace(world.root()).cache(CacheMode::Directory(cache()));
            change(
                world,
                builder.shipped(Shipped::LeftOut).confirmer(Arc::new(confirmations.clone())),
            )
        };
        Self::build(World::new, base)
    }

    /// Creates an oracle with the host and the world of a case.
    ///
    /// # Panics
    ///
    /// As [`new`](Self::new).
    #[must_use]
    #[track_caller]
    pub fn for_case(case: &Case) -> Self {
        Self::build(
            || case.world(),
            |world, confirmations| case.builder(world).confirmer(Arc::new(confirmations.clone())),
        )
    }

    #[track_caller]
    fn build(
        world: impl FnOnce() -> World,
        host: impl FnOnce(&World, &ConfirmationQueue) -> HostBuilder,
    ) -> Self {
        let turn = turn();
        let panic_log = PanicLog::listening();
        let world = Arc::new(world());
        let confirmations = ConfirmationQueue::default();
        let recorder = Recorder::default();
        let builder = host(&world, &confirmations).subscriber(Arc::new(Others(recorder.clone())));
        let host =
            builder.plugins(HOSTILE_ECHO.directory()).build().expect("the host can be built");
        assert!(host.rejected().is_empty(), "a plugin was rejected: {:?}", host.rejected());
        static ONCE: Once = Once::new();
        ONCE.call_once(|| {
            if !canary::can_be_seen(&world) {
                crate::skip(
                    "this file system does not record access times: canaries are only compared",
                );
            }
        });
        let memory = usize::try_from(host.limits().memory).unwrap_or(usize::MAX);
        let benign = BenignCalls { session: ping::session(&host), runtime: runtime() };
        let stage = Stage { world, host: Arc::new(host), confirmations, recorder };
        Self {
            stage,
            runtime: runtime(),
            panic_log,
            events: Mutex::default(),
            panics: 0,
            memory,
            rounds: rounds(),
            benign,
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
        // The first backtrace reads the debug information of the test's own program, which would
        // count as memory of the call.
        drop(std::backtrace::Backtrace::force_capture().to_string());
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
        self.call_prepared(call, within, &|| {})
    }

    /// Makes one call as [`call`](Self::call) does. `prepare` runs before each repetition.
    #[track_caller]
    fn call_prepared(&self, call: &Call, within: Duration, prepare: &impl Fn()) -> ToolResult {
        let (result, broken) = self.try_call(call, within, prepare);
        holds(&broken);
        result
    }

    fn try_call(
        &self,
        call: &Call,
        within: Duration,
        prepare: &impl Fn(),
    ) -> (ToolResult, Vec<String>) {
        let timed = || {
            let host = &self.stage.host;
            self.timed(|| {
                let one = bounded(host.dispatch(host.session(), call.clone()));
                self.runtime.block_on(ping::beside(host, &self.benign.session, one))
            })
        };
        self.judged(within, prepare, &timed)
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
        let (done, broken) = self.try_watch(within, &work);
        holds(&broken);
        done
    }

    fn try_watch<T: Results, F: Future<Output = T>>(
        &self,
        within: Duration,
        work: &impl Fn(&Stage) -> F,
    ) -> (T, Vec<String>) {
        let timed = || {
            self.timed(|| {
                self.with_benign_calls(|| {
                    self.runtime.block_on(async { bounded(work(&self.stage)).await })
                })
            })
        };
        self.judged(within, &|| {}, &timed)
    }

    /// Runs work, with benign calls on another thread until the work is done.
    fn with_benign_calls<T>(&self, work: impl FnOnce() -> T) -> (T, Pings) {
        let over = AtomicBool::new(false);
        std::thread::scope(|scope| {
            let BenignCalls { session, runtime } = &self.benign;
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
}

fn runtime() -> tokio::runtime::Runtime {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    runtime.expect("a runtime can be started")
}

async fn bounded<T>(work: impl Future<Output = T>) -> T {
    tokio::time::timeout(PATIENCE, work).await.expect("the work completes in time")
}

/// Checks that no invariant is violated.
#[track_caller]
fn holds(broken: &[String]) {
    assert!(
        broken.is_empty(),
        "invariants that hold after every call are violated:\n  {}",
        broken.join("\n  ")
    );
}
