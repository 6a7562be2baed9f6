//! Loading: cached plugins at once, then the others compiled on all cores, each registered when
//! ready. If two files claim a name, the first has it, and takes it over if it is ready later.

mod compile;
mod cores;
mod rescan;
mod settle;
mod slot;
mod wanted;

use super::candidate::{Candidate, Refused};
use super::pinned_dirs::PinnedDirs;
use super::scan::Found;
use super::{
    Compiling, LoadError, LoadObserver, LoadStep, Loaded, Plugin, PluginChange, Rejected, Rescan,
    Sources, reserved, scan,
};
use crate::execution::Factory;
use crate::registry::{Origin, Place, Registered, Registry, Source};
use crate::sandbox::{Limits, Prepared, Sandbox};
use crate::workspace::HardLinks;
use rescan::note;
use slot::Slot;
use std::collections::{BTreeMap, HashSet};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::Builder;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

/// The inputs and callbacks of loading.
pub(crate) struct Task {
    pub(crate) sources: Sources,
    pub(crate) sandbox: Sandbox,
    pub(crate) limits: Limits,
    pub(crate) registry: Registry,
    pub(crate) observer: LoadObserver,
    /// The treatment of files with several hard links.
    pub(crate) hard_links: HardLinks,
    /// Called for every plugin when it is registered or rejected, and for later changes.
    pub(crate) on_change: Box<dyn Fn(PluginChange<'_>) + Send + Sync>,
}

impl Task {
    fn plugin(&self, candidate: &Candidate, source: Source, prepared: Arc<Prepared>) -> Plugin {
        let (name, file): (Arc<str>, _) = (candidate.name().into(), candidate.file());
        let origin = Origin::Plugin {
            name: name.clone(),
            digest: prepared.digest(),
            source: source.clone(),
        };
        let tools = Registered::of_plugin(&origin, self.sandbox.factories(&prepared, self.limits));
        Plugin { name, file, path: candidate.path().map(Path::to_owned), source, prepared, tools }
    }
}

/// The loading of plugins. Dropping it cancels the compilations.
pub(crate) struct Loading(Arc<Work>);

/// The progress of loading.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Progress {
    /// The number of plugins that are registered or rejected.
    pub decided: usize,
    /// The number of all plugins.
    pub of: usize,
    /// The number of undecided plugins that an earlier run did not finish compiling; they go last.
    pub(crate) last: usize,
    /// True if a thread works on the others.
    pub(crate) goes_on: bool,
}

impl Progress {
    /// Returns true if all plugins are decided.
    #[must_use]
    pub fn is_complete(self) -> bool {
        self.decided >= self.of
    }

    /// Returns true if waiting would bring nothing more.
    pub fn has_ended(self) -> bool {
        self.is_complete() || !self.goes_on
    }

    /// Returns true if only plugins that go last remain, which may take longer than a client waits.
    pub(crate) fn has_come_to_the_last(self) -> bool {
        self.has_ended() || self.decided.saturating_add(self.last) >= self.of
    }
}

impl Loading {
    /// Finds the plugins, and registers the native tools and the cached plugins.
    ///
    /// # Errors
    ///
    /// [`LoadError`] if a directory cannot be read or a native tool's name is taken. A bad file is
    /// not an error but is listed as rejected.
    pub(crate) fn begin(task: Task, native: &[Factory]) -> Result<Self, LoadError> {
        // Recorded before the scan, so that a later replacement is detected.
        let pinned_dirs = PinnedDirs::hold(&task.sources, task.hard_links);
        let found = scan::look(&task.sources)?;
        for factory in native {
            reserved::check_native(task.sources.shipped, factory, &task.registry)?;
            task.registry.register_at(Place::Native, factory.clone())?;
        }
        let work = Arc::new(Work::new(task, found, pinned_dirs));
        work.recall();
        Ok(Self(work))
    }

    /// Compiles the remaining plugins and waits for them.
    pub(crate) fn finish(&self) {
        self.0.compile();
    }

    /// Compiles remaining plugins that may have these tools, until the tools' owners are known.
    pub(crate) fn finish_for(&self, tools: &[&str]) {
        self.0.compile_for(tools);
    }

    /// Returns the uncompiled files that precede the owner of this tool and may claim it.
    pub(crate) fn undecided_before(&self, tool: &str) -> Vec<Compiling> {
        self.0.undecided_before(tool)
    }

    /// Compiles the remaining plugins on separate threads.
    pub(crate) fn go_on(&self) {
        if self.progress().borrow().is_complete() {
            return self.finish();
        }
        let work = self.0.clone();
        work.progress.send_modify(|progress| progress.goes_on = true);
        let spawned = Builder::new().name("palisade-load".to_owned()).spawn(move || work.compile());
        if let Err(error) = spawned {
            tracing::error!("no thread to load plugins in the background: {error}");
            self.finish();
        }
    }

    /// Returns the plugins that are not compiled, in the order of discovery.
    pub(crate) fn compiling(&self) -> Vec<Compiling> {
        self.0.compiling()
    }

    /// Returns a function for the names of the compiling plugins. It holds a weak reference.
    pub(crate) fn names_of_compiling(&self) -> impl Fn() -> Vec<String> + Send + Sync + 'static {
        let work = Arc::downgrade(&self.0);
        move || {
            let work = work.upgrade().filter(|work| work.progress.borrow().goes_on);
            work.map_or_else(Vec::new, |work| {
                work.compiling().into_iter().map(|compiling| compiling.plugin).collect()
            })
        }
    }

    /// Returns the result so far, in the order of discovery.
    pub(crate) fn loaded(&self) -> Loaded {
        let mut loaded = Loaded::default();
        for slot in lock(&self.0.decided).values() {
            loaded.plugins.extend(slot.standing.clone());
            loaded.rejected.extend(slot.rejected.clone());
        }
        loaded.rejected.extend(lock(&self.0.lost).iter().cloned());
        loaded
    }

    /// Returns the first match among the loaded plugins, without copying them.
    pub(crate) fn find<T>(&self, what: impl FnMut(&Plugin) -> Option<T>) -> Option<T> {
        lock(&self.0.decided).values().filter_map(|slot| slot.standing.as_ref()).find_map(what)
    }

    /// Scans again once all plugins are decided. It uses a separate thread, because the caller's
    /// may drive futures.
    pub(crate) fn rescan(&self) -> Rescan {
        std::thread::scope(|scope| {
            let look = Builder::new()
                .name("palisade-load".to_owned())
                .spawn_scoped(scope, || self.0.rescan());
            let look = look.inspect_err(|error| {
                tracing::error!("no thread to look for plugins again: {error}");
            });
            look.ok().and_then(|look| look.join().ok()).unwrap_or_default()
        })
    }

    /// Returns a function that scans on its caller's thread while this value lives. It holds a weak
    /// reference.
    pub(super) fn again(&self) -> impl Fn() -> Option<Rescan> + Send + 'static {
        let work = Arc::downgrade(&self.0);
        move || {
            let work = work.upgrade().filter(|work| !work.given_up.is_cancelled())?;
            Some(catch_unwind(AssertUnwindSafe(|| work.rescan())).unwrap_or_default())
        }
    }

    /// Returns a token that is cancelled when this value is dropped.
    pub(super) fn closed(&self) -> CancellationToken {
        self.0.given_up.clone()
    }

    /// Returns true if a plugin of this name was found at startup.
    pub(crate) fn has_found(&self, plugin: &str) -> bool {
        self.0.candidates.iter().any(|candidate| candidate.name() == plugin)
    }

    /// Returns the directories without plugins at startup.
    pub(crate) fn empty_directories(&self) -> &[PathBuf] {
        &self.0.empty
    }

    /// Returns the sources of plugins.
    pub(super) fn sources(&self) -> &Sources {
        &self.0.task.sources
    }

    /// Returns a receiver of the progress.
    pub(crate) fn progress(&self) -> watch::Receiver<Progress> {
        self.0.progress.subscribe()
    }
}

impl Drop for Loading {
    fn drop(&mut self) {
        self.0.given_up.cancel();
    }
}

type Outcome = Result<Arc<Prepared>, Refused>;

/// The state that the threads share.
struct Work {
    task: Task,
    candidates: Vec<Candidate>,
    /// The directories without plugins.
    empty: Vec<PathBuf>,
    /// The undecided candidates that are not cached, in compilation order.
    unknown: Mutex<Vec<usize>>,
    /// The candidates in `unknown` that go last.
    last: Mutex<HashSet<usize>>,
    decided: Mutex<BTreeMap<usize, Slot>>,
    /// Held while a plugin's names are registered or removed.
    settling: Mutex<()>,
    /// The directories that a later scan could not read.
    lost: Mutex<Vec<Rejected>>,
    pinned_dirs: PinnedDirs,
    /// The names that several files have.
    namesakes: Mutex<HashSet<String>>,
    /// Serialises compilations and scans.
    turn: Mutex<()>,
    progress: watch::Sender<Progress>,
    given_up: CancellationToken,
}

impl Work {
    fn new(task: Task, found: Found, pinned_dirs: PinnedDirs) -> Self {
        let Found { candidates, empty } = found;
        let namesakes = Mutex::new(scan::namesakes(candidates.iter()));
        let (progress, _) =
            watch::channel(Progress { decided: 0, of: candidates.len(), last: 0, goes_on: false });
        Self {
            task,
            candidates,
            empty,
            unknown: Mutex::default(),
            last: Mutex::default(),
            decided: Mutex::default(),
            settling: Mutex::default(),
            lost: Mutex::default(),
            pinned_dirs,
            namesakes,
            turn: Mutex::default(),
            progress,
            given_up: CancellationToken::new(),
        }
    }

    fn plugin(&self, candidate: &Candidate, prepared: Arc<Prepared>) -> Plugin {
        self.task.plugin(candidate, self.source(candidate), prepared)
    }

    fn source(&self, candidate: &Candidate) -> Source {
        match candidate {
            Candidate::Shipped(_) => Source::Shipped,
            Candidate::File(_) if lock(&self.namesakes).contains(&candidate.name()) => {
                Source::Namesake(candidate.file().into())
            }
            Candidate::File(_) => Source::File(candidate.file().into()),
        }
    }

    /// Calls the observer. A panic in it costs only this step.
    fn tell(&self, step: LoadStep<'_>) {
        if catch_unwind(AssertUnwindSafe(|| (self.task.observer)(step))).is_err() {
            tracing::error!("the observer of loading panicked");
        }
    }
}

/// Catches a compiler's panic on hostile input, which then costs only that plugin.
fn guarded<T>(work: impl FnOnce() -> Result<T, Refused>) -> Result<T, Refused> {
    catch_unwind(AssertUnwindSafe(work)).unwrap_or_else(|_| {
        Err("the compiler failed on it; the log has the details".to_owned().into())
    })
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
