//! A socket with a write timeout.
//!
//! A response body cannot enforce the timeout: hyper does not poll it while earlier frames wait to
//! be written. The socket fails instead, which drops the body with the connection.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::{Sleep, sleep};

/// The time for which a write may make no progress.
const WRITE_TIME: Duration = Duration::from_secs(30);

/// A socket whose writes fail after 30 s without progress.
pub(super) struct Socket<S> {
    inner: S,
    /// The write deadline, set while a write is pending.
    deadline: Option<Pin<Box<Sleep>>>,
}

impl<S> Socket<S> {
    pub(super) fn new(inner: S) -> Self {
        Self { inner, deadline: None }
    }

    /// Fails a pending write after the deadline.
    fn check_deadline(
        &mut self,
        cx: &mut Context<'_>,
        written: Poll<io::Result<usize>>,
    ) -> Poll<io::Result<usize>> {
        if written.is_ready() {
            self.deadline = None;
            return written;
        }
        let deadline = self.deadline.get_or_insert_with(|| Box::pin(sleep(WRITE_TIME)));
        deadline.as_mut().poll(cx).map(|()| Err(io::ErrorKind::TimedOut.into()))
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Socket<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.inner).poll_read(cx, buffer)
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Socket<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.inner).poll_write(cx, bytes);
        self.check_deadline(cx, written)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        parts: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.inner).poll_write_vectored(cx, parts);
        self.check_deadline(cx, written)
    }

    fn is_write_vectored(&self) -> bool {
        self.inner.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.inner).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.inner).poll_shutdown(cx)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]

    use super::*;
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, duplex};
    use tokio::time::Instant;

    #[tokio::test(start_paused = true)]
    async fn write_without_progress_fails_after_thirty_seconds() {
        let (ours, _theirs) = duplex(8);
        let begun = Instant::now();
        let mut socket = Socket::new(ours);
        let error = socket.write_all(&[0; 9]).await.unwrap_err();
        assert_eq!((error.kind(), begun.elapsed()), (io::ErrorKind::TimedOut, WRITE_TIME));
    }

    #[tokio::test(start_paused = true)]
    async fn slow_reader_keeps_its_connection() {
        let (ours, mut theirs) = duplex(8);
        let mut socket = Socket::new(ours);
        let reader = tokio::spawn(async move {
            let mut taken = [0; 8];
            for _ in 0..4 {
                sleep(WRITE_TIME - Duration::from_millis(2)).await;
                theirs.read_exact(&mut taken).await.unwrap();
            }
        });
        assert!(socket.write_all(&[0; 32]).await.is_ok());
        reader.await.unwrap();
    }

    #[tokio::test(start_paused = true)]
    async fn idle_socket_has_no_deadline() {
        let (ours, mut theirs) = duplex(8);
        let mut socket = Socket::new(ours);
        sleep(100 * WRITE_TIME).await;
        socket.write_all(b"late").await.unwrap();
        let mut taken = [0; 4];
        theirs.read_exact(&mut taken).await.unwrap();
        assert_eq!(&taken, b"late");
    }
}
