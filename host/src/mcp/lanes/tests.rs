//! Where calls run, and for how long the thread stays awake after them.

use super::*;
use std::cell::Cell;
use std::sync::atomic::Ordering;
use std::sync::{OnceLock, mpsc};
use std::thread::{self, ThreadId};
use tokio::runtime::{Builder, Runtime};

/// More than the client and the one thread keep busy.
const MANY: usize = 8;

fn pool() -> Runtime {
    Builder::new_multi_thread().worker_threads(1).build().expect("a runtime can be started")
}

fn quick() -> Arc<Pace> {
    let pace = Arc::new(Pace::default());
    (0..2).for_each(|_| pace.took(Duration::ZERO));
    pace
}

fn run(lanes: &Lanes, pace: &Arc<Pace>, work: BoxFuture<'static, ThreadId>) -> ThreadId {
    let here = Builder::new_current_thread().build().expect("a runtime can be started");
    here.block_on(lanes.run((pace, |_| true), work))
}

fn spin(time: Duration) {
    let begun = Instant::now();
    while begun.elapsed() < time {
        std::hint::spin_loop();
    }
}

fn at_once() -> BoxFuture<'static, ThreadId> {
    Box::pin(async { thread::current().id() })
}

#[test]
fn a_quick_call_that_comes_alone_runs_in_place_and_all_others_on_the_pool() {
    let (pool, here) = (pool(), thread::current().id());
    let lanes = Lanes::on_cores(pool.handle().clone(), MANY);
    assert_ne!(run(&lanes, &Arc::default(), at_once()), here, "nothing is known of it");
    let _only = lanes.enter();
    assert_eq!(run(&lanes, &quick(), at_once()), here);
    let _another = lanes.enter();
    assert_ne!(run(&lanes, &quick(), at_once()), here, "another one waits");
    assert_eq!(run(&Lanes::default(), &Arc::default(), at_once()), here, "there is no pool");
}

#[test]
fn behind_another_one_a_request_is_answered_on_the_pool_as_a_whole() {
    let (pool, here) = (pool(), thread::current().id());
    let lanes = Arc::new(Lanes::on_cores(pool.handle().clone(), MANY));
    let (answers, answered) = mpsc::channel();
    let request = || {
        let (lanes, answers) = (lanes.clone(), answers.clone());
        async move {
            let ran = lanes.run((&quick(), |_| true), at_once()).await;
            let _ = answers.send((ran, thread::current().id()));
        }
    };
    let reads = Builder::new_current_thread().build().expect("a runtime can be started");
    let next = || answered.recv_timeout(Duration::from_secs(10)).expect("it is answered");
    reads.block_on(async {
        lanes.begin(|| None, request());
        tokio::task::yield_now().await;
    });
    assert_eq!(next(), (here, here), "it comes alone");
    let _another = lanes.enter();
    reads.block_on(async { lanes.begin(|| None, request()) });
    let (ran, wrote) = next();
    assert!(ran == wrote && ran != here, "the thread that runs the call writes its answer");
}

#[test]
fn where_the_pool_has_no_core_of_its_own_what_is_brief_stays_whoever_waits() {
    let (pool, here) = (pool(), thread::current().id());
    let lanes = Arc::new(Lanes::on_cores(pool.handle().clone(), BUSY_CORES));
    let _waiting = [lanes.enter(), lanes.enter()];
    assert_eq!(run(&lanes, &quick(), at_once()), here);
    let quick_not_brief = || {
        let pace = Pace::default();
        (0..2).for_each(|_| pace.took(Duration::from_micros(200)));
        Arc::new(pace)
    };
    assert_ne!(run(&lanes, &quick_not_brief(), at_once()), here, "it is worth another thread");
    let (answers, answered) = mpsc::channel();
    let reads = Builder::new_current_thread().build().expect("a runtime can be started");
    let begins = |pace: Option<Arc<Pace>>| {
        let answers = answers.clone();
        reads.block_on(async {
            lanes.begin(|| pace, async move {
                let _ = answers.send(thread::current().id());
            });
            tokio::task::yield_now().await;
        });
        answered.recv_timeout(Duration::from_secs(10)).expect("it is answered")
    };
    assert_eq!(begins(Some(quick())), here);
    assert_ne!(begins(Some(quick_not_brief())), here);
    assert_ne!(begins(None), here, "nothing is known of it");
}

/// For how long the thread did not fall asleep from the beginning of a call on.
fn awake_after_a_call(cores: usize) -> Duration {
    let (pool, parked) = (pool(), Arc::new(OnceLock::new()));
    let falls_asleep = parked.clone();
    let mut runtime = Builder::new_current_thread();
    runtime.enable_time().on_thread_park(move || {
        // Only the first time after the call counts.
        if let Some(slept) = CALLED.get().map(|called| called.elapsed()) {
            let _ = falls_asleep.set(slept);
        }
    });
    let runtime = runtime.build().expect("a runtime can be started");
    runtime.block_on(async {
        let lanes = Lanes::on_cores(pool.handle().clone(), cores);
        CALLED.set(Some(Instant::now()));
        lanes.run((&quick(), |_| true), at_once()).await;
        tokio::time::sleep(Duration::from_millis(20)).await;
    });
    CALLED.set(None);
    *parked.get().expect("it sleeps in the end")
}

thread_local! {
    static CALLED: Cell<Option<Instant>> = const { Cell::new(None) };
}

#[test]
fn the_thread_stays_awake_for_a_moment_after_an_answer_where_the_client_has_a_core_as_well() {
    assert!(awake_after_a_call(BUSY_CORES) >= linger::MOMENT);
    // Of a few, for the machine may be slow itself.
    assert!(
        (0..100).any(|_| awake_after_a_call(1) < linger::MOMENT),
        "the client needs the one core that there is"
    );
}

#[test]
fn nobody_waits_behind_what_computes() {
    let (pool, here) = (pool(), thread::current().id());
    let lanes = Lanes::on_cores(pool.handle().clone(), MANY);
    let _waiting = [lanes.enter(), lanes.enter()];
    assert_ne!(run(&lanes, &quick(), at_once()), here, "they wait, too");
    let reads = Builder::new_current_thread().build().expect("a runtime can be started");
    reads.block_on(WAITING.scope(lanes.enter(), async {
        // Of this one nothing is known.
        let _ = lanes.run((&Arc::default(), |_| true), at_once()).await;
        assert_eq!(lanes.run((&quick(), |_| true), at_once()).await, here, "the pool may be busy");
    }));
    assert_ne!(run(&lanes, &quick(), at_once()), here, "that has ended");
    assert_eq!(lanes.counts.waiting.load(Ordering::Relaxed), 2);
}

#[test]
fn what_waits_stays_and_what_computes_goes_on_on_the_pool() {
    let (pool, here) = (pool(), thread::current().id());
    let lanes = Lanes::on_cores(pool.handle().clone(), MANY);
    let waits = |computes: Duration| -> BoxFuture<'static, ThreadId> {
        Box::pin(async move {
            spin(computes);
            tokio::task::yield_now().await;
            thread::current().id()
        })
    };
    // Of a few runs, for the machine may be slow itself.
    assert!((0..100).any(|_| run(&lanes, &quick(), waits(Duration::ZERO)) == here));
    assert_ne!(run(&lanes, &quick(), waits(Duration::from_millis(2))), here);
}

#[test]
fn only_what_counts_makes_a_tool_a_quick_one() {
    let pool = pool();
    let lanes = Lanes::on_cores(pool.handle().clone(), MANY);
    let here = Builder::new_current_thread().build().expect("a runtime can be started");
    let ran = |counts: fn(&ThreadId) -> bool| {
        let pace = Arc::default();
        for _ in 0..2 {
            here.block_on(lanes.run((&pace, counts), at_once()));
        }
        pace.is_quick()
    };
    assert!(ran(|_| true));
    assert!(!ran(|_| false), "it was cancelled");
    let pace = quick();
    for _ in 0..2 {
        let slow: BoxFuture<'static, ()> = Box::pin(async { spin(Duration::from_millis(2)) });
        here.block_on(lanes.run((&pace, |()| false), slow));
    }
    assert!(!pace.is_quick(), "what is slow is so however it ends");
}

#[test]
fn what_computes_makes_its_tool_a_slow_one_before_it_ends() {
    let pool = pool();
    let lanes = Lanes::on_cores(pool.handle().clone(), MANY);
    let runtime =
        Builder::new_current_thread().enable_time().build().expect("a runtime can be started");
    let pace = quick();
    for _ in 0..2 {
        let endless: BoxFuture<'static, ()> = Box::pin(async {
            spin(Duration::from_millis(2));
            std::future::pending::<()>().await;
        });
        let given_up = runtime.block_on(async {
            tokio::time::timeout(Duration::from_millis(10), lanes.run((&pace, |()| true), endless))
                .await
        });
        assert!(given_up.is_err());
    }
    assert!(!pace.is_quick());
}

#[test]
fn what_runs_on_the_pool_ends_where_nobody_waits_for_it() {
    let pool = pool();
    let lanes = Lanes::on_cores(pool.handle().clone(), MANY);
    let (dropped, is_dropped) = mpsc::channel::<()>();
    let never = Box::pin(async move {
        let _dropped = dropped;
        std::future::pending::<()>().await;
    });
    let runtime =
        Builder::new_current_thread().enable_time().build().expect("a runtime can be started");
    let pace = Arc::default();
    let waited = runtime.block_on(async {
        tokio::time::timeout(Duration::from_millis(1), lanes.run((&pace, |_| true), never)).await
    });
    assert!(waited.is_err());
    assert_eq!(
        is_dropped.recv_timeout(Duration::from_secs(10)),
        Err(mpsc::RecvTimeoutError::Disconnected)
    );
}

#[test]
fn a_panic_on_the_pool_is_one_of_the_call() {
    let pool = pool();
    let lanes = Lanes::on_cores(pool.handle().clone(), MANY);
    let panics: BoxFuture<'static, ThreadId> = Box::pin(async { panic!("on purpose") });
    let caught = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
        run(&lanes, &Arc::default(), panics)
    }));
    assert!(caught.is_err());
}
