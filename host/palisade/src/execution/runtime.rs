//! Runtimes with worker threads. `Builder::build` of tokio panics if the system starts no thread,
//! so the threads are started as a test first.

use std::io;
use std::sync::{Mutex, OnceLock, PoisonError};
use std::thread;
use tokio::runtime::{Builder, Runtime};

/// Creates a runtime with a worker thread for each core.
///
/// # Errors
///
/// The system's error if it starts no thread.
pub fn multi_thread_runtime() -> io::Result<Runtime> {
    build(thread::available_parallelism().map_or(1, usize::from), "palisade-runtime")
}

/// Returns the runtime of this cell, with one worker thread of this name. It is created at the
/// first use; after an error, the next use tries again.
///
/// # Errors
///
/// The system's error if it starts no thread.
pub fn runtime_of<'a>(cell: &'a OnceLock<Runtime>, name: &str) -> io::Result<&'a Runtime> {
    if cell.get().is_none()
        && let Err(spare) = cell.set(build(1, name)?)
    {
        // Another thread was faster. A plain drop would block.
        spare.shutdown_background();
    }
    cell.get().ok_or_else(|| io::Error::other("internal error: a runtime is missing"))
}

fn build(workers: usize, name: &str) -> io::Result<Runtime> {
    check_threads(workers)?;
    Builder::new_multi_thread().worker_threads(workers).thread_name(name).enable_all().build()
}

/// Checks that the system starts this many threads at once, and waits until they are gone.
fn check_threads(count: usize) -> io::Result<()> {
    let gate = Mutex::new(());
    thread::scope(|scope| {
        let closed = gate.lock().unwrap_or_else(PoisonError::into_inner);
        let start = |_| {
            let thread = thread::Builder::new().name("palisade-test".to_owned());
            thread.spawn_scoped(scope, || drop(gate.lock()))
        };
        let started: Vec<_> = (0..count).map(start).collect();
        drop(closed);
        // The scope waits for the closures alone. A thread that has not exited still counts.
        started.into_iter().try_for_each(|thread| thread.map(|thread| drop(thread.join())))
    })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a panic is how a test fails")]
    use super::*;

    #[test]
    fn runtime_of_a_cell_is_created_once() {
        let cell = OnceLock::new();
        let first = std::ptr::from_ref(runtime_of(&cell, "test").unwrap());
        assert_eq!(std::ptr::from_ref(runtime_of(&cell, "test").unwrap()), first);
        cell.into_inner().unwrap().shutdown_background();
    }
}
