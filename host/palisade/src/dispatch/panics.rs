//! Turns the panic of a call's work into its error, which says whose panic it was.

use super::errors::no_runtime;
use crate::execution;
use crate::tool::ErrorKind;
use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::Duration;

/// Runs the host's own work for a call and turns its panic into an error, so that a panic in the
/// host or a dependency ends only its call.
pub(super) async fn catch_panic<T>(
    work: impl Future<Output = Result<T, ErrorKind>>,
) -> Result<T, ErrorKind> {
    execution::catch_panic(work).await.unwrap_or_else(|panic| Err(panic_error(&*panic)))
}

/// Runs a native tool and turns its panic into its error.
pub(super) async fn catch_panic_of_tool<T>(
    work: impl Future<Output = Result<T, ErrorKind>>,
) -> Result<T, ErrorKind> {
    let of_tool = |panic: Box<dyn Any + Send>| {
        if has_timers() { ErrorKind::internal(panic_message(&*panic)) } else { no_runtime() }
    };
    execution::catch_panic(work).await.unwrap_or_else(|panic| Err(of_tool(panic)))
}

/// Like [`catch_panic`], for synchronous work.
pub(super) fn catch_panic_sync<T>(
    work: impl FnOnce() -> Result<T, ErrorKind>,
) -> Result<T, ErrorKind> {
    catch_unwind(AssertUnwindSafe(work)).unwrap_or_else(|panic| {
        // This work has no call whose result would be logged.
        tracing::error!("{}", panic_message(&*panic));
        Err(panic_error(&*panic))
    })
}

/// Returns the error of a panic. Its text is written for developers and may contain anything, so it
/// goes only to the log.
fn panic_error(panic: &(dyn Any + Send)) -> ErrorKind {
    if has_timers() { ErrorKind::failed_inside_host(panic_message(panic)) } else { no_runtime() }
}

/// Returns true if the current runtime has timers. Without them every wait panics, and tokio tells
/// in no other way. Asked only after a panic.
fn has_timers() -> bool {
    let is_in_runtime = tokio::runtime::Handle::try_current().is_ok();
    !is_in_runtime || catch_unwind(|| drop(tokio::time::sleep(Duration::ZERO))).is_ok()
}

fn panic_message(panic: &(dyn Any + Send)) -> String {
    format!("the call panicked: {}", text_of(panic))
}

/// Returns the text of a panic.
pub(super) fn text_of(panic: &(dyn Any + Send)) -> &str {
    execution::catch_panic::panic_text(panic).unwrap_or("no message")
}
