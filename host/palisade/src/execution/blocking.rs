//! Blocking work of the host, on the blocking threads of the runtime. `spawn_blocking` panics if
//! the system starts no thread; here that is an error, so that the call ends with a result.

use crate::tool::{ErrorKind, Limit};
use rustix::io::Errno;
use rustix::process::{Resource, getrlimit};
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::thread::{Builder, JoinHandle};
use tokio::task::spawn_blocking;

/// The reason why blocking work has no result.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum BlockingError {
    /// The system starts no thread for the work, which has not run.
    #[error("the system starts no thread: {0}")]
    NoThread(#[source] io::Error),
    /// The work panicked.
    #[error("the work panicked: {0}")]
    Panicked(String),
}

/// Runs work that may block on a thread of the runtime and returns its result. The work runs to its
/// end even if the future is dropped. The caller bounds the number of such pieces of work.
///
/// # Errors
///
/// [`BlockingError`].
pub async fn run_blocking<T: Send + 'static>(
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<T, BlockingError> {
    // Started as a test, so that nothing panics in the usual case.
    let test = Builder::new().name("palisade-test".to_owned()).spawn(|| {});
    test.map(JoinHandle::join).map(drop).map_err(BlockingError::NoThread)?;
    let spawned = catch_unwind(AssertUnwindSafe(|| spawn_blocking(work)));
    let spawned = spawned.map_err(|_| BlockingError::NoThread(Errno::AGAIN.into()))?;
    spawned.await.map_err(|failed| BlockingError::Panicked(failed.to_string()))
}

impl ErrorKind {
    /// Creates the error of a call for which the system starts no thread or process. An error that
    /// does not come from a limit of the system is internal. The value of the limit is that of the
    /// user (`ulimit -u`), or 0 if another one has been reached.
    #[must_use]
    pub fn no_thread(source: io::Error) -> Self {
        if !is_thread_limit(&source) {
            return Self::failed_inside_host(source);
        }
        tracing::warn!(%source, "the system starts no thread for a call");
        let of_user = getrlimit(Resource::Nproc).current.unwrap_or(0);
        Self::ResourceExhausted { limit: Limit::Threads, value: of_user }
    }
}

/// Returns whether the system has started no thread or process because of a limit.
#[must_use]
pub fn is_thread_limit(error: &io::Error) -> bool {
    let errno = error.raw_os_error().map(Errno::from_raw_os_error);
    matches!(errno, Some(Errno::AGAIN | Errno::NOMEM))
}

impl From<BlockingError> for ErrorKind {
    fn from(error: BlockingError) -> Self {
        match error {
            BlockingError::NoThread(error) => Self::no_thread(error),
            BlockingError::Panicked(_) => Self::failed_inside_host(error),
        }
    }
}

impl From<BlockingError> for io::Error {
    fn from(error: BlockingError) -> Self {
        match error {
            BlockingError::NoThread(error) => error,
            BlockingError::Panicked(_) => Self::other(error),
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a panic is how a test fails")]
    use super::*;
    use std::time::Duration;
    use tokio::sync::oneshot;
    use tokio::time::timeout;

    #[tokio::test]
    async fn work_returns_its_result() {
        assert_eq!(run_blocking(|| 7).await.unwrap(), 7);
    }

    #[tokio::test]
    async fn panic_of_the_work_is_an_error() {
        let ended = run_blocking(|| panic!("broken")).await;
        let text = ended.map(|()| unreachable!()).unwrap_err().to_string();
        assert!(text.contains("the work panicked") && text.contains("broken"), "{text}");
    }

    #[tokio::test]
    async fn work_goes_on_when_nobody_waits() {
        let (send, done) = oneshot::channel();
        let (go, wait) = std::sync::mpsc::channel::<()>();
        let mut waiting = Box::pin(run_blocking(move || {
            let _ = wait.recv();
            let _ = send.send(());
        }));
        assert!(timeout(Duration::ZERO, &mut waiting).await.is_err());
        drop(waiting);
        go.send(()).unwrap();
        done.await.unwrap();
    }
}
