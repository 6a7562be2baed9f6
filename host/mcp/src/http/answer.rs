//! The response body that marks its connection as busy until it is dropped.

use super::Body;
use super::places::Answering;
use bytes::Bytes;
use hyper::body::{Frame, SizeHint};
use std::convert::Infallible;
use std::pin::Pin;
use std::task::{Context, Poll};

/// A response body with the guard that keeps its connection from being evicted.
pub(super) struct Answer {
    body: Body,
    _answering: Answering,
}

impl Answer {
    pub(super) fn new(body: Body, answering: Answering) -> Self {
        Self { body, _answering: answering }
    }
}

impl hyper::body::Body for Answer {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        Pin::new(&mut self.body).poll_frame(cx)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}
