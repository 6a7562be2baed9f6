//! The bodies of requests and responses, with their limits.

use crate::redact::RedactedStream;
use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};
use http_body_util::{BodyExt as _, Empty};
use hyper::body::Incoming;
use std::convert::Infallible;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Poll, ready};
use std::time::Duration;
use tokio::time::{Instant, Sleep, sleep};
use wasmtime_wasi_http::{Error, WasiBody};

/// The bytes that the bodies of a call may still have.
#[derive(Debug, Clone)]
pub(crate) struct Allowance {
    left: Arc<AtomicU64>,
    limit: u64,
}

impl Allowance {
    pub(crate) fn new(limit: u64) -> Self {
        Self { left: Arc::new(AtomicU64::new(limit)), limit }
    }

    /// Takes bytes. Returns false if there are not as many left.
    fn take(&self, bytes: usize) -> bool {
        let take = |left: u64| left.checked_sub(bytes as u64);
        self.left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, take).is_ok()
    }
}

/// The body of a request. Trailers are dropped.
pub(crate) struct RequestBody {
    body: WasiBody,
    allowance: Allowance,
}

impl RequestBody {
    pub(crate) fn new(body: WasiBody, allowance: Allowance) -> Self {
        Self { body, allowance }
    }

    /// Returns no body. A write of the guest goes nowhere, and fails.
    pub(crate) fn none() -> Self {
        let body = Empty::new().map_err(|never: Infallible| match never {}).boxed_unsync();
        Self { body, allowance: Allowance::new(0) }
    }
}

impl Body for RequestBody {
    type Data = Bytes;
    type Error = Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Error>>> {
        let frame = ready!(Pin::new(&mut self.body).poll_frame(cx));
        let data = match frame {
            Some(Ok(frame)) => frame.into_data().ok(),
            Some(Err(error)) => return Poll::Ready(Some(Err(error))),
            None => None,
        };
        Poll::Ready(data.map(|data| match self.allowance.take(data.len()) {
            true => Ok(Frame::data(data)),
            false => Err(Error::HttpRequestBodySize(Some(self.allowance.limit))),
        }))
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

/// The body of a response: counted, ended when the server is silent, and without secrets. Trailers
/// are dropped.
pub(crate) struct ResponseBody {
    body: Incoming,
    allowance: Allowance,
    silence: Pin<Box<Sleep>>,
    patience: Duration,
    redacted: Option<RedactedStream>,
    has_ended: bool,
}

impl ResponseBody {
    pub(crate) fn new(
        body: Incoming,
        allowance: Allowance,
        redacted: Option<RedactedStream>,
        patience: Duration,
    ) -> Self {
        let silence = Box::pin(sleep(patience));
        Self { body, allowance, silence, patience, redacted, has_ended: false }
    }

    /// Ends the body. Returns the rest that the redaction held back.
    fn end(&mut self) -> Option<Bytes> {
        self.has_ended = true;
        self.redacted.as_mut().map(RedactedStream::finish).filter(|rest| !rest.is_empty())
    }

    fn fail(&mut self, error: Error) -> Poll<Option<Result<Frame<Bytes>, Error>>> {
        self.has_ended = true;
        Poll::Ready(Some(Err(error)))
    }

    /// Waits for a piece of the server.
    fn poll_silence(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        ready!(self.silence.as_mut().poll(cx));
        Poll::Ready(())
    }
}

impl Body for ResponseBody {
    type Data = Bytes;
    type Error = Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Error>>> {
        if self.has_ended {
            return Poll::Ready(None);
        }
        loop {
            let frame = match Pin::new(&mut self.body).poll_frame(cx) {
                Poll::Ready(frame) => frame,
                Poll::Pending => {
                    ready!(self.poll_silence(cx));
                    return self.fail(Error::ConnectionReadTimeout);
                }
            };
            let data = match frame {
                Some(Ok(frame)) => frame.into_data().ok(),
                Some(Err(error)) => return self.fail(error.into()),
                None => None,
            };
            let Some(data) = data else {
                return Poll::Ready(self.end().map(|rest| Ok(Frame::data(rest))));
            };
            if !self.allowance.take(data.len()) {
                let limit = self.allowance.limit;
                return self.fail(Error::HttpResponseBodySize(Some(limit)));
            }
            let until = Instant::now() + self.patience;
            self.silence.as_mut().reset(until);
            let piece = match &mut self.redacted {
                Some(redacted) => redacted.push(&data),
                None => data,
            };
            // An empty piece would look like the end to a guest.
            if !piece.is_empty() {
                return Poll::Ready(Some(Ok(Frame::data(piece))));
            }
        }
    }
}
