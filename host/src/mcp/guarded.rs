//! A panic of a handler answers its request: otherwise nothing would, and its client would wait for ever.

use rmcp::model::ErrorData;
use std::future::{Future, poll_fn};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::pin;
use std::task::Poll;

/// The same work, with an error where it panics. What the panic said goes to the log by itself.
pub(super) async fn guarded<T>(work: impl Future<Output = Result<T, ErrorData>>) -> Result<T, ErrorData> {
    let mut work = pin!(work);
    poll_fn(|cx| match catch_unwind(AssertUnwindSafe(|| work.as_mut().poll(cx))) {
        Ok(poll) => poll,
        Err(_) => {
            Poll::Ready(Err(ErrorData::internal_error("the server failed inside; its log has the details", None)))
        }
    })
    .await
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_panic_is_an_error_of_the_request() {
        let answer: Result<(), _> = guarded(async { panic!("on purpose") }).await;
        assert_eq!(answer.map_err(|error| error.code.0), Err(-32603));
        assert_eq!(guarded(async { Ok(1) }).await.ok(), Some(1));
    }
}
