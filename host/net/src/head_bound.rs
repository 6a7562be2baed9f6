//! A stream from which only so much is read before the head of the response is complete: interim
//! responses (1xx) may come without end, and each is read and dropped below.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Poll, ready};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

/// A stream with a bound on what is read from it.
pub(crate) struct HeadBound<S> {
    stream: S,
    bytes: ReadBytes,
}

/// The bytes that may still be read. Clones share them.
#[derive(Clone)]
pub(crate) struct ReadBytes(Arc<AtomicU64>);

impl ReadBytes {
    /// Lifts the bound: the head is complete.
    pub(crate) fn lift(&self) {
        self.0.store(u64::MAX, Ordering::Relaxed);
    }

    /// Returns true if a read was refused.
    pub(crate) fn are_used_up(&self) -> bool {
        self.0.load(Ordering::Relaxed) == 0
    }

    /// Takes bytes. The bound may be lifted meanwhile, which then holds.
    fn take(&self, bytes: u64) {
        let take = |left: u64| (left != u64::MAX).then(|| left.saturating_sub(bytes));
        let _ = self.0.fetch_update(Ordering::Relaxed, Ordering::Relaxed, take);
    }
}

impl<S> HeadBound<S> {
    /// Bounds a stream, until the bound is lifted.
    pub(crate) fn new(stream: S, limit: u64) -> (Self, ReadBytes) {
        let bytes = ReadBytes(Arc::new(AtomicU64::new(limit)));
        (Self { stream, bytes: bytes.clone() }, bytes)
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for HeadBound<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        if self.bytes.are_used_up() {
            return Poll::Ready(Err(io::Error::other("the head of the response is too long")));
        }
        let before = buf.filled().len();
        let read = ready!(Pin::new(&mut self.stream).poll_read(cx, buf));
        self.bytes.take((buf.filled().len() - before) as u64);
        Poll::Ready(read)
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for HeadBound<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(cx, buf)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }
}
