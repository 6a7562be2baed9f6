//! Loading: at once what the cache knows, then on every core what has to be compiled, each plugin there as soon as nothing before it can claim its names.

mod cores;
mod rescan;
mod slot;

use super::candidate::{Candidate, Refused};
use super::homes::Homes;
use super::scan::Found;
use super::{
    LoadError, LoadObserver, LoadStep, Loaded, News, Plugin, Rejected, Rescan, Shipped, Sources, reserved, scan,
};
use crate::execution::Factory;
use crate::registry::{Origin, Place, Registered, Registry};
use crate::sandbox::{Limits, Prepared, Sandbox};
use crate::workspace::HardLinks;
use slot::{Latest, Slot};
use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::Builder;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

/// What is to be loaded, and what becomes of it.
pub(crate) struct Task {
    pub(crate) sources: Sources,
    pub(crate) sandbox: Sandbox,
    pub(crate) limits: Limits,
    pub(crate) registry: Registry,
    pub(crate) observer: LoadObserver,
    /// Whether a file that has several names can be changed under each of them.
    pub(crate) hard_links: HardLinks,
    /// Is told of every plugin once it is registered or rejected, and later of what has changed.
    pub(crate) heard: Box<dyn Fn(News<'_>) + Send + Sync>,
}

impl Task {
    fn plugin(&self, candidate: &Candidate, prepared: Arc<Prepared>) -> Plugin {
        let name: Arc<str> = candidate.name().into();
        let origin = Origin::Plugin { name: name.clone(), digest: prepared.digest() };
        let tools = Registered::of_plugin(&origin, self.sandbox.factories(&prepared, self.limits));
        Plugin { name, file: candidate.file(), path: candidate.path().map(Path::to_owned), prepared, tools }
    }
}

/// Loading, from its begin on. What still compiles is given up when this is dropped.
pub(crate) struct Loading(Arc<Work>);

/// How far loading has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Progress {
    /// So many plugins are registered, or rejected.
    pub decided: usize,
    /// Of so many.
    pub of: usize,
    /// Whether somebody is at work on the others.
    pub(crate) goes_on: bool,
}

impl Progress {
    /// Whether nothing is left to do.
    #[must_use]
    pub fn is_complete(self) -> bool {
        self.decided >= self.of
    }

    /// Whether there is nothing to wait for.
    pub(crate) fn has_ended(self) -> bool {
        self.is_complete() || !self.goes_on
    }
}

impl Loading {
    /// Finds the plugins, and registers the native tools and all plugins whose compiled code the cache has.
    ///
    /// # Errors
    ///
    /// [`LoadError`] where a directory cannot be read, or the name of a native tool is taken. A bad file is no error: it is among the rejected.
    pub(crate) fn begin(task: Task, native: &[Factory]) -> Result<Self, LoadError> {
        // Held before they are looked into: what lies there later is told from what lay there then.
        let homes = Homes::hold(&task.sources, task.hard_links);
        let found = scan::look(&task.sources)?;
        for factory in native {
            reserved::check_native(task.sources.shipped, factory, &task.registry)?;
            task.registry.register_at(Place::Native, factory.clone())?;
        }
        let work = Arc::new(Work::new(task, found, homes));
        work.recall();
        Ok(Self(work))
    }

    /// Compiles what is left, and returns when that is done.
    pub(crate) fn finish(&self) {
        self.0.compile();
    }

    /// Compiles as much of what is left as it takes to know this tool: the shipped plugin that has it, or files up to the one that does.
    pub(crate) fn finish_for(&self, tool: &str) {
        self.0.compile_for(tool);
    }

    /// Compiles what is left on threads of its own.
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

    /// What came of it so far, in the order in which plugins are looked for.
    pub(crate) fn loaded(&self) -> Loaded {
        let mut loaded = Loaded::default();
        for slot in lock(&self.0.decided).values() {
            loaded.plugins.extend(slot.standing.clone());
            loaded.rejected.extend(slot.rejected.clone());
        }
        loaded.rejected.extend(lock(&self.0.lost).iter().cloned());
        loaded
    }

    /// What is first found of the plugins that there are by now, in their order. None of them is copied.
    pub(crate) fn find<T>(&self, what: impl FnMut(&Plugin) -> Option<T>) -> Option<T> {
        lock(&self.0.decided).values().filter_map(|slot| slot.standing.as_ref()).find_map(what)
    }

    /// Looks again for files, once all that were there are decided. On a thread of its own: the caller's may be one that drives futures.
    pub(crate) fn rescan(&self) -> Rescan {
        std::thread::scope(|scope| {
            let look = Builder::new().name("palisade-load".to_owned()).spawn_scoped(scope, || self.0.rescan());
            let look = look.inspect_err(|error| tracing::error!("no thread to look for plugins again: {error}"));
            look.ok().and_then(|look| look.join().ok()).unwrap_or_default()
        })
    }

    /// The same, for a thread where no futures run: as long as this is there. It does not keep the plugins.
    pub(super) fn again(&self) -> impl Fn() -> Option<Rescan> + Send + 'static {
        let work = Arc::downgrade(&self.0);
        move || {
            let work = work.upgrade().filter(|work| !work.given_up.is_cancelled())?;
            Some(catch_unwind(AssertUnwindSafe(|| work.rescan())).unwrap_or_default())
        }
    }

    /// The directories that had no plugin in them at the start.
    pub(crate) fn empty_directories(&self) -> &[PathBuf] {
        &self.0.empty
    }

    /// Where plugins are looked for.
    pub(super) fn sources(&self) -> &Sources {
        &self.0.task.sources
    }

    /// How far it has come, now and later.
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

/// What the threads share.
struct Work {
    task: Task,
    candidates: Vec<Candidate>,
    /// The directories that had no plugin in them.
    empty: Vec<PathBuf>,
    /// Those that the cache does not know.
    unknown: Mutex<Vec<usize>>,
    queue: Mutex<Queue>,
    decided: Mutex<BTreeMap<usize, Slot>>,
    /// The directories that could not be looked into again.
    lost: Mutex<Vec<Rejected>>,
    homes: Homes,
    /// Compiling, or looking again: one at a time.
    turn: Mutex<()>,
    progress: watch::Sender<Progress>,
    given_up: CancellationToken,
}

/// Files that are prepared, and wait for those before them: of two that claim a name the first has it, whichever is the faster to compile.
struct Queue {
    waiting: BTreeMap<usize, Outcome>,
    next: usize,
}

impl Work {
    fn new(task: Task, found: Found, homes: Homes) -> Self {
        let Found { candidates, empty } = found;
        let next = candidates.iter().take_while(|candidate| candidate.is_shipped()).count();
        let (progress, _) = watch::channel(Progress { decided: 0, of: candidates.len(), goes_on: false });
        let queue = Queue { waiting: BTreeMap::new(), next };
        Self {
            task,
            candidates,
            empty,
            unknown: Mutex::default(),
            queue: Mutex::new(queue),
            decided: Mutex::default(),
            lost: Mutex::default(),
            homes,
            turn: Mutex::default(),
            progress,
            given_up: CancellationToken::new(),
        }
    }

    /// Decides all that the cache knows, and notes the others.
    fn recall(&self) {
        self.tell(LoadStep::Start(self.candidates.len()));
        let all: Vec<usize> = (0..self.candidates.len()).collect();
        self.each(&all, |index, candidate| match guarded(|| candidate.recalled(&self.task.sandbox)) {
            Ok(Some(prepared)) => self.prepared(index, candidate, Ok(prepared)),
            Ok(None) => lock(&self.unknown).push(index),
            Err(refused) => self.prepared(index, candidate, Err(refused)),
        });
        lock(&self.unknown).sort_unstable();
    }

    /// Compiles the others.
    fn compile(&self) {
        let _turn = lock(&self.turn);
        self.compile_left();
    }

    fn compile_left(&self) {
        let _end = End(self);
        let unknown = std::mem::take(&mut *lock(&self.unknown));
        self.compile_all(&unknown, &self.given_up, || false);
    }

    /// Compiles those that this tool may come from, until it is there.
    fn compile_for(&self, tool: &str) {
        let _turn = lock(&self.turn);
        let owner = reserved::owner(tool).filter(|_| self.task.sources.shipped == Shipped::Included);
        let may_have_it = |candidate: &Candidate| match owner {
            Some(owner) => candidate.is_shipped() && candidate.name() == owner,
            None => !candidate.is_shipped(),
        };
        let wanted = |index: &usize| self.candidates.get(*index).is_some_and(may_have_it);
        let (wanted, others) = lock(&self.unknown).iter().partition(|index| wanted(index));
        *lock(&self.unknown) = others;
        let wanted: Vec<usize> = wanted;
        self.compile_all(&wanted, &self.given_up.child_token(), || self.task.registry.has(tool));
    }

    fn compile_all(&self, indices: &[usize], given_up: &CancellationToken, enough: impl Fn() -> bool + Sync) {
        let left: &[usize] = if enough() { &[] } else { indices };
        self.each(left, |index, candidate| {
            if given_up.is_cancelled() {
                return;
            }
            let outcome = guarded(|| candidate.prepare(&self.task.sandbox, given_up));
            // What was given up has failed for that reason and no other.
            if !given_up.is_cancelled() {
                self.prepared(index, candidate, outcome);
            }
            if enough() {
                given_up.cancel();
            }
        });
        self.tell(LoadStep::End);
    }

    fn each(&self, indices: &[usize], work: impl Fn(usize, &Candidate) + Sync) {
        cores::on_every_core(indices, |_, index| {
            if let Some(candidate) = self.candidates.get(*index) {
                work(*index, candidate);
            }
        });
    }

    fn prepared(&self, index: usize, candidate: &Candidate, outcome: Outcome) {
        self.tell(LoadStep::Done(&candidate.name()));
        if candidate.is_shipped() {
            // Nobody else can claim the names of these.
            return self.decide(index, outcome);
        }
        let mut queue = lock(&self.queue);
        queue.waiting.insert(index, outcome);
        while let Some(outcome) = {
            let next = queue.next;
            queue.waiting.remove(&next)
        } {
            self.decide(queue.next, outcome);
            queue.next += 1;
        }
    }

    fn decide(&self, index: usize, outcome: Outcome) {
        let Some(candidate) = self.candidates.get(index) else { return };
        let slot = match outcome {
            Ok(prepared) => {
                let plugin = self.task.plugin(candidate, prepared);
                let registered = self.register(index, candidate, &plugin);
                Slot::new(candidate, Latest::of(plugin), registered)
            }
            Err(Refused { reason, digest }) => {
                Slot::new(candidate, Latest { look: None, digest, plugin: Err(reason.clone()) }, Err(reason))
            }
        };
        lock(&self.decided).insert(index, slot.clone());
        slot.news().for_each(|news| (self.task.heard)(news));
        self.progress.send_modify(|progress| progress.decided += 1);
    }

    fn register(&self, index: usize, candidate: &Candidate, plugin: &Plugin) -> Result<(), String> {
        let Task { sources, registry, .. } = &self.task;
        self.check_offer(plugin)?;
        let place = if candidate.is_shipped() {
            Place::Shipped(index)
        } else {
            reserved::check(sources.shipped, plugin.definitions(), registry)?;
            Place::File(index)
        };
        registry.register_plugin(place, &plugin.tools).map(|_| ()).map_err(|duplicate| duplicate.to_string())
    }

    /// Of two plugins that offer one thing the first has it, as with tools.
    fn check_offer(&self, plugin: &Plugin) -> Result<(), String> {
        let decided = lock(&self.decided);
        check_offer(plugin, decided.values().filter_map(|slot| slot.standing.as_ref()))
    }

    /// An observer that panics misses its step.
    fn tell(&self, step: LoadStep<'_>) {
        if catch_unwind(AssertUnwindSafe(|| (self.task.observer)(step))).is_err() {
            tracing::error!("the observer of loading panicked");
        }
    }
}

/// However the work ends, nobody waits for it any more.
struct End<'a>(&'a Work);

impl Drop for End<'_> {
    fn drop(&mut self) {
        self.0.progress.send_modify(|progress| progress.goes_on = false);
    }
}

/// A compiler that panics on hostile input costs that plugin only.
fn guarded<T>(work: impl FnOnce() -> Result<T, Refused>) -> Result<T, Refused> {
    catch_unwind(AssertUnwindSafe(work))
        .unwrap_or_else(|_| Err("the compiler failed on it; the log has the details".to_owned().into()))
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Whether a plugin offers what one of these does already.
fn check_offer<'a>(plugin: &Plugin, mut others: impl Iterator<Item = &'a Plugin>) -> Result<(), String> {
    let clash = |other: &Plugin| Some((plugin.offer().clash(other.offer())?, other.name().to_owned()));
    match others.find_map(clash) {
        Some((claim, owner)) => Err(format!("it offers {claim}, which the plugin `{owner}` does already")),
        None => Ok(()),
    }
}
