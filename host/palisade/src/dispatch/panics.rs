//! Turns the panic of a call's work into its error.

use crate::execution;
use crate::tool::ErrorKind;
use std::panic::{AssertUnwindSafe, catch_unwind};

/// Runs a future and turns its panic into an error, so that a panic in a tool, a confirmer or a
/// dependency ends only its call.
pub(super) async fn catch_panic<T>(
    work: impl Future<Output = Result<T, ErrorKind>>,
) -> Result<T, ErrorKind> {
    execution::catch_panic(work).await.unwrap_or_else(|panic| Err(panic_error(&*panic)))
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
fn panic_error(panic: &(dyn std::any::Any + Send)) -> ErrorKind {
    ErrorKind::internal(panic_message(panic))
}

fn panic_message(panic: &(dyn std::any::Any + Send)) -> String {
    let text = execution::catch_panic::panic_text(panic);
    format!("the call panicked: {}", text.unwrap_or("no message"))
}
