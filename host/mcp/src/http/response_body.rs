//! The body of a response, and guards that live as long as its bytes: each data frame holds one,
//! since hyper drops the body while its last frame is still queued for writing.

use bytes::Bytes;
use http_body_util::BodyExt as _;
use http_body_util::combinators::BoxBody;
use hyper::body::{Frame, SizeHint};
use std::convert::Infallible;
use std::pin::Pin;
use std::task::{Context, Poll};

/// The body of a response.
pub(crate) type Body = BoxBody<Bytes, Infallible>;

/// Returns bytes that hold a guard until the last reference to them is dropped.
pub(crate) fn guarded_bytes(
    bytes: impl AsRef<[u8]> + Send + 'static,
    guard: impl Send + 'static,
) -> Bytes {
    struct Guarded<B, T>(B, T);
    impl<B: AsRef<[u8]>, T> AsRef<[u8]> for Guarded<B, T> {
        fn as_ref(&self) -> &[u8] {
            self.0.as_ref()
        }
    }
    Bytes::from_owner(Guarded(bytes, guard))
}

/// Wraps a body so that it and each of its data frames hold a guard until dropped.
pub(crate) fn guarded_body(body: Body, guard: impl Clone + Send + Sync + Unpin + 'static) -> Body {
    GuardedBody { body, guard }.boxed()
}

struct GuardedBody<T> {
    body: Body,
    guard: T,
}

impl<T: Clone + Send + Unpin + 'static> hyper::body::Body for GuardedBody<T> {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        let frame = Pin::new(&mut self.body).poll_frame(cx);
        frame.map_ok(|frame| frame.map_data(|part| guarded_bytes(part, self.guard.clone())))
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use http_body_util::Full;
    use hyper::body::Body as _;
    use std::sync::Arc;

    #[tokio::test]
    async fn guard_lives_until_the_last_bytes_are_dropped() {
        let counted = Arc::new(());
        let mut body = guarded_body(Full::from(&b"0123456789"[..]).boxed(), counted.clone());
        assert_eq!(body.size_hint().exact(), Some(10));
        let frame = body.frame().await;
        assert!(body.is_end_stream());
        drop(body);
        let mut bytes =
            frame.and_then(Result::ok).and_then(|frame| frame.into_data().ok()).unwrap_or_default();
        let part = bytes.split_to(3);
        drop(bytes);
        assert_eq!((&part[..], Arc::strong_count(&counted)), (&b"012"[..], 2));
        drop(part);
        assert_eq!(Arc::strong_count(&counted), 1);
    }
}
