//! Blocking work of the host, on threads of its own pool. `tokio::task::spawn_blocking` panics if
//! the system starts no thread; this pool returns an error, so that the call ends with a result.

use super::catch_panic::panic_text;
use super::thread_pool::{ThreadPool, Unstarted};
use crate::tool::ErrorKind;
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, OnceLock};
use tokio::sync::oneshot;

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

/// Runs work that may block on a thread of the pool and returns its result. The work runs to its
/// end even if the future is dropped. The caller bounds the number of such pieces of work.
///
/// # Errors
///
/// [`BlockingError`].
pub async fn run_blocking<T: Send + 'static>(
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<T, BlockingError> {
    let (send, done) = oneshot::channel();
    let job = move || {
        let result = catch_unwind(AssertUnwindSafe(work));
        let _ = send.send(result.map_err(|panic| {
            BlockingError::Panicked(panic_text(&*panic).unwrap_or("no message").to_owned())
        }));
    };
    static POOL: OnceLock<Arc<ThreadPool>> = OnceLock::new();
    let pool = POOL.get_or_init(|| ThreadPool::new("palisade-blocking"));
    pool.start(Box::new(job)).map_err(|Unstarted { error, .. }| BlockingError::NoThread(error))?;
    // A job always sends, so the sender is dropped only with the process.
    done.await.unwrap_or_else(|gone| Err(BlockingError::Panicked(gone.to_string())))
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
    use super::*;
    use std::time::Duration;
    use tokio::time::timeout;

    #[tokio::test]
    async fn work_returns_its_result() {
        assert_eq!(run_blocking(|| 7).await.unwrap(), 7);
    }

    #[tokio::test]
    async fn panic_of_the_work_is_an_error() {
        let ended = run_blocking(|| panic!("broken")).await;
        let text = ended.map(|()| unreachable!()).unwrap_err().to_string();
        assert_eq!(text, "the work panicked: broken");
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
