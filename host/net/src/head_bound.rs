//! A stream from which only so much is read before the head of the response is complete: interim
//! responses (1xx) may come without end, and each is read and dropped below.

use crate::limits;
use http::{Request, Response};
use http_body::Body;
use hyper::body::Incoming;
use hyper::client::conn::http1;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::task::{Context, Poll, ready};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::timeout;
use wasmtime_wasi_http::io::TokioIo;

/// The bytes that are read at once before the head is complete, so that no server holds the thread
/// of the network for long.
const PIECE: usize = 1 << 10;
/// The most interim responses before a response. Each costs as much as a head.
const INTERIM: u32 = 32;

/// Sends one request over a connection.
pub(crate) struct Sender<B> {
    sender: http1::SendRequest<B>,
    bytes: ReadBytes,
}

type Connection<S, B> = http1::Connection<TokioIo<HeadBound<S>>, B>;

/// The reason why there is no head of a response.
pub(crate) enum HeadError {
    /// It did not come in time.
    Slow,
    /// It is too long, with the interim responses before it.
    TooLong,
    /// The exchange failed.
    Failed(hyper::Error),
}

/// Begins HTTP/1.1 over a stream, with the bounds on the head of a response.
pub(crate) async fn handshake<S, B>(stream: S) -> hyper::Result<(Sender<B>, Connection<S, B>)>
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    B: Body + Send + 'static,
    B::Data: Send,
    B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
{
    let bytes = ReadBytes(Arc::new(AtomicU64::new(limits::BEFORE_BODY)));
    let mut builder = http1::Builder::new();
    builder.max_headers(limits::HEADER_COUNT).max_buf_size(limits::HEADERS);
    let stream = HeadBound { stream, bytes: bytes.clone() };
    let (sender, connection) = builder.handshake(TokioIo::new(stream)).await?;
    Ok((Sender { sender, bytes }, connection))
}

impl<B: Body + 'static> Sender<B> {
    /// Sends the request, and returns the response with its head, which has to come within this
    /// time.
    pub(crate) async fn send(
        mut self,
        mut request: Request<B>,
        patience: Duration,
    ) -> Result<Response<Incoming>, HeadError> {
        let (bytes, interim) = (self.bytes.clone(), AtomicU32::new(0));
        hyper::ext::on_informational(&mut request, move |_| {
            if interim.fetch_add(1, Ordering::Relaxed) >= INTERIM {
                bytes.use_up();
            }
        });
        match timeout(patience, self.sender.send_request(request)).await {
            Ok(Ok(response)) => {
                self.bytes.lift();
                Ok(response)
            }
            Ok(Err(error)) if error.is_parse_too_large() || self.bytes.are_used_up() => {
                Err(HeadError::TooLong)
            }
            Ok(Err(error)) => Err(HeadError::Failed(error)),
            Err(_) => Err(HeadError::Slow),
        }
    }
}

/// A stream with a bound on what is read from it.
pub(crate) struct HeadBound<S> {
    stream: S,
    bytes: ReadBytes,
}

/// The bytes that may still be read. Clones share them.
#[derive(Clone)]
struct ReadBytes(Arc<AtomicU64>);

impl ReadBytes {
    /// Lifts the bound: the head is complete.
    fn lift(&self) {
        self.0.store(u64::MAX, Ordering::Relaxed);
    }

    fn use_up(&self) {
        self.0.store(0, Ordering::Relaxed);
    }

    fn is_lifted(&self) -> bool {
        self.0.load(Ordering::Relaxed) == u64::MAX
    }

    /// Returns true if a read was refused.
    fn are_used_up(&self) -> bool {
        self.0.load(Ordering::Relaxed) == 0
    }

    /// Takes bytes. The bound may be lifted meanwhile, which then holds.
    fn take(&self, bytes: u64) {
        let take = |left: u64| (left != u64::MAX).then(|| left.saturating_sub(bytes));
        let _ = self.0.fetch_update(Ordering::Relaxed, Ordering::Relaxed, take);
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
        if self.bytes.is_lifted() {
            return Pin::new(&mut self.stream).poll_read(cx, buf);
        }
        let mut piece = ReadBuf::new(buf.initialize_unfilled_to(PIECE.min(buf.remaining())));
        let read = ready!(Pin::new(&mut self.stream).poll_read(cx, &mut piece));
        let length = piece.filled().len();
        buf.advance(length);
        self.bytes.take(length as u64);
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
