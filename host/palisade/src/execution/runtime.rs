//! Runtimes with worker threads. `Builder::build` of tokio panics if the system starts no thread
//! for the first worker, and waits without end if it starts none for a later one, so the threads
//! are started first, and each gives its place to a worker.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Sender, channel};
use std::sync::{Mutex, OnceLock, PoisonError};
use std::thread::{self, JoinHandle};
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
    // One more, for a thread that another part of the program starts meanwhile.
    let held = (0..=workers).map(|_| HeldThread::start()).collect::<io::Result<Vec<_>>>()?;
    let (held, name) = (Mutex::new(held), name.to_owned());
    let give_place = |held: &Mutex<Vec<HeldThread>>| {
        drop(held.lock().unwrap_or_else(PoisonError::into_inner).pop());
    };
    give_place(&held);
    // Tokio asks for the name of each thread immediately before it starts the thread.
    let name_of_next = move || {
        give_place(&held);
        name.clone()
    };
    Builder::new_multi_thread()
        .worker_threads(workers)
        .thread_name_fn(name_of_next)
        .enable_all()
        .build()
}

/// The most looks at a thread that has ended, until the system has forgotten it.
const LOOKS: usize = 10_000;

/// A thread that does nothing, so that no other takes its place among those that the system allows.
/// When the value is dropped, the system counts it no more.
struct HeldThread {
    /// The thread ends with this.
    hold: Option<Sender<()>>,
    /// It returns its path below `/proc`.
    thread: Option<JoinHandle<Option<PathBuf>>>,
}

impl HeldThread {
    fn start() -> io::Result<Self> {
        let (hold, held) = channel::<()>();
        let wait = move || {
            let _ = held.recv();
            fs::read_link("/proc/thread-self").ok()
        };
        let thread = thread::Builder::new().name("palisade-held".to_owned()).spawn(wait)?;
        Ok(Self { hold: Some(hold), thread: Some(thread) })
    }
}

impl Drop for HeldThread {
    fn drop(&mut self) {
        drop(self.hold.take());
        let ended = self.thread.take().and_then(|thread| thread.join().ok().flatten());
        // Linux counts a thread a little longer than it runs, and until it leaves `/proc`.
        let Some(path) = ended.map(|path| Path::new("/proc").join(path)) else { return };
        for _ in 0..LOOKS {
            if !path.exists() {
                break;
            }
            thread::yield_now();
        }
    }
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
