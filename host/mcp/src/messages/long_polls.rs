//! Polls work of `rmcp` on the host's own threads while it may be long: `rmcp` parses and
//! serializes messages within a poll, and the threads of the runtime serve all clients.

use super::offload::budget;
use palisade::BoxFuture;
use palisade::internal::{Account, IN_PLACE, input_turns_within, offload};
use palisade::tool::budget::Exhausted;
use std::mem;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Wake, Waker, ready};

/// Something that is polled.
pub(crate) trait Polled: Send + 'static {
    /// The outcome of a poll.
    type Output: Send + 'static;

    /// Polls it.
    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<Self::Output>;
}

impl<F: Future<Output: Send + 'static> + Send + 'static> Polled for Pin<Box<F>> {
    type Output = F::Output;

    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<F::Output> {
        self.as_mut().poll(cx)
    }
}

/// Something whose polls may be long: while the account of its request holds much memory, since the
/// memory of a response is reserved before it is sent.
pub(crate) struct LongPolls<P: Polled> {
    /// The mutex is never locked; it makes the state `Sync`.
    state: Mutex<State<P>>,
    account: Account,
    /// The waker of each poll. A task may poll for reasons of its own: only a wake leads to
    /// another poll here, which would take a turn on another thread for nothing, and wake the
    /// waiter at its end to poll once more.
    task: Arc<WokenTask>,
}

/// A poll on another thread. It returns the outcome, and what was polled.
type Polling<P> = BoxFuture<'static, Result<(Poll<<P as Polled>::Output>, P), Exhausted>>;

enum State<P: Polled> {
    Idle(P),
    /// It is polled on another thread.
    Polling(Polling<P>),
    /// It was not polled in time.
    Over,
}

impl<P: Polled> LongPolls<P> {
    /// Wraps it, for a request with this account.
    pub(crate) fn new(polled: P, account: Account) -> Self {
        Self { state: Mutex::new(State::Idle(polled)), account, task: Arc::default() }
    }

    /// Polls it: here if that is short, and otherwise on another thread.
    ///
    /// # Errors
    ///
    /// The reason why it was not polled in time. It is dropped then, and must not be polled again.
    pub(crate) fn poll(&mut self, cx: &mut Context<'_>) -> Poll<Result<P::Output, Exhausted>> {
        let state = self.state.get_mut().unwrap_or_else(PoisonError::into_inner);
        // Before the look at the mark: a wake in between reaches this waker.
        self.task.set_waker(cx.waker());
        loop {
            match state {
                State::Idle(_) if !self.task.take_woken() => return Poll::Pending,
                State::Idle(polled) if self.account.held() <= IN_PLACE as u64 => {
                    let waker = Waker::from(self.task.clone());
                    let outcome = polled.poll(&mut Context::from_waker(&waker));
                    self.task.note_outcome(&outcome);
                    return outcome.map(Ok);
                }
                State::Idle(_) => {
                    let State::Idle(polled) = mem::replace(state, State::Over) else { continue };
                    let (account, task) = (self.account.clone(), self.task.clone());
                    *state = State::Polling(poll_elsewhere(polled, account, task));
                }
                State::Polling(polling) => {
                    let polled = ready!(polling.as_mut().poll(cx));
                    *state = State::Over;
                    let (outcome, polled) = match polled {
                        Ok(polled) => polled,
                        Err(why) => return Poll::Ready(Err(why)),
                    };
                    *state = State::Idle(polled);
                    self.task.note_outcome(&outcome);
                    if let Poll::Ready(output) = outcome {
                        return Poll::Ready(Ok(output));
                    }
                }
                State::Over => return Poll::Ready(Err(Exhausted::Cancelled)),
            }
        }
    }
}

/// Polls once on another thread, on behalf of a task.
fn poll_elsewhere<P: Polled>(mut polled: P, account: Account, task: Arc<WokenTask>) -> Polling<P> {
    let runtime = tokio::runtime::Handle::current();
    Box::pin(async move {
        let budget = budget(account);
        let poll = move |_| {
            let _entered = runtime.enter();
            let outcome = polled.poll(&mut Context::from_waker(&Waker::from(task)));
            Ok((outcome, polled))
        };
        offload(&budget, input_turns_within(&budget), poll).await
    })
}

/// Wakes a task, and remembers that it did.
struct WokenTask {
    waker: Mutex<Waker>,
    is_woken: AtomicBool,
}

/// It counts as woken, so that it is polled a first time.
impl Default for WokenTask {
    fn default() -> Self {
        Self { waker: Mutex::new(Waker::noop().clone()), is_woken: AtomicBool::new(true) }
    }
}

impl WokenTask {
    fn set_waker(&self, waker: &Waker) {
        self.waker().clone_from(waker);
    }

    /// A stream that has given an item is polled for the next one without a wake.
    fn note_outcome<T>(&self, outcome: &Poll<T>) {
        if outcome.is_ready() {
            self.is_woken.store(true, Ordering::Release);
        }
    }

    fn take_woken(&self) -> bool {
        self.is_woken.swap(false, Ordering::AcqRel)
    }

    fn waker(&self) -> MutexGuard<'_, Waker> {
        self.waker.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Wake for WokenTask {
    fn wake(self: Arc<Self>) {
        self.is_woken.store(true, Ordering::Release);
        let waker = self.waker().clone();
        waker.wake();
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]

    use super::*;
    use palisade::internal::MemoryLimits;
    use std::future::poll_fn;
    use std::sync::atomic::AtomicUsize;
    use std::thread::{self, ThreadId};
    use std::time::Duration;
    use tokio::sync::oneshot;
    use tokio::time::timeout;

    fn account() -> Account {
        Account::new(MemoryLimits { call: u64::MAX, total: u64::MAX })
    }

    /// Returns the thread of the last poll of a future that gets its answer while its account holds
    /// this much.
    async fn thread_of_last_poll(held: u64) -> ThreadId {
        let account = account();
        let (send, mut answer) = oneshot::channel();
        let future = Box::pin(poll_fn(move |cx| {
            Pin::new(&mut answer).poll(cx).map(|_| thread::current().id())
        }));
        let mut long = LongPolls::new(future, account.clone());
        assert!(poll_fn(|cx| Poll::Ready(long.poll(cx).is_pending())).await);
        let _reserved = account.charge(held).unwrap();
        send.send(()).unwrap();
        poll_fn(|cx| long.poll(cx)).await.unwrap()
    }

    #[tokio::test]
    async fn long_answer_is_made_on_another_thread() {
        let own = thread::current().id();
        assert_eq!(thread_of_last_poll(IN_PLACE as u64).await, own);
        assert_ne!(thread_of_last_poll(IN_PLACE as u64 + 1).await, own);
    }

    /// A connection polls its body at the end of each of these polls, for whichever reason it wakes.
    #[tokio::test]
    async fn poll_without_a_wake_polls_nothing() {
        for held in [0, IN_PLACE as u64 + 1] {
            let account = account();
            account.reserve(held).unwrap();
            let polls = Arc::new(AtomicUsize::new(0));
            let counted = polls.clone();
            let (send, mut answer) = oneshot::channel();
            let future = Box::pin(poll_fn(move |cx| {
                counted.fetch_add(1, Ordering::Relaxed);
                Pin::new(&mut answer).poll(cx)
            }));
            let mut long = LongPolls::new(future, account);
            let waiting = timeout(Duration::from_millis(200), async {
                loop {
                    assert!(poll_fn(|cx| Poll::Ready(long.poll(cx).is_pending())).await);
                    tokio::time::sleep(Duration::from_millis(1)).await;
                }
            });
            assert!(waiting.await.is_err());
            assert_eq!(polls.load(Ordering::Relaxed), 1, "{held}");
            send.send(7).unwrap();
            assert_eq!(poll_fn(|cx| long.poll(cx)).await, Ok(Ok(7)));
            assert_eq!(polls.load(Ordering::Relaxed), 2, "{held}");
        }
    }

    #[tokio::test]
    async fn wake_during_a_poll_is_not_lost() {
        let account = account();
        account.reserve(IN_PLACE as u64 + 1).unwrap();
        let mut polls = 0;
        let own = thread::current().id();
        let future = Box::pin(poll_fn(move |cx| {
            polls += 1;
            assert_ne!(thread::current().id(), own);
            if polls == 2 {
                return Poll::Ready(());
            }
            cx.waker().wake_by_ref();
            Poll::Pending
        }));
        let mut long = LongPolls::new(future, account);
        let ended = timeout(Duration::from_secs(30), poll_fn(|cx| long.poll(cx))).await;
        assert_eq!(ended, Ok(Ok(())));
    }
}
