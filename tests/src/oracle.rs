//! The oracle of hostile calls: what must hold of the process and of the machine after any call, whatever it tried.
//!
//! The process is alive and nothing in it panicked; each call had exactly one terminal event and a valid result, in time; what lies beside the workspace is
//! untouched and unread; threads, descriptors and memory are back where they were; and the next call of a benign plugin works. What is counted belongs
//! to the whole process, so only one oracle is at work at a time.

mod books;
mod canary;
mod heard;
mod lateness;
#[cfg(test)]
mod tests;

use std::future::Future;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, Once, PoisonError};
use std::time::{Duration, Instant};

use palisade::{CacheMode, Call, Desk, Event, Host, HostBuilder, Shipped, ToolResult};
use serde_json::json;

pub use books::Books;

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
    _turn: MutexGuard<'static, ()>,
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

/// Waits for one's turn, for what counts by itself what belongs to the whole process.
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
        let builder = host(&world, &desk).subscriber(Arc::new(recorder.clone()));
        let host = builder.plugins(HOSTILE_ECHO.directory()).build().expect("the host can be built");
        assert!(host.rejected().is_empty(), "a plugin was rejected: {:?}", host.rejected());
        static ONCE: Once = Once::new();
        ONCE.call_once(|| {
            if !canary::can_be_seen(&world) {
                crate::skip("this file system does not write down who reads what: canaries are only compared");
            }
        });
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        let runtime = runtime.expect("a runtime can be started");
        let stage = Stage { world, host: Arc::new(host), desk, recorder };
        Self { stage, runtime, heard, events: Mutex::default(), panics: 0, _turn: turn }
    }

    /// Where a panic is part of the case, so many times in each round.
    #[must_use]
    pub fn panicking(self, panics: usize) -> Self {
        Self { panics, ..self }
    }

    /// Makes one call and checks every point.
    ///
    /// # Panics
    ///
    /// Where a point does not hold.
    #[track_caller]
    pub fn call(&self, call: &Call, within: Duration) -> ToolResult {
        self.watch(within, |stage| {
            let (host, call) = (stage.host.clone(), call.clone());
            async move { host.dispatch(host.session(), call).await }
        })
    }

    /// Does something hostile within its time, and checks every point. It may be done again, to tell what is kept for good from what is kept once.
    ///
    /// # Panics
    ///
    /// Where a point does not hold.
    #[track_caller]
    pub fn watch<T: Results, F: Future<Output = T>>(&self, within: Duration, work: impl Fn(&Stage) -> F) -> T {
        let (done, broken) = self.judged(within, &work);
        assert!(broken.is_empty(), "what must hold after every call does not:\n  {}", broken.join("\n  "));
        done
    }

    /// What was heard of the last that was done.
    #[must_use]
    pub fn events(&self) -> Vec<Event> {
        self.events.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// What came of it, and the points that do not hold.
    fn judged<T: Results, F: Future<Output = T>>(
        &self,
        within: Duration,
        work: &impl Fn(&Stage) -> F,
    ) -> (T, Vec<String>) {
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
    fn round<T: Results, F: Future<Output = T>>(
        &self,
        within: Duration,
        work: &impl Fn(&Stage) -> F,
        broken: &mut Vec<String>,
    ) -> (T, Vec<String>) {
        self.stage.recorder.forget();
        self.heard.forget();
        let canary = Canary::beside(&self.stage.world);
        let books = Books::now();
        let (done, took, late) = self.timed(work);
        let allowed = within + SLACK + late * 4;
        if took > allowed {
            broken.push(format!("it took {took:?}, and {allowed:?} were allowed"));
        }
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

    fn timed<T, F: Future<Output = T>>(&self, work: &impl Fn(&Stage) -> F) -> (T, Duration, Duration) {
        let late = Lateness::watched();
        let start = Instant::now();
        let bounded = async { tokio::time::timeout(PATIENCE, work(&self.stage)).await.expect("it comes to an end") };
        let done = self.runtime.block_on(bounded);
        (done, start.elapsed(), late.worst())
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

/// Makes the call of a case through the library, and checks every point.
///
/// # Panics
///
/// Where a point does not hold.
#[must_use]
#[track_caller]
pub fn around(case: &Case) -> Seen {
    Seen::alone(run(case))
}

/// As [`around`], and then through the program, which must come to the same.
///
/// # Panics
///
/// Where a point does not hold, or the two differ.
#[must_use]
#[track_caller]
pub fn around_both(case: &Case) -> Seen {
    let library = run(case);
    Seen::compare(library, case.in_program(), case.varies())
}

#[track_caller]
fn run(case: &Case) -> Run {
    let oracle = Oracle::of(case);
    let run = Run::start(oracle.stage.world.clone());
    let result = oracle.call(&case.to_call(&oracle.stage.world), case.time());
    run.ended(result.to_json(), oracle.events())
}

/// What came of loading a directory of plugins.
#[derive(Debug)]
pub struct Loaded {
    /// The tools there are.
    pub tools: Vec<String>,
    /// What was refused, by file, and why.
    pub rejected: Vec<(String, String)>,
}

impl Loaded {
    /// Why the one file that was refused was refused.
    ///
    /// # Panics
    ///
    /// Where another number of files was refused.
    #[must_use]
    #[track_caller]
    pub fn reason(&self) -> &str {
        assert_eq!(self.rejected.len(), 1, "{self:?}");
        &self.rejected[0].1
    }
}

impl Results for Loaded {
    fn results(&self) -> Vec<&ToolResult> {
        Vec::new()
    }
}

/// Loads the plugins of a world that is arranged like this, and checks every point.
///
/// # Panics
///
/// Where a point does not hold, or no host comes of it.
#[track_caller]
pub fn loading(within: Duration, arrange: impl Fn(&World)) -> Loaded {
    let oracle = Oracle::new(|world, builder| {
        arrange(world);
        builder
    });
    oracle.watch(within, |stage| {
        let (root, plugins) = (stage.world.root(), stage.world.plugins());
        // Loading blocks, and must not do so on a thread of a runtime.
        let loaded = std::thread::spawn(move || load(root, plugins)).join();
        async { loaded.unwrap_or_else(|_| Loaded { tools: Vec::new(), rejected: Vec::new() }) }
    })
}

/// Loads one plugin of these bytes, and checks every point.
///
/// # Panics
///
/// As [`loading`].
#[track_caller]
pub fn loading_bytes(within: Duration, bytes: &[u8]) -> Loaded {
    loading(within, |world| std::fs::write(world.plugins().join("a-bad.wasm"), bytes).expect("it can be written"))
}

fn load(root: PathBuf, plugins: PathBuf) -> Loaded {
    let builder = Host::builder().workspace(root).shipped(Shipped::LeftOut).plugins(plugins);
    let host = builder.cache(CacheMode::Directory(cache())).build().expect("a host comes of it");
    let name = |file: &str| file.rsplit('/').next().unwrap_or(file).to_owned();
    Loaded {
        tools: host.registry().tool_names(),
        rejected: host.rejected().iter().map(|refused| (name(&refused.file), refused.reason.clone())).collect(),
    }
}

/// What is wrong with a result.
fn invalid(result: &ToolResult) -> Option<String> {
    let json = result.to_json();
    let checked = std::panic::catch_unwind(|| uniform::check_shape(&json));
    checked.is_err().then(|| format!("a result is not valid: {json}"))
}
