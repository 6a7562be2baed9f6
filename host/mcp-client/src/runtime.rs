//! The runtime of the connections: one thread, apart from the runtimes of the callers, since a
//! connection outlives the call that opens it. All of them end together with the process.

use palisade::internal::runtime_of;
use std::future::Future;
use std::io;
use std::sync::{Condvar, LazyLock, Mutex, OnceLock, PoisonError};
use std::time::Duration;
use tokio::runtime::Runtime;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

/// The time for a program to end by itself after its connection: its input is at its end then, and
/// it may still write what it holds.
pub(crate) const LAST_MOMENT: Duration = Duration::from_secs(1);
/// The time in which the programs of all servers end, by themselves or killed.
pub(crate) const END_TIME: Duration = LAST_MOMENT.saturating_mul(2);

/// Cancelled when all connections end.
static ENDING: LazyLock<CancellationToken> = LazyLock::new(CancellationToken::new);
/// The number of programs that run.
static PROGRAMS: Mutex<usize> = Mutex::new(0);
static PROGRAM_ENDED: Condvar = Condvar::new();

/// Ends all connections of the process, and waits for the programs of their servers: a server may
/// write what it holds once its input has ended. A program that goes on for more than a second is
/// killed. Call it at the end of a process; later calls of a server's tools fail.
pub fn end_all() {
    let programs = PROGRAMS.lock().unwrap_or_else(PoisonError::into_inner);
    ENDING.cancel();
    let _ = PROGRAM_ENDED.wait_timeout_while(programs, END_TIME, |programs| *programs > 0);
}

/// Returns the token of a new connection, which is cancelled when all of them end.
pub(crate) fn end_of_connection() -> CancellationToken {
    ENDING.child_token()
}

/// A program that runs, for as long as this is held.
#[derive(Debug)]
pub(crate) struct RunningProgram(());

impl RunningProgram {
    /// Counts a program.
    pub(crate) fn new() -> Self {
        *PROGRAMS.lock().unwrap_or_else(PoisonError::into_inner) += 1;
        Self(())
    }
}

impl Drop for RunningProgram {
    fn drop(&mut self) {
        *PROGRAMS.lock().unwrap_or_else(PoisonError::into_inner) -= 1;
        PROGRAM_ENDED.notify_all();
    }
}

/// Runs a future on the thread of the connections.
///
/// # Errors
///
/// If the thread cannot be started.
pub(crate) fn spawn<T: Send + 'static>(
    work: impl Future<Output = T> + Send + 'static,
) -> io::Result<JoinHandle<T>> {
    static RUNTIME: OnceLock<Runtime> = OnceLock::new();
    let runtime = runtime_of(&RUNTIME, "palisade-mcp-client")?;
    Ok(runtime.spawn(work))
}
