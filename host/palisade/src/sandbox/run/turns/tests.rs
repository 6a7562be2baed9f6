//! Guests in turns, on a paused clock: deadlines, cancellations, and the turns of each plugin.
#![allow(clippy::unwrap_used, reason = "a test may stop at the first surprise")]

use super::*;
use crate::execution::share::Pool;
use crate::tool::Digest;
use std::sync::atomic::AtomicU64;
use std::time::Duration;
use tokio::sync::oneshot::error::TryRecvError;
use tokio::time::{advance, sleep};

const TIME: Duration = Duration::from_secs(1);

/// Computes forever, as seen from the guest's store.
async fn computing(signals: &GuestSignals) -> wasmtime::Result<()> {
    loop {
        signals.note_tick().await;
    }
}

struct Fixture {
    pool: Pool,
    clock: Arc<CallClock>,
    cancel: CancellationToken,
    signals: Arc<GuestSignals>,
    turns: Arc<Share>,
    first_tick: FirstTick,
}

impl Fixture {
    fn new(turns: u64) -> Self {
        let pool = Pool::leased(turns);
        let turns = pool.share(Digest::of(b"guest"));
        let clock = CallClock::new(TIME);
        let cancel = CancellationToken::new();
        let signals = Arc::default();
        Self { pool, clock, cancel, signals, turns, first_tick: FirstTick::Free }
    }

    /// Returns another guest of the same plugin.
    fn another(&self) -> Self {
        Self { pool: self.pool.clone(), turns: self.turns.clone(), ..Self::new(1) }
    }

    fn bounds(&self) -> RunBounds<'_> {
        RunBounds {
            clock: &self.clock,
            cancel: &self.cancel,
            signals: self.signals.clone(),
            turns: &self.turns,
            first_tick: self.first_tick,
        }
    }

    async fn run(&self) -> wasmtime::Result<()> {
        in_turns(computing(&self.signals), &self.bounds()).await
    }
}

/// Runs all tasks that are ready. Time is paused and does not pass meanwhile.
async fn settle() {
    for _ in 0..100 {
        yield_now().await;
    }
}

fn interrupted(error: &wasmtime::Error) -> Interrupted {
    *error.downcast_ref::<Interrupted>().unwrap()
}

#[tokio::test(start_paused = true)]
async fn guest_resumed_after_deadline_gets_no_tick() {
    let guest = Fixture::new(1);
    let other = guest.pool.share(Digest::of(b"other"));
    let taken = other.try_take(1).unwrap();
    let passes = async {
        settle().await;
        assert_eq!(guest.signals.ticks(), 1, "it waits for its turn");
        advance(TIME).await;
        drop(taken);
    };
    let (ended, ()) = tokio::join!(guest.run(), passes);
    assert_eq!(
        (interrupted(&ended.unwrap_err()), guest.signals.ticks()),
        (Interrupted::Deadline, 1)
    );
    assert_eq!(guest.pool.held(), 0);
}

#[tokio::test(start_paused = true)]
async fn guest_resumed_after_cancellation_gets_no_tick() {
    let guest = Fixture::new(1);
    let _ = guest.clock.deadline();
    let cancelled = async {
        settle().await;
        guest.cancel.cancel();
        guest.signals.ticks()
    };
    let (ended, ticks) = tokio::join!(guest.run(), cancelled);
    assert_eq!(
        (interrupted(&ended.unwrap_err()), guest.signals.ticks()),
        (Interrupted::Cancelled, ticks)
    );
}

/// Makes calls that end when the time of the guest is over or it is cancelled.
async fn calling(guest: &Fixture) -> wasmtime::Result<()> {
    let (cancel, clock) = (guest.cancel.clone(), guest.clock.clone());
    let calls = async move {
        tokio::select! {
            () = cancel.cancelled() => {}
            () = clock.run_out() => {}
        }
    };
    guest.signals.run_calls(calls).await.unwrap();
    panic!("it goes on");
}

#[tokio::test(start_paused = true)]
async fn calls_of_a_guest_take_turns_that_it_does_not_hold() {
    let guest = Fixture { first_tick: FirstTick::InTurn, ..Fixture::new(1) };
    let turns = guest.pool.share(Digest::of(b"called"));
    let making = async {
        let called = async move {
            for _ in 0..3 {
                drop(turns.take(1).await);
                yield_now().await;
            }
        };
        guest.signals.run_calls(called).await.unwrap();
        Ok(())
    };
    in_turns(making, &guest.bounds()).await.unwrap();
    assert_eq!((guest.pool.held(), guest.signals.makes_calls()), (0, false));
}

#[tokio::test(start_paused = true)]
async fn calls_of_a_guest_end_with_it() {
    let guest = Fixture::new(1);
    let (sender, mut ended) = tokio::sync::oneshot::channel::<()>();
    let making = async {
        let called = async move {
            let _sender = sender;
            std::future::pending::<()>().await;
        };
        guest.signals.run_calls(called).await.unwrap();
        Ok(())
    };
    let bounds = guest.bounds();
    let running = in_turns(making, &bounds);
    assert!(tokio::time::timeout(TIME / 2, running).await.is_err());
    assert!(ended.try_recv().is_err_and(|error| error == TryRecvError::Closed));
}

#[tokio::test(start_paused = true)]
async fn calls_of_an_overdue_guest_end_without_a_turn() {
    for expected in [Interrupted::Deadline, Interrupted::Cancelled] {
        let guest = Fixture { first_tick: FirstTick::InTurn, ..Fixture::new(1) };
        let other = guest.pool.share(Digest::of(b"other"));
        let ends = async {
            settle().await;
            let taken = other.try_take(1).unwrap();
            match expected {
                Interrupted::Cancelled => guest.cancel.cancel(),
                _ => advance(TIME).await,
            }
            settle().await;
            taken
        };
        let bounds = guest.bounds();
        let (ended, taken) = tokio::join!(in_turns(calling(&guest), &bounds), async {
            let taken = ends.await;
            assert!(!guest.signals.makes_calls(), "its calls have ended");
            taken
        });
        assert_eq!(interrupted(&ended.unwrap_err()), expected);
        drop(taken);
    }
}

#[tokio::test(start_paused = true)]
async fn polling_guest_may_react_until_its_deadline() {
    let guest = Fixture::new(1);
    guest.signals.note_cancellation_poll();
    guest.cancel.cancel();
    let passes = async {
        settle().await;
        assert!(guest.signals.ticks() > 1);
        advance(TIME).await;
    };
    let (ended, ()) = tokio::join!(guest.run(), passes);
    assert_eq!(interrupted(&ended.unwrap_err()), Interrupted::Deadline);
}

#[tokio::test(start_paused = true)]
async fn guests_of_one_plugin_leave_half_of_the_turns() {
    let first = Fixture::new(4);
    let guests = [first.another(), first.another(), first.another(), first];
    let passes = async {
        settle().await;
        let pool = &guests[0].pool;
        assert!(pool.held() <= 2, "{}", pool.held());
        let other = pool.share(Digest::of(b"other"));
        assert!(other.try_take(1).is_ok(), "another plugin finds a turn");
        settle().await;
        assert!(guests.iter().all(|guest| guest.signals.ticks() > 5), "none waits for ever");
        guests.iter().for_each(|guest| guest.cancel.cancel());
    };
    let [a, b, c, d] = &guests;
    let (a, b, c, d, ()) = tokio::join!(a.run(), b.run(), c.run(), d.run(), passes);
    assert!([a, b, c, d].iter().all(Result::is_err));
    assert_eq!(guests[0].pool.held(), 0);
}

#[tokio::test(start_paused = true)]
async fn first_tick_may_require_a_turn() {
    let guest = Fixture::new(1);
    let taken = guest.pool.share(Digest::of(b"other")).try_take(1).unwrap();
    let waits = guest.another();
    let late = Fixture { first_tick: FirstTick::InTurn, ..guest.another() };
    let passes = async {
        settle().await;
        assert_eq!((waits.signals.ticks(), late.signals.ticks()), (1, 0));
        drop(taken);
        settle().await;
        assert!(late.signals.ticks() > 0);
        for guest in [&waits, &late] {
            guest.cancel.cancel();
        }
    };
    let later = async {
        yield_now().await;
        late.run().await
    };
    let (one, other, ()) = tokio::join!(waits.run(), later, passes);
    assert!(one.is_err() && other.is_err());
}

#[tokio::test(start_paused = true)]
async fn first_ticks_at_once_are_bounded() {
    let guest = Fixture::new(1);
    let taken = guest.pool.share(Digest::of(b"other")).try_take(1).unwrap();
    // Another thread is in a first tick.
    let elsewhere = guest.pool.beside().unwrap();
    let later = guest.another();
    let passes = async {
        settle().await;
        assert_eq!(guest.signals.ticks(), 0, "it waits for a turn");
        drop(elsewhere);
        let ticks = async {
            settle().await;
            assert_eq!(later.signals.ticks(), 1, "the slot was free again");
            drop(taken);
            [&guest, &later].iter().for_each(|guest| guest.cancel.cancel());
        };
        tokio::join!(later.run(), ticks).0
    };
    let (ended, later_ended) = tokio::join!(guest.run(), passes);
    assert!(ended.is_err() && later_ended.is_err());
    assert!(guest.pool.beside().is_some(), "all slots are free");
}

#[tokio::test(start_paused = true)]
async fn guest_waiting_for_the_host_holds_no_turn() {
    let guest = Fixture::new(1);
    let polls = AtomicU64::new(0);
    let sleeping = async {
        guest.signals.note_tick().await;
        sleep(TIME / 2).await;
        polls.fetch_add(1, Ordering::Relaxed);
        guest.signals.note_tick().await;
        Ok(())
    };
    let watched = async {
        settle().await;
        assert_eq!((guest.pool.held(), guest.signals.ticks()), (0, 1));
        advance(TIME / 2 - Duration::from_millis(10)).await;
        settle().await;
        assert_eq!(polls.load(Ordering::Relaxed), 0);
        advance(Duration::from_millis(10)).await;
    };
    let bounds = guest.bounds();
    let (ended, ()) = tokio::join!(in_turns(sleeping, &bounds), watched);
    assert!(ended.is_ok());
    assert_eq!((guest.pool.held(), guest.signals.ticks()), (0, 2));
}

#[tokio::test(start_paused = true)]
async fn operation_that_yields_lets_other_work_run() {
    let guest = Fixture::new(2);
    let others = AtomicU64::new(0);
    let looking = async {
        for _ in 0..100 {
            let mut has_yielded = false;
            poll_fn(|cx| {
                if std::mem::replace(&mut has_yielded, true) {
                    return Poll::Ready(());
                }
                cx.waker().wake_by_ref();
                Poll::Pending
            })
            .await;
        }
        Ok(others.load(Ordering::Relaxed))
    };
    let other = async {
        loop {
            others.fetch_add(1, Ordering::Relaxed);
            yield_now().await;
        }
    };
    let bounds = guest.bounds();
    let seen = tokio::select! {
        biased;
        ended = in_turns(looking, &bounds) => ended.unwrap(),
        () = other => unreachable!("it has no end"),
    };
    assert!(seen > 50, "other work ran {seen} times in 100 steps");
}

#[tokio::test(start_paused = true)]
async fn unused_turn_is_passed_on() {
    let guest = Fixture::new(1);
    let taken = guest.turns.try_take(1).unwrap();
    let idle = guest.turns.take(1);
    let next = Fixture { first_tick: FirstTick::InTurn, ..guest.another() };
    let mut idle = pin!(idle);
    assert!(poll_fn(|cx| Poll::Ready(idle.as_mut().poll(cx).is_pending())).await);
    drop(taken);
    let passes = async {
        settle().await;
        assert_eq!(next.signals.ticks(), 0, "the one before it has the turn");
        guest.pool.abandon_older_than(Duration::ZERO);
        settle().await;
        assert!(next.signals.ticks() > 0);
        next.cancel.cancel();
    };
    let (ended, ()) = tokio::join!(next.run(), passes);
    assert!(ended.is_err());
    drop(idle.await);
    assert_eq!(guest.pool.held(), 0, "what was abandoned is given back once");
}
