//! Reads a request body within bounds of size and time.

use super::rejection::Rejection;
use bytes::Bytes;
use http_body_util::BodyExt as _;
use hyper::body::Body;
use std::fmt::Display;
use std::pin::pin;
use std::time::Duration;
use tokio::time::timeout;

/// The maximum body size in bytes: room for a 1 MiB input whose JSON escapes lengthen it.
pub(super) const MAX: usize = 2 << 20;
/// The deadline for the whole body.
const TIME: Duration = Duration::from_secs(10);

/// Reads the whole body.
///
/// # Errors
///
/// [`Rejection::TooLong`], [`Rejection::Slow`] and [`Rejection::Broken`].
pub(super) async fn read<B>(body: B) -> Result<Bytes, Rejection>
where
    B: Body<Data = Bytes>,
    B::Error: Display,
{
    if body.size_hint().lower() > MAX as u64 {
        return Err(Rejection::TooLong(MAX));
    }
    timeout(TIME, collect(body)).await.unwrap_or(Err(Rejection::Slow))
}

/// Copies the chunks into one buffer: a list of one-byte chunks would cost far more memory than
/// their content.
async fn collect<B>(body: B) -> Result<Bytes, Rejection>
where
    B: Body<Data = Bytes>,
    B::Error: Display,
{
    let mut body = pin!(body);
    let mut read = Vec::new();
    while let Some(frame) = body.frame().await {
        let frame = frame.map_err(|error| Rejection::Broken(error.to_string()))?;
        if let Ok(data) = frame.into_data() {
            if data.len() > MAX - read.len() {
                return Err(Rejection::TooLong(MAX));
            }
            read.extend_from_slice(&data);
        }
    }
    Ok(read.into())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]

    use super::*;
    use hyper::body::{Frame, SizeHint};
    use std::convert::Infallible;
    use std::pin::Pin;
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
}
