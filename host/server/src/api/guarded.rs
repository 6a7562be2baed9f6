//! A body whose memory is counted until it is sent.

use axum::body::Bytes;
use http_body::{Body, Frame, SizeHint};
use palisade::internal::Owed;
use std::convert::Infallible;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

/// The longest piece that is given to the connection at a time, in bytes.
const PIECE: usize = 64 << 10;

/// A body in memory. It is given out in pieces, so that the connection asks for the next one only
/// when its client has read the last one.
pub(super) struct Guarded {
    left: Bytes,
    _owed: Option<Arc<Vec<Owed>>>,
}

impl Guarded {
    pub(super) fn new(body: Bytes, owed: Option<Arc<Vec<Owed>>>) -> Self {
        Self { left: body, _owed: owed }
    }
}

impl Body for Guarded {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        if self.left.is_empty() {
            return Poll::Ready(None);
        }
        let length = self.left.len().min(PIECE);
        let piece = self.left.split_to(length);
        Poll::Ready(Some(Ok(Frame::data(piece))))
    }

    fn is_end_stream(&self) -> bool {
        self.left.is_empty()
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::with_exact(self.left.len() as u64)
    }
}
