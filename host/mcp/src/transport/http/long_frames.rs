//! The body of a stream whose frames may be long. `rmcp` serializes a message while the body is
//! polled, so long frames are made on the host's own threads.

use crate::http::SharedBody as Body;
use crate::messages::long_polls::{LongPolls, Polled};
use bytes::Bytes;
use http_body_util::BodyExt as _;
use hyper::body::{Body as _, Frame, SizeHint};
use palisade::internal::Account;
use std::convert::Infallible;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

/// The result of polling a body for a frame.
type PolledFrame = Poll<Option<Result<Frame<Bytes>, Infallible>>>;

/// Wraps the body of a stream.
pub(super) fn long_frames(body: Body, account: Account) -> Body {
    LongFrames(LongPolls::new(Frames(body), account)).boxed()
}

/// The frames of a body.
struct Frames(Body);

impl Polled for Frames {
    type Output = Option<Result<Frame<Bytes>, Infallible>>;

    fn poll(&mut self, cx: &mut Context<'_>) -> PolledFrame {
        Pin::new(&mut self.0).poll_frame(cx)
    }
}

struct LongFrames(LongPolls<Frames>);

impl hyper::body::Body for LongFrames {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> PolledFrame {
        // A body that was not polled in time has ended.
        Poll::Ready(ready!(self.0.poll(cx)).unwrap_or_default())
    }

    fn is_end_stream(&self) -> bool {
        false
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::default()
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]

    use super::*;
    use palisade::internal::{IN_PLACE, MemoryLimits};
    use std::mem;
    use std::sync::{Arc, Mutex};
    use std::thread::{self, ThreadId};
    use std::time::Duration;
    use tokio::sync::mpsc;
    use tokio::time::sleep;

    /// The time after which a message counts as lost.
    const LOST: Duration = Duration::from_secs(30);

    /// A body with a frame for each message, which notes the threads that poll it.
    struct Noted {
        messages: mpsc::UnboundedReceiver<&'static str>,
        polled_by: Arc<Mutex<Vec<ThreadId>>>,
    }

    impl hyper::body::Body for Noted {
        type Data = Bytes;
        type Error = Infallible;

        fn poll_frame(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> PolledFrame {
            self.polled_by.lock().unwrap().push(thread::current().id());
            let message = ready!(self.messages.poll_recv(cx));
            Poll::Ready(message.map(|message| Ok(Frame::data(Bytes::from(message)))))
        }
    }

    #[tokio::test]
    async fn frames_are_made_on_another_thread_while_the_account_holds_much() {
        let account = Account::new(MemoryLimits { call: u64::MAX, total: u64::MAX });
        let (send, messages) = mpsc::unbounded_channel();
        let polled_by = Arc::new(Mutex::new(Vec::new()));
        let frames = Noted { messages, polled_by: polled_by.clone() };
        let mut body = long_frames(frames.boxed(), account.clone());
        let own = thread::current().id();
        for (held, is_own) in [(0, true), (IN_PLACE as u64 + 1, false), (0, true)] {
            let reserved = account.charge(held).unwrap();
            send.send("message").unwrap();
            let frame = body.frame().await.unwrap().unwrap().into_data().unwrap();
            assert_eq!(&frame[..], b"message");
            let polls = mem::take(&mut *polled_by.lock().unwrap());
            assert_eq!(polls.iter().all(|by| *by == own), is_own, "{held}");
            drop(reserved);
        }
        drop(send);
        assert!(body.frame().await.is_none());
    }

    /// A body whose frame becomes ready just before its first poll ends.
    struct ReadyAtOnce(bool);

    impl hyper::body::Body for ReadyAtOnce {
        type Data = Bytes;
        type Error = Infallible;

        fn poll_frame(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> PolledFrame {
            if mem::replace(&mut self.0, true) {
                return Poll::Ready(Some(Ok(Frame::data(Bytes::from("message")))));
            }
            cx.waker().wake_by_ref();
            Poll::Pending
        }
    }

    #[tokio::test]
    async fn message_that_comes_during_a_poll_is_not_lost() {
        let account = Account::new(MemoryLimits { call: u64::MAX, total: u64::MAX });
        account.reserve(IN_PLACE as u64 + 1).unwrap();
        let mut body = long_frames(ReadyAtOnce(false).boxed(), account);
        tokio::select! {
            biased;
            () = sleep(LOST) => panic!("the message is lost"),
            frame = body.frame() => assert!(frame.unwrap().unwrap().is_data()),
        }
    }
}
