//! Loading: at once what the cache knows, then on every core what has to be compiled, each plugin there as soon as nothing before it can claim its names.

use super::candidate::Candidate;
use super::{LoadError, LoadObserver, LoadStep, Loaded, Plugin, Rejected, Shipped, Sources, reserved, scan};
use crate::execution::Factory;
use crate::registry::{Origin, Place, Registry};
use crate::sandbox::{Limits, Prepared, Sandbox};
use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
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
    /// Is told of every plugin once it is registered or rejected.
    pub(crate) heard: Box<dyn Fn(&Decision) + Send + Sync>,
}

/// What became of a candidate.
pub(crate) type Decision = Result<Plugin, Rejected>;

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

    /// Whether there is anything to wait for.
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
        let candidates = scan::candidates(&task.sources)?;
        for factory in native {
            reserved::check_native(task.sources.shipped, factory, &task.registry)?;
            task.registry.register_at(Place::Native, factory.clone())?;
        }
        let work = Arc::new(Work::new(task, candidates));
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
        for decision in lock(&self.0.decided).values() {
            match decision {
                Ok(plugin) => loaded.plugins.push(plugin.clone()),
                Err(rejected) => loaded.rejected.push(rejected.clone()),
            }
        }
        loaded
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

type Outcome = Result<Arc<Prepared>, String>;

/// What the threads share.
struct Work {
    task: Task,
    candidates: Vec<Candidate>,
    /// Those that the cache does not know.
    unknown: Mutex<Vec<usize>>,
    queue: Mutex<Queue>,
    decided: Mutex<BTreeMap<usize, Decision>>,
    progress: watch::Sender<Progress>,
    given_up: CancellationToken,
}

/// Files that are prepared, and wait for those before them: of two that claim a name the first has it, whichever is the faster to compile.
struct Queue {
    waiting: BTreeMap<usize, Outcome>,
    next: usize,
}

impl Work {
    fn new(task: Task, candidates: Vec<Candidate>) -> Self {
        let next = candidates.iter().take_while(|candidate| candidate.is_shipped()).count();
        let (progress, _) = watch::channel(Progress { decided: 0, of: candidates.len(), goes_on: false });
        let queue = Queue { waiting: BTreeMap::new(), next };
        Self {
            task,
            candidates,
            unknown: Mutex::default(),
            queue: Mutex::new(queue),
            decided: Mutex::default(),
            progress,
            given_up: CancellationToken::new(),
        }
    }

    /// Decides all that the cache knows, and notes the others.
    fn recall(&self) {
        self.tell(LoadStep::Start(self.candidates.len()));
        let all: Vec<usize> = (0..self.candidates.len()).collect();
        self.on_every_core(&all, |index, candidate| match guarded(|| candidate.recalled(&self.task.sandbox)) {
            Ok(Some(prepared)) => self.prepared(index, candidate, Ok(prepared)),
            Ok(None) => lock(&self.unknown).push(index),
            Err(reason) => self.prepared(index, candidate, Err(reason)),
        });
        lock(&self.unknown).sort_unstable();
    }

    /// Compiles the others.
    fn compile(&self) {
        let _end = End(self);
        let unknown = std::mem::take(&mut *lock(&self.unknown));
        self.compile_all(&unknown, &self.given_up, || false);
    }

    /// Compiles those that this tool may come from, until it is there.
    fn compile_for(&self, tool: &str) {
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
        self.on_every_core(left, |index, candidate| {
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

    /// Does this with each of these candidates, on threads of its own: the compiler's parent must not wait on a thread that drives others' futures.
    fn on_every_core(&self, indices: &[usize], work: impl Fn(usize, &Candidate) + Sync) {
        if indices.is_empty() {
            return;
        }
        let next = AtomicUsize::new(0);
        let turns = || {
            while let Some(index) = indices.get(next.fetch_add(1, Ordering::Relaxed)) {
                if let Some(candidate) = self.candidates.get(*index) {
                    work(*index, candidate);
                }
            }
        };
        let workers = std::thread::available_parallelism().map_or(1, usize::from).min(indices.len());
        std::thread::scope(|scope| {
            for _ in 0..workers {
                // Where the system gives no more threads, those that there are do the work.
                if let Err(error) = Builder::new().name("palisade-load".to_owned()).spawn_scoped(scope, turns) {
                    tracing::error!("no thread to load plugins: {error}");
                }
            }
        });
        // Where it gave none at all, this one does.
        turns();
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
        let registered = outcome.and_then(|prepared| self.register(index, candidate, prepared));
        let decision = registered.map_err(|reason| Rejected { file: candidate.file(), reason });
        lock(&self.decided).insert(index, decision.clone());
        (self.task.heard)(&decision);
        self.progress.send_modify(|progress| progress.decided += 1);
    }

    fn register(&self, index: usize, candidate: &Candidate, prepared: Arc<Prepared>) -> Result<Plugin, String> {
        let Task { sources, registry, sandbox, limits, .. } = &self.task;
        self.check_offer(&prepared)?;
        let place = if candidate.is_shipped() {
            Place::Shipped(index)
        } else {
            reserved::check(sources.shipped, prepared.definitions(), registry)?;
            Place::File(index)
        };
        let name: Arc<str> = candidate.name().into();
        let origin = Origin::Plugin { name: name.clone(), digest: prepared.digest() };
        let tools = sandbox.factories(&prepared, *limits);
        registry.register_plugin(place, &origin, tools).map_err(|duplicate| duplicate.to_string())?;
        Ok(Plugin { name, file: candidate.file(), path: candidate.path().map(Path::to_owned), prepared })
    }

    /// Of two plugins that offer one thing the first has it, as with tools.
    fn check_offer(&self, prepared: &Prepared) -> Result<(), String> {
        let decided = lock(&self.decided);
        let clash = |plugin: &Plugin| Some((prepared.offer().clash(plugin.offer())?, plugin.name().to_owned()));
        match decided.values().flatten().find_map(clash) {
            Some((claim, owner)) => Err(format!("it offers {claim}, which the plugin `{owner}` does already")),
            None => Ok(()),
        }
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
fn guarded<T>(work: impl FnOnce() -> Result<T, String>) -> Result<T, String> {
    catch_unwind(AssertUnwindSafe(work))
        .unwrap_or_else(|_| Err("the compiler failed on it; the log has the details".to_owned()))
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
