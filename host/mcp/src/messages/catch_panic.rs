//! Turns a panic of a request handler into an error response. Otherwise the request would never be
//! answered.

use rmcp::model::ErrorData;

/// Runs the work, and returns an internal error if it panics. The panic hook logs the message.
pub(crate) async fn catch_panic<T>(
    work: impl Future<Output = Result<T, ErrorData>>,
) -> Result<T, ErrorData> {
    palisade::internal::catch_panic(work).await.unwrap_or_else(|_| Err(panic_error()))
}

/// Builds the error after a panic.
pub(crate) fn panic_error() -> ErrorData {
    ErrorData::internal_error("the server failed inside; its log has the details", None)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn panic_is_an_error_of_the_request() {
        let answer: Result<(), _> = catch_panic(async { panic!("on purpose") }).await;
        assert_eq!(answer.map_err(|error| error.code.0), Err(-32603));
        assert_eq!(catch_panic(async { Ok(1) }).await.ok(), Some(1));
    }
}
