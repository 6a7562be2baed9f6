//! The threads that compile the functions of one component.

use crate::sandbox::bulk_memory::Sliced;
use crate::sandbox::engine::{self, CodeKind};
use rayon::{ThreadPool, ThreadPoolBuilder};
use wasmtime::Engine;

/// The maximum number of threads. Each has memory of its own, a hostile function keeps only one of
/// them busy, and many plugins are compiled at once anyway.
const MAX_THREADS: usize = 4;

/// Returns the number of cores that this process may use. The system tells it by files.
pub(super) fn cores() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from)
}

/// A thread pool, or nothing if the system starts no more threads: the caller compiles alone then.
/// The compiler would otherwise use rayon's global pool, whose failed start panics at each use.
pub(super) struct CompileThreads(Option<ThreadPool>);

impl CompileThreads {
    /// Starts a thread for each of so many cores. Each runs `on_start` first.
    pub(super) fn start(cores: usize, on_start: impl Fn() + Send + Sync + 'static) -> Self {
        let pool = ThreadPoolBuilder::new()
            .num_threads(cores.min(MAX_THREADS))
            .thread_name(|_| "palisade-compile".to_owned())
            .start_handler(move |_| on_start());
        Self(pool.build().ok())
    }

    /// Returns an engine that compiles on these threads.
    pub(super) fn engine(&self, kind: CodeKind) -> wasmtime::Result<Engine> {
        let mut config = engine::for_compilation(kind);
        Engine::new(config.parallel_compilation(self.0.is_some()))
    }

    /// Compiles a component by an engine of [`engine`](Self::engine).
    pub(super) fn precompile(
        &self,
        engine: &Engine,
        component: &Sliced<'_>,
    ) -> wasmtime::Result<Vec<u8>> {
        let compile = || engine.precompile_component(component.as_bytes());
        self.0.as_ref().map_or_else(compile, |pool| pool.install(compile))
    }
}
