//! Reads a request body within bounds of size, memory and time.

use super::body_memory::BodyBuffer;
use super::rejection::Rejection;
use bytes::Bytes;
use http_body_util::BodyExt as _;
use hyper::body::Body;
use std::fmt::Display;
use std::pin::{Pin, pin};
use std::time::Duration;
use tokio::time::timeout;

/// The maximum body size in bytes: room for a 1 MiB input whose JSON escapes lengthen it.
pub(super) const MAX: usize = 2 << 20;
/// The deadline for the whole body.
const TIME: Duration = Duration::from_secs(10);
/// The time for which the rest of a rejected body is awaited.
const DISCARD_TIME: Duration = Duration::from_secs(1);

/// Reads the whole body into a buffer. The memory of an announced length is reserved first.
///
/// # Errors
///
/// [`Rejection::TooLong`], [`Rejection::Slow`], [`Rejection::Broken`], and the errors of
/// [`BodyBuffer::append`].
pub(super) async fn read<B>(body: B, mut buffer: BodyBuffer<'_>) -> Result<Bytes, Rejection>
where
    B: Body<Data = Bytes>,
    B::Error: Display,
{
    let announced = usize::try_from(body.size_hint().lower()).unwrap_or(usize::MAX);
    if announced > MAX {
        return Err(Rejection::TooLong(MAX));
    }
    let mut body = pin!(body);
    let collected = match buffer.announce(announced) {
        Ok(()) => timeout(TIME, collect(body.as_mut(), &mut buffer)).await,
        Err(rejection) => Ok(Err(rejection)),
    };
    match collected.unwrap_or(Err(Rejection::Slow)) {
        Ok(()) => Ok(buffer.finish()),
        Err(rejection) => {
            drop(buffer);
            if rejection.is_overload() {
                discard(body).await;
            }
            Err(rejection)
        }
    }
}

/// Copies the chunks into one buffer: a list of one-byte chunks would cost far more memory than
/// their content.
async fn collect<B>(mut body: Pin<&mut B>, buffer: &mut BodyBuffer<'_>) -> Result<(), Rejection>
where
    B: Body<Data = Bytes>,
    B::Error: Display,
{
    while let Some(frame) = body.frame().await {
        let frame = frame.map_err(|error| Rejection::Broken(error.to_string()))?;
        if let Ok(data) = frame.into_data() {
            buffer.append(&data)?;
        }
    }
    Ok(())
}

/// Reads the rest of a body and drops it. Closing a connection with unread bytes resets it, and the
/// client could lose the response.
async fn discard<B: Body<Data = Bytes>>(mut body: Pin<&mut B>) {
    let discarded = async {
        let mut length = 0;
        while length <= MAX
            && let Some(Ok(frame)) = body.frame().await
        {
            length += frame.data_ref().map_or(0, Bytes::len);
        }
    };
    let _ = timeout(DISCARD_TIME, discarded).await;
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]

    use super::super::body_memory::BodyMemory;
    use super::super::client_address::ClientAddress;
    use super::*;
    use hyper::body::{Frame, SizeHint};
    use palisade::sandbox::limits::Limits;
    use std::convert::Infallible;
    use std::task::{Context, Poll};
    use tokio::sync::mpsc::{Receiver, channel};

    /// A body of the chunks from a channel, with the lower bound of its size hint. A chunked body
    /// has a bound of 0.
    struct Chunks(Receiver<Bytes>, u64);

    impl Body for Chunks {
        type Data = Bytes;
        type Error = Infallible;

        fn poll_frame(
            mut self: Pin<&mut Self>,
            cx: &mut Context<'_>,
        ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
            self.0.poll_recv(cx).map(|chunk| chunk.map(|chunk| Ok(Frame::data(chunk))))
        }

        fn size_hint(&self) -> SizeHint {
            let mut hint = SizeHint::new();
            hint.set_lower(self.1);
            hint
        }
    }

    async fn read<B>(body: B) -> Result<Bytes, Rejection>
    where
        B: Body<Data = Bytes, Error = Infallible>,
    {
        read_within(BodyMemory::unlimited(), body).await
    }

    async fn read_within<B>(memory: BodyMemory, body: B) -> Result<Bytes, Rejection>
    where
        B: Body<Data = Bytes, Error = Infallible>,
    {
        let account = memory.account();
        super::read(body, memory.buffer(ClientAddress::Local, &account)).await
    }

    async fn of_chunks(chunks: Vec<Bytes>) -> Result<Bytes, Rejection> {
        let (send, receive) = channel(1);
        let (read, ()) = tokio::join!(read(Chunks(receive, 0)), async move {
            for chunk in chunks {
                let _ = send.send(chunk).await;
            }
        });
        read
    }

    #[tokio::test]
    async fn body_has_two_mebibytes_at_most() {
        let half = Bytes::from(vec![b'x'; MAX / 2]);
        let byte = Bytes::from_static(b"x");
        assert_eq!(of_chunks(vec![half.clone(), half.clone()]).await.unwrap().len(), MAX);
        assert_eq!(of_chunks(vec![half.clone(), half, byte]).await, Err(Rejection::TooLong(MAX)));
    }

    #[tokio::test(start_paused = true)]
    async fn announced_length_is_checked_before_reading() {
        let (_send, receive) = channel(1);
        assert_eq!(read(Chunks(receive, MAX as u64 + 1)).await, Err(Rejection::TooLong(MAX)));
    }

    #[tokio::test(start_paused = true)]
    async fn slow_body_fails_after_ten_seconds() {
        let (send, receive) = channel(1);
        let begun = tokio::time::Instant::now();
        let dribble = tokio::spawn(async move {
            while send.send(Bytes::from_static(b"x")).await.is_ok() {
                tokio::time::sleep(Duration::from_secs(1)).await;
            }
        });
        assert_eq!(read(Chunks(receive, 0)).await, Err(Rejection::Slow));
        assert_eq!(begun.elapsed(), TIME);
        dribble.await.unwrap();
    }

    #[tokio::test(start_paused = true)]
    async fn rejected_body_is_discarded_for_a_second() {
        let none = || BodyMemory::new(Limits { total_memory: 0, ..Limits::default() });
        let rejected = |read| assert!(matches!(read, Err(Rejection::NoMemory(_))), "{read:?}");
        for announced in [0, 1000] {
            let (send, receive) = channel(1);
            let whole = tokio::spawn(async move {
                let part = Bytes::from_static(&[b'x'; 100]);
                for _ in 0..10 {
                    send.send(part.clone()).await.unwrap();
                }
            });
            rejected(read_within(none(), Chunks(receive, announced)).await);
            whole.await.unwrap();
        }
        let (send, receive) = channel(1);
        let begun = tokio::time::Instant::now();
        rejected(read_within(none(), Chunks(receive, 1000)).await);
        assert_eq!(begun.elapsed(), DISCARD_TIME);
        drop(send);
    }
}
