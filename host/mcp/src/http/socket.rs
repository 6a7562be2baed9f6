//! A socket with a write timeout.
//!
//! A response body cannot enforce the timeout: hyper does not poll it while earlier frames wait to
//! be written. The socket fails instead, which drops the body with the connection.
//!
//! A connection that was taken over by another protocol belongs to the server of that protocol. Its
//! socket can be observed and closed from outside, and is read at a bounded rate.

use super::read_rate::ReadRate;
use std::io;
use std::pin::Pin;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::task::{Context, Poll, ready};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::{Sleep, sleep};
use tokio_util::sync::{CancellationToken, DropGuard, WaitForCancellationFutureOwned};

/// The time for which a write may make no progress.
const WRITE_TIME: Duration = Duration::from_secs(30);

/// A socket whose writes fail after 30 s without progress.
pub(super) struct Socket<S> {
    inner: S,
    /// The write deadline, set while a write is pending.
    deadline: Option<Pin<Box<Sleep>>>,
    /// Cancelled when the socket is closed from outside.
    closed: CancellationToken,
    /// Wakes a pending read, and a pending write, when the socket is closed.
    wake_read: Option<Pin<Box<WaitForCancellationFutureOwned>>>,
    wake_write: Option<Pin<Box<WaitForCancellationFutureOwned>>>,
    /// Set once another protocol has taken the connection over.
    taken_over: Arc<OnceLock<Mutex<ReadRate>>>,
    _dropped: DropGuard,
}

/// Observes a socket that others own.
pub(super) struct SocketHandle {
    taken_over: Arc<OnceLock<Mutex<ReadRate>>>,
    closed: CancellationToken,
    dropped: CancellationToken,
}

impl SocketHandle {
    /// Completes when the socket is dropped.
    pub(super) async fn dropped(&self) {
        self.dropped.cancelled().await;
    }

    /// Bounds the rate at which the socket is read from now on.
    pub(super) fn bound_reads(&self) {
        let _ = self.taken_over.set(Mutex::new(ReadRate::new()));
    }

    /// Closes the socket: nothing more is read or written.
    pub(super) fn close(&self) {
        self.closed.cancel();
    }
}

impl<S> Socket<S> {
    pub(super) fn new(inner: S) -> (Self, SocketHandle) {
        let (closed, dropped) = (CancellationToken::new(), CancellationToken::new());
        let taken_over = Arc::default();
        let handle = SocketHandle {
            taken_over: Arc::clone(&taken_over),
            closed: closed.clone(),
            dropped: dropped.clone(),
        };
        let socket = Self {
            inner,
            deadline: None,
            closed,
            wake_read: None,
            wake_write: None,
            taken_over,
            _dropped: dropped.drop_guard(),
        };
        (socket, handle)
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
        if is_closed(&mut self.wake_write, &self.closed, cx) {
            return closed();
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
        let this = &mut *self;
        // A closed socket is at its end, also while its client sends on.
        if this.closed.is_cancelled() {
            return Poll::Ready(Ok(()));
        }
        let read = match this.taken_over.get() {
            None => Pin::new(&mut this.inner).poll_read(cx, buffer),
            Some(rate) => read_at(rate, Pin::new(&mut this.inner), cx, buffer),
        };
        match read {
            Poll::Pending if is_closed(&mut this.wake_read, &this.closed, cx) => {
                Poll::Ready(Ok(()))
            }
            read => read,
        }
    }
}

/// Reads as much as the rate admits.
fn read_at<S: AsyncRead>(
    rate: &Mutex<ReadRate>,
    socket: Pin<&mut S>,
    cx: &mut Context<'_>,
    buffer: &mut ReadBuf<'_>,
) -> Poll<io::Result<()>> {
    let mut rate = rate.lock().unwrap_or_else(PoisonError::into_inner);
    let room = ready!(rate.poll_left(cx)).min(buffer.remaining());
    let mut part = ReadBuf::new(buffer.initialize_unfilled_to(room));
    ready!(socket.poll_read(cx, &mut part))?;
    let read = part.filled().len();
    rate.take(read);
    buffer.advance(read);
    Poll::Ready(Ok(()))
}

/// The outcome of a write to a closed socket.
fn closed() -> Poll<io::Result<usize>> {
    Poll::Ready(Err(io::ErrorKind::BrokenPipe.into()))
}

/// Returns true if the socket was closed, and otherwise wakes the task when it is.
fn is_closed(
    wake: &mut Option<Pin<Box<WaitForCancellationFutureOwned>>>,
    closed: &CancellationToken,
    cx: &mut Context<'_>,
) -> bool {
    let wake = wake.get_or_insert_with(|| Box::pin(closed.clone().cancelled_owned()));
    wake.as_mut().poll(cx).is_ready()
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Socket<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        if self.closed.is_cancelled() {
            return closed();
        }
        let written = Pin::new(&mut self.inner).poll_write(cx, bytes);
        self.check_deadline(cx, written)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        parts: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        if self.closed.is_cancelled() {
            return closed();
        }
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
        let (mut socket, _handle) = Socket::new(ours);
        let error = socket.write_all(&[0; 9]).await.unwrap_err();
        assert_eq!((error.kind(), begun.elapsed()), (io::ErrorKind::TimedOut, WRITE_TIME));
    }

    #[tokio::test(start_paused = true)]
    async fn slow_reader_keeps_its_connection() {
        let (ours, mut theirs) = duplex(8);
        let (mut socket, _handle) = Socket::new(ours);
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
        let (mut socket, _handle) = Socket::new(ours);
        sleep(100 * WRITE_TIME).await;
        socket.write_all(b"late").await.unwrap();
        let mut taken = [0; 4];
        theirs.read_exact(&mut taken).await.unwrap();
        assert_eq!(&taken, b"late");
    }

    #[tokio::test(start_paused = true)]
    async fn closed_socket_ends_what_waits_for_it() {
        let (ours, theirs) = duplex(8);
        let (socket, handle) = Socket::new(ours);
        let (mut reads, mut writes) = tokio::io::split(socket);
        let begun = Instant::now();
        let reading = tokio::spawn(async move { reads.read(&mut [0; 4]).await.unwrap() });
        let writing = tokio::spawn(async move { writes.write_all(&[0; 9]).await.unwrap_err() });
        sleep(Duration::from_secs(1)).await;
        handle.close();
        assert_eq!(reading.await.unwrap(), 0);
        assert_eq!(writing.await.unwrap().kind(), io::ErrorKind::BrokenPipe);
        handle.dropped().await;
        assert_eq!(begun.elapsed(), Duration::from_secs(1));
        drop(theirs);
    }

    /// Time passes only while the reader waits.
    #[tokio::test(start_paused = true)]
    async fn connection_that_was_taken_over_is_read_at_a_rate() {
        let (ours, mut theirs) = duplex(64 << 10);
        let (mut socket, handle) = Socket::new(ours);
        theirs.write_all(&[0; 40 << 10]).await.unwrap();
        let begun = Instant::now();
        let mut bytes = vec![0; 8 << 10];
        socket.read_exact(&mut bytes).await.unwrap();
        assert!(begun.elapsed().is_zero(), "HTTP is read at once");
        handle.bound_reads();
        socket.read_exact(&mut [0; 16 << 10]).await.unwrap();
        assert!(begun.elapsed().is_zero(), "a burst as well");
        socket.read_exact(&mut [0; 4 << 10]).await.unwrap();
        assert_eq!(begun.elapsed(), Duration::from_secs(4));
        let closing = async {
            sleep(Duration::from_millis(100)).await;
            handle.close();
        };
        let (read, ()) = tokio::join!(socket.read(&mut bytes), closing);
        assert_eq!(read.unwrap(), 0, "a reader that waits learns of the end");
        assert!(begun.elapsed() < Duration::from_millis(4_200));
    }

    #[tokio::test(start_paused = true)]
    async fn closed_socket_reads_nothing_of_a_client_that_sends_on() {
        let (ours, mut theirs) = duplex(8);
        let (mut socket, handle) = Socket::new(ours);
        theirs.write_all(b"more").await.unwrap();
        handle.close();
        assert_eq!(socket.read(&mut [0; 4]).await.unwrap(), 0);
    }
}
