//! The body of a response, and guards that live as long as its bytes: each data frame holds one,
//! since hyper drops the body while its last frame is still queued for writing.

use bytes::Bytes;
use http_body_util::combinators::{BoxBody, UnsyncBoxBody};
use http_body_util::{BodyExt as _, Full};
use hyper::body::{Body as HttpBody, Frame, SizeHint};
use palisade::BoxFuture;
use std::convert::Infallible;
use std::error::Error;
use std::fmt;
use std::pin::Pin;
use std::task::{Context, Poll};

/// The error of a response's body.
pub(crate) type BoxError = Box<dyn Error + Send + Sync>;

/// A body that cannot fail and can be shared, as `rmcp` makes it.
pub(crate) type SharedBody = BoxBody<Bytes, Infallible>;

/// The body of a response: bytes, or any body of bytes.
pub struct Body(Kind);

enum Kind {
    Whole(Full<Bytes>),
    Shared(SharedBody),
    Other(UnsyncBoxBody<Bytes, BoxError>),
}

impl Body {
    /// Wraps a body. If it fails, the connection is closed in the middle of the response.
    pub fn new<B>(body: B) -> Self
    where
        B: HttpBody<Data = Bytes> + Send + 'static,
        B::Error: Into<Box<dyn Error + Send + Sync>>,
    {
        Self(Kind::Other(body.map_err(Into::into).boxed_unsync()))
    }

    /// Creates a body without bytes.
    #[must_use]
    pub fn empty() -> Self {
        Self::from(Bytes::new())
    }

    /// Ends a stream when the future completes. A body of known length is sent to its end.
    pub(super) fn until<F>(self, ended: impl FnOnce() -> F) -> Self
    where
        F: Future<Output = ()> + Send + 'static,
    {
        if self.size_hint().exact().is_some() {
            return self;
        }
        Self::new(Until { body: self, ended: Box::pin(ended()) })
    }
}

impl From<Bytes> for Body {
    fn from(bytes: Bytes) -> Self {
        Self(Kind::Whole(Full::new(bytes)))
    }
}

impl From<SharedBody> for Body {
    fn from(body: SharedBody) -> Self {
        Self(Kind::Shared(body))
    }
}

impl fmt::Debug for Body {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Body").field("size", &self.size_hint()).finish_non_exhaustive()
    }
}

impl HttpBody for Body {
    type Data = Bytes;
    type Error = Box<dyn Error + Send + Sync>;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        match &mut self.0 {
            Kind::Whole(body) => Pin::new(body).poll_frame(cx).map_err(|never| match never {}),
            Kind::Shared(body) => Pin::new(body).poll_frame(cx).map_err(|never| match never {}),
            Kind::Other(body) => Pin::new(body).poll_frame(cx),
        }
    }

    fn is_end_stream(&self) -> bool {
        match &self.0 {
            Kind::Whole(body) => body.is_end_stream(),
            Kind::Shared(body) => body.is_end_stream(),
            Kind::Other(body) => body.is_end_stream(),
        }
    }

    fn size_hint(&self) -> SizeHint {
        match &self.0 {
            Kind::Whole(body) => body.size_hint(),
            Kind::Shared(body) => body.size_hint(),
            Kind::Other(body) => body.size_hint(),
        }
    }
}

/// A stream that ends early.
struct Until {
    body: Body,
    ended: BoxFuture<'static, ()>,
}

impl HttpBody for Until {
    type Data = Bytes;
    type Error = BoxError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        // First, since a body may always have a frame.
        if self.ended.as_mut().poll(cx).is_ready() {
            return Poll::Ready(None);
        }
        Pin::new(&mut self.body).poll_frame(cx)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::default()
    }
}

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
pub(crate) fn guarded_body(
    body: SharedBody,
    guard: impl Clone + Send + Sync + Unpin + 'static,
) -> SharedBody {
    GuardedBody { body, guard }.boxed()
}

struct GuardedBody<T> {
    body: SharedBody,
    guard: T,
}

impl<T: Clone + Send + Unpin + 'static> HttpBody for GuardedBody<T> {
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
