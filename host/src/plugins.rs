//! Plugins: found in directories, loaded in parallel, registered in a fixed order. One bad file never empties the list.

mod candidate;
mod reserved;
mod scan;

pub use scan::DirectoryError;

use crate::execution::Factory;
use crate::registry::{DuplicateTool, Origin, Registry};
use crate::sandbox::{Freshness, Import, Limits, Prepared, Sandbox};
use crate::tool::{Definition, Digest};
use candidate::Candidate;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::Builder;

/// A plugin that is loaded.
#[derive(Clone)]
pub struct Plugin {
    name: Arc<str>,
    file: String,
    path: Option<PathBuf>,
    prepared: Arc<Prepared>,
}

impl Plugin {
    /// Its name: its file's name without `.wasm`.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Where it came from, made fit to print.
    #[must_use]
    pub fn file(&self) -> &str {
        &self.file
    }

    /// Its file; nothing for a plugin that comes with the host.
    #[must_use]
    pub fn path(&self) -> Option<&Path> {
        self.path.as_deref()
    }

    /// The SHA-256 of its bytes.
    #[must_use]
    pub fn digest(&self) -> Digest {
        self.prepared.digest()
    }

    /// Its tools.
    #[must_use]
    pub fn definitions(&self) -> &[Definition] {
        self.prepared.definitions()
    }

    /// What it imports.
    #[must_use]
    pub fn imports(&self) -> &[Import] {
        self.prepared.imports()
    }

    /// Whether it had to be compiled.
    #[must_use]
    pub fn freshness(&self) -> Freshness {
        self.prepared.freshness()
    }
}

/// A plugin that is not loaded, and why.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rejected {
    /// Its file.
    pub file: String,
    /// What is wrong with it, and what would be accepted.
    pub reason: String,
}

/// What came of loading.
#[derive(Default, Clone)]
pub struct Loaded {
    /// The plugins that are there.
    pub plugins: Vec<Plugin>,
    /// The files that were refused.
    pub rejected: Vec<Rejected>,
}

/// A step of loading, for whoever shows it.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum LoadStep<'a> {
    /// So many plugins are going to be loaded.
    Start(usize),
    /// This one is done, one way or the other.
    Done(&'a str),
    /// All are.
    End,
}

/// Takes the steps of loading; called from several threads.
pub type LoadObserver = Arc<dyn Fn(LoadStep<'_>) + Send + Sync>;

/// Where plugins come from.
#[derive(Debug, Clone, Default)]
pub struct Sources {
    /// Those that come with the host.
    pub shipped: Shipped,
    /// Directories, in order; their `.wasm` files by the bytes of their names.
    pub directories: Vec<PathBuf>,
    /// Single files.
    pub files: Vec<PathBuf>,
}

impl Sources {
    /// The files of its directories whose content stands elsewhere as well, so that protecting the directory is not enough.
    pub(crate) fn elsewhere(&self) -> Vec<PathBuf> {
        scan::elsewhere(self)
    }
}

/// Whether the shipped plugins are loaded.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Shipped {
    /// They are.
    #[default]
    Included,
    /// They are not, and their names are free.
    LeftOut,
    /// They are not, and their names stay theirs: a plugin from a file that would take one is rejected.
    Reserved,
}

/// Why nothing could be loaded at all.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LoadError {
    /// A directory cannot be read.
    #[error(transparent)]
    Directory(#[from] DirectoryError),
    /// The program that embeds the host brings a tool whose name is taken.
    #[error(transparent)]
    Native(#[from] DuplicateTool),
}

/// Loads everything from `sources` and registers it: first the shipped plugins, then the native tools, then files.
///
/// # Errors
///
/// [`LoadError`] where a directory cannot be read, or the name of a native tool is taken. A bad file is no error: it is listed in [`Loaded::rejected`].
pub fn load(
    sources: &Sources,
    native: &[Factory],
    sandbox: &Sandbox,
    limits: Limits,
    registry: &Registry,
    observer: &LoadObserver,
) -> Result<Loaded, LoadError> {
    let candidates = scan::candidates(sources)?;
    tell(observer, LoadStep::Start(candidates.len()));
    let prepared = prepare_all(&candidates, sandbox, observer);
    tell(observer, LoadStep::End);
    let mut loaded = Loaded::default();
    let mut native = Some(native);
    for (candidate, outcome) in candidates.iter().zip(prepared) {
        if matches!(candidate, Candidate::File(_)) {
            add_native(registry, native.take())?;
        }
        let named =
            outcome.and_then(|prepared| reserved::check(sources.shipped, prepared.definitions()).map(|()| prepared));
        match named.and_then(|prepared| register(candidate, prepared, sandbox, limits, registry)) {
            Ok(plugin) => loaded.plugins.push(plugin),
            Err(reason) => loaded.rejected.push(Rejected { file: candidate.file(), reason }),
        }
    }
    add_native(registry, native)?;
    Ok(loaded)
}

fn add_native(registry: &Registry, factories: Option<&[Factory]>) -> Result<(), DuplicateTool> {
    factories.into_iter().flatten().try_for_each(|factory| registry.register(factory.clone()).map(drop))
}

type Outcome = Result<Arc<Prepared>, String>;

/// Compilation takes every core there is; the results come back in the order of the candidates.
fn prepare_all(candidates: &[Candidate], sandbox: &Sandbox, observer: &LoadObserver) -> Vec<Outcome> {
    let next = AtomicUsize::new(0);
    let outcomes: Mutex<Vec<Option<Outcome>>> = Mutex::new(vec![None; candidates.len()]);
    let workers = std::thread::available_parallelism().map_or(1, usize::from).min(candidates.len());
    let work = || {
        while let Some((index, candidate)) = take(&next, candidates) {
            let outcome = prepare(candidate, sandbox);
            tell(observer, LoadStep::Done(&candidate.name()));
            if let Some(place) = outcomes.lock().unwrap_or_else(PoisonError::into_inner).get_mut(index) {
                *place = Some(outcome);
            }
        }
    };
    std::thread::scope(|scope| {
        for _ in 0..workers {
            // Where the system gives no more threads, those that there are do the work.
            if let Err(error) = Builder::new().name("palisade-load".to_owned()).spawn_scoped(scope, work) {
                tracing::error!("no thread to load plugins: {error}");
            }
        }
    });
    let unfinished = || Err("loading it failed inside the host; the log has the details".to_owned());
    outcomes
        .into_inner()
        .unwrap_or_else(PoisonError::into_inner)
        .into_iter()
        .map(|outcome| outcome.unwrap_or_else(unfinished))
        .collect()
}

/// An observer that panics misses its step.
fn tell(observer: &LoadObserver, step: LoadStep<'_>) {
    if catch_unwind(AssertUnwindSafe(|| observer(step))).is_err() {
        tracing::error!("the observer of loading panicked");
    }
}

fn take<'a>(next: &AtomicUsize, candidates: &'a [Candidate]) -> Option<(usize, &'a Candidate)> {
    let index = next.fetch_add(1, Ordering::Relaxed);
    candidates.get(index).map(|candidate| (index, candidate))
}

/// A compiler that panics on hostile input costs that plugin only.
fn prepare(candidate: &Candidate, sandbox: &Sandbox) -> Outcome {
    catch_unwind(AssertUnwindSafe(|| candidate.prepare(sandbox)))
        .unwrap_or_else(|_| Err("the compiler failed on it; the log has the details".to_owned()))
}

fn register(
    candidate: &Candidate,
    prepared: Arc<Prepared>,
    sandbox: &Sandbox,
    limits: Limits,
    registry: &Registry,
) -> Result<Plugin, String> {
    let name: Arc<str> = candidate.name().into();
    let origin = Origin::Plugin { name: name.clone(), digest: prepared.digest() };
    registry
        .register_plugin(&origin, sandbox.factories(&prepared, limits))
        .map_err(|duplicate| duplicate.to_string())?;
    Ok(Plugin { name, file: candidate.file(), path: candidate.path().map(Path::to_owned), prepared })
}
