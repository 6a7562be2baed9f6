//! The body of a stream whose frames may be long. `rmcp` serializes a message while the body is
//! polled, and the threads of the runtime serve all clients, so long frames are made on the host's
//! own threads.

use crate::http::Body;
use crate::messages::offload::budget;
use bytes::Bytes;
use http_body_util::BodyExt as _;
use hyper::body::{Body as _, Frame, SizeHint};
use palisade::BoxFuture;
use palisade::internal::{Account, IN_PLACE, input_turns_within, offload};
use palisade::tool::budget::Exhausted;
use std::convert::Infallible;
use std::mem;
use std::pin::Pin;
use std::sync::{Mutex, PoisonError};
use std::task::{Context, Poll, ready};

/// The result of polling a body for a frame.
type PolledFrame = Poll<Option<Result<Frame<Bytes>, Infallible>>>;

/// Wraps the body of a stream. While the request's account holds much memory, a message may be
/// long, since the memory of a response is reserved before it is sent.
pub(super) fn long_frames(body: Body, account: Account) -> Body {
    LongFrames { state: Mutex::new(State::Idle(body)), account }.boxed()
}

struct LongFrames {
    /// The mutex is never locked; it makes the state `Sync`.
    state: Mutex<State>,
    account: Account,
}

enum State {
    Idle(Body),
    /// The body is polled on another thread.
    Polling(BoxFuture<'static, Result<(PolledFrame, Body), Exhausted>>),
    /// The body was not polled in time, or has ended.
    Over,
}

impl hyper::body::Body for LongFrames {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> PolledFrame {
        let this = &mut *self;
        let state = this.state.get_mut().unwrap_or_else(PoisonError::into_inner);
        let is_short = this.account.held() <= IN_PLACE as u64;
        if let State::Idle(body) = state {
            if is_short {
                return Pin::new(body).poll_frame(cx);
            }
            let State::Idle(body) = mem::replace(state, State::Over) else {
                return Poll::Ready(None);
            };
            *state = State::Polling(poll_elsewhere(body, this.account.clone(), cx));
        }
        let State::Polling(polling) = state else { return Poll::Ready(None) };
        let polled = ready!(polling.as_mut().poll(cx));
        *state = State::Over;
        let Ok((frame, mut body)) = polled else { return Poll::Ready(None) };
        let frame = match frame {
            Poll::Ready(frame) => Poll::Ready(frame),
            // The body may have woken this task before its poll was known to be pending.
            Poll::Pending => Pin::new(&mut body).poll_frame(cx),
        };
        *state = State::Idle(body);
        frame
    }

    fn is_end_stream(&self) -> bool {
        false
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::default()
    }
}

/// Polls a body on another thread, on behalf of this task.
fn poll_elsewhere(
    mut body: Body,
    account: Account,
    cx: &Context<'_>,
) -> BoxFuture<'static, Result<(PolledFrame, Body), Exhausted>> {
    let waker = cx.waker().clone();
    let runtime = tokio::runtime::Handle::current();
    Box::pin(async move {
        let budget = budget(account);
        let poll = move |_| {
            let _entered = runtime.enter();
            let frame = Pin::new(&mut body).poll_frame(&mut Context::from_waker(&waker));
            Ok((frame, body))
        };
        offload(&budget, input_turns_within(&budget), poll).await
    })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]

    use super::*;
    use palisade::internal::MemoryLimits;
    use std::sync::Arc;
    use std::thread::{self, ThreadId};
    use std::time::Duration;
    use tokio::sync::mpsc;
    use tokio::time::sleep;

    /// The time after which a message counts as lost.
    const LOST: Duration = Duration::from_secs(30);

    /// A body with a frame for each message, which notes the threads that poll it.
    struct Frames {
        messages: mpsc::UnboundedReceiver<&'static str>,
        polled_by: Arc<Mutex<Vec<ThreadId>>>,
    }

    impl hyper::body::Body for Frames {
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
        let frames = Frames { messages, polled_by: polled_by.clone() };
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
