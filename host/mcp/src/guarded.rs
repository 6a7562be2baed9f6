//! Turns a panic of a request handler into an error response. Otherwise the request would never be
//! answered.

use palisade::internal::caught;
use rmcp::model::ErrorData;

/// Runs the work, and returns an internal error if it panics. The panic hook logs the message.
pub(super) async fn guarded<T>(
    work: impl Future<Output = Result<T, ErrorData>>,
) -> Result<T, ErrorData> {
    caught(work).await.unwrap_or_else(|_| Err(failed()))
}

/// Builds the error after a panic.
pub(super) fn failed() -> ErrorData {
    ErrorData::internal_error("the server failed inside; its log has the details", None)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn panic_is_an_error_of_the_request() {
        let answer: Result<(), _> = guarded(async { panic!("on purpose") }).await;
        assert_eq!(answer.map_err(|error| error.code.0), Err(-32603));
        assert_eq!(guarded(async { Ok(1) }).await.ok(), Some(1));
    }
}
