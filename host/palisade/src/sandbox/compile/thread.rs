//! Compilation in this process, for hosts without a child compiler. It runs on threads of its own,
//! and the wait for them is bounded, because a running compiler cannot be stopped.

use super::compiler::CompileLimits;
use super::error::CompileError;
use super::threads::{CompileThreads, cores};
use crate::sandbox::bulk_memory::Sliced;
use crate::sandbox::engine::{self, CodeKind};
use std::path::PathBuf;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, sync_channel};
use std::sync::{Arc, LazyLock, Mutex, MutexGuard, PoisonError};
use std::thread::Builder;
use std::time::{Duration, Instant};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio_util::sync::CancellationToken;

#[cfg(test)]
mod tests;

/// Compilations at once in the whole process, abandoned ones included. Each holds its threads and
/// its memory until it is done.
const AT_ONCE: usize = 2;
/// Compiler memory for each byte of a plugin that is pure code, in bytes (measured; see
/// [`CompileLimits::MEMORY`]).
const MEMORY_PER_BYTE: u64 = 28;
/// The polling interval while a compilation runs, or while a slot is awaited.
const POLL: Duration = Duration::from_millis(20);

/// The compilation slots of this process.
static SLOTS: LazyLock<CompileSlots> = LazyLock::new(CompileSlots::default);

/// A set of compilation slots.
#[derive(Clone)]
struct CompileSlots {
    /// The free slots. A compilation thread holds its slot until it ends, even if abandoned.
    free: Arc<Semaphore>,
    /// The number of slots that abandoned compilations hold.
    abandoned_slots: Arc<AtomicUsize>,
}

impl Default for CompileSlots {
    fn default() -> Self {
        Self { free: Arc::new(Semaphore::new(AT_ONCE)), abandoned_slots: Arc::default() }
    }
}

impl CompileSlots {
    /// Waits for a slot. Fails at once if abandoned compilations hold all of them.
    fn take(&self, cancel: &CancellationToken) -> Result<OwnedSemaphorePermit, CompileError> {
        loop {
            if cancel.is_cancelled() {
                return Err(CompileError::Cancelled);
            }
            if self.abandoned_slots.load(Ordering::SeqCst) >= AT_ONCE {
                return Err(CompileError::Busy);
            }
            match self.free.clone().try_acquire_owned() {
                Ok(slot) => return Ok(slot),
                Err(_) => std::thread::sleep(POLL),
            }
        }
    }
}

/// A compilation in progress.
struct Compilation {
    answer: Receiver<Result<Vec<u8>, CompileError>>,
    meters: Arc<Meters>,
    run_state: Arc<RunState>,
}

/// Compiles a component in this process, as a child would.
pub(super) fn compile(
    kind: CodeKind,
    limits: CompileLimits,
    bytes: &[u8],
    cancel: &CancellationToken,
) -> Result<Vec<u8>, CompileError> {
    compile_in(&SLOTS, kind, limits, bytes, cancel)
}

fn compile_in(
    slots: &CompileSlots,
    kind: CodeKind,
    limits: CompileLimits,
    bytes: &[u8],
    cancel: &CancellationToken,
) -> Result<Vec<u8>, CompileError> {
    check_size(bytes, limits.memory)?;
    let slot = slots.take(cancel)?;
    let work = Work { kind, component: bytes.to_vec(), memory: limits.memory };
    let compilation = begin(slot, slots.abandoned_slots.clone(), work);
    compilation.map_err(|error| CompileError::start(&error))?.wait(limits, cancel)
}

/// Estimates the memory that a compilation needs, in bytes, and compares it with `max`.
fn check_size(component: &[u8], max: u64) -> Result<(), CompileError> {
    match (component.len() as u64).saturating_mul(MEMORY_PER_BYTE) {
        memory if memory > max => Err(CompileError::Size { max }),
        _ => Ok(()),
    }
}

/// A component to compile.
struct Work {
    kind: CodeKind,
    component: Vec<u8>,
    /// The memory limit, in bytes.
    memory: u64,
}

fn begin(
    slot: OwnedSemaphorePermit,
    abandoned_slots: Arc<AtomicUsize>,
    work: Work,
) -> std::io::Result<Compilation> {
    let (answer, answered) = sync_channel(1);
    let run_state =
        Arc::new(RunState { state: AtomicUsize::new(RunState::RUNNING), abandoned_slots });
    let meters = Arc::new(Meters::default());
    let own_meters = meters.clone();
    let own_state = run_state.clone();
    Builder::new().name("palisade-compile".to_owned()).spawn(move || {
        // Declared first, so that the slot is released after the abandoned count is updated.
        let _slot = slot;
        let _ended = EndGuard(&own_state);
        own_meters.add_own();
        let threads = CompileThreads::start(cores(), move || own_meters.add_own());
        let _ = answer.send(precompile(&work, &threads));
    })?;
    Ok(Compilation { answer: answered, meters, run_state })
}

fn precompile(work: &Work, threads: &CompileThreads) -> Result<Vec<u8>, CompileError> {
    let sliced = Sliced::new(&work.component)?;
    // The rewriting adds code.
    check_size(sliced.as_bytes(), work.memory)?;
    let engine = threads.engine(work.kind).map_err(|error| CompileError::failed(&error))?;
    threads.precompile(&engine, &sliced).map_err(|error| match engine::is_out_of_memory(&error) {
        // The shortage may be caused by any part of the process, so it says nothing about the
        // component.
        true => CompileError::failed(&error),
        false => CompileError::invalid(&error),
    })
}

impl Compilation {
    fn wait(
        self,
        limits: CompileLimits,
        cancel: &CancellationToken,
    ) -> Result<Vec<u8>, CompileError> {
        let begun = Instant::now();
        let refused = loop {
            match self.answer.recv_timeout(POLL) {
                Ok(made) => return made,
                Err(RecvTimeoutError::Disconnected) => {
                    return Err(CompileError::crashed("it panicked"));
                }
                Err(RecvTimeoutError::Timeout) => {}
            }
            if cancel.is_cancelled() {
                break CompileError::Cancelled;
            }
            if self.meters.processor_time() > limits.time {
                break CompileError::Time { max: limits.time };
            }
            if begun.elapsed() > limits.wall() {
                break CompileError::Wall { max: limits.wall() };
            }
        };
        self.run_state.abandon();
        Err(refused)
    }
}

/// The files in which Linux reports the CPU time of each thread, in nanoseconds. On other systems
/// there are none, and only the wall-clock limit applies.
#[derive(Default)]
struct Meters(Mutex<Vec<PathBuf>>);

impl Meters {
    fn add_own(&self) {
        if let Ok(own) = std::fs::read_link("/proc/thread-self") {
            self.all().push(PathBuf::from("/proc").join(own).join("schedstat"));
        }
    }

    fn processor_time(&self) -> Duration {
        let nanoseconds = |file: &PathBuf| -> Option<u64> {
            std::fs::read_to_string(file).ok()?.split_whitespace().next()?.parse().ok()
        };
        Duration::from_nanos(self.all().iter().filter_map(nanoseconds).sum())
    }

    fn all(&self) -> MutexGuard<'_, Vec<PathBuf>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The state shared by a compilation thread and its waiter: running, abandoned or ended.
struct RunState {
    state: AtomicUsize,
    abandoned_slots: Arc<AtomicUsize>,
}

impl RunState {
    const RUNNING: usize = 0;
    const ABANDONED: usize = 1;
    const ENDED: usize = 2;

    fn abandon(&self) {
        // Counted first: a thread that ends right after the exchange subtracts this count.
        self.abandoned_slots.fetch_add(1, Ordering::SeqCst);
        if self
            .state
            .compare_exchange(Self::RUNNING, Self::ABANDONED, Ordering::SeqCst, Ordering::SeqCst)
            .is_err()
        {
            self.abandoned_slots.fetch_sub(1, Ordering::SeqCst);
        }
    }

    fn end(&self) {
        if self.state.swap(Self::ENDED, Ordering::SeqCst) == Self::ABANDONED {
            self.abandoned_slots.fetch_sub(1, Ordering::SeqCst);
        }
    }
}

/// Marks the thread as ended on drop, so that a panic is covered too.
struct EndGuard<'a>(&'a RunState);

impl Drop for EndGuard<'_> {
    fn drop(&mut self) {
        self.0.end();
    }
}
