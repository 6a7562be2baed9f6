//! Tests of the oracle: each check fails if its invariant is violated, and all pass otherwise.

use std::fs::{self, File};
use std::sync::Arc;
use std::time::Instant;

use palisade::events::Subject;
use palisade::{
    CallId, ErrorKind, ExecutionKind, ToolOutput,
    events::{Envelope, Event, Subscriber as _},
    sandbox::limits::Limits,
};

use serde_json::json;

use super::rounds::{Timed, overdue};
use super::*;
use crate::native::Native;
use crate::skip;

fn oracle() -> Oracle {
    Oracle::new(|_, builder| builder)
}

/// Returns an oracle that repeats work once: enough for a leak that is always found. Each round
/// waits for the resources to return.
fn brief() -> Oracle {
    Oracle { rounds: 2, ..oracle() }
}

/// Returns the invariants that `act` violates.
fn broken(within: Duration, act: impl Fn(&Stage)) -> Vec<String> {
    broken_under(&oracle(), within, act)
}

fn broken_under(oracle: &Oracle, within: Duration, act: impl Fn(&Stage)) -> Vec<String> {
    let act = |stage: &Stage| {
        act(stage);
        async {}
    };
    oracle.try_watch(within, &act).1
}

#[track_caller]
fn breaks(point: &str, act: impl Fn(&Stage)) {
    let broken = broken_under(&brief(), PATIENCE, act);
    assert!(broken.iter().any(|text| text.contains(point)), "{point}: {broken:?}");
}

/// Runs `act` on another thread, which catches its panic.
fn elsewhere(act: impl FnOnce() + Send + 'static) {
    let _ = std::thread::spawn(act).join();
}

#[test]
fn correct_call_passes() {
    assert_eq!(broken(PATIENCE, |_| {}), Vec::<String>::new());
    let call = Call::new("echo", json!({"text": "hello"}));
    assert_eq!(oracle().call(&call, PATIENCE).output().as_deref(), Some("hello"));
}

#[test]
fn open_descriptors_are_found() {
    breaks("descriptors", |stage| {
        (0..4).for_each(|_| std::mem::forget(File::open(stage.world.root()).expect("it is there")));
    });
}

#[test]
fn remaining_threads_are_found() {
    breaks("threads", |_| {
        (0..4).for_each(|_| drop(std::thread::spawn(|| std::thread::park_timeout(PATIENCE))));
    });
}

#[test]
fn remaining_memory_is_found() {
    // glibc serves an allocation of up to 32 MiB from memory that an earlier test has freed, and
    // then the process does not grow.
    let leak = |_: &Stage| std::mem::forget(vec![1_u8; 64 << 20]);
    let broken = broken_under(&brief(), PATIENCE, leak);
    assert!(broken.iter().any(|text| text.contains("bytes of memory")), "{broken:?}");
}

#[test]
fn memory_retained_once_is_not_a_leak() {
    // Dropped last: if the memory were freed after the turn of this oracle, that would hide the
    // leak that another test makes meanwhile.
    let oracle = oracle();
    let kept = std::sync::OnceLock::new();
    let keep = |_: &Stage| {
        let _ = kept.get_or_init(|| vec![1_u8; 16 << 20]);
    };
    assert_eq!(broken_under(&oracle, PATIENCE, keep), Vec::<String>::new());
}

#[test]
fn repeated_work_meets_what_it_met_at_first() {
    let oracle = oracle();
    let made = oracle.stage.world.root().join("made");
    let kept = std::sync::OnceLock::new();
    let work = || {
        // Retained once, so that the work is repeated.
        let _ = kept.get_or_init(|| vec![1_u8; 16 << 20]);
        oracle.timed(|| (fs::create_dir(&made).expect("it is absent"), Pings::default()))
    };
    let repetitions = std::cell::Cell::new(0);
    let prepare = || {
        fs::remove_dir(&made).expect("it is there");
        repetitions.set(repetitions.get() + 1);
    };
    let (_, broken) = oracle.judged(PATIENCE, &prepare, &work);
    assert_eq!(broken, Vec::<String>::new());
    assert!(repetitions.get() > 0);
}

#[test]
fn canary_read_is_found() {
    if !canary::can_be_seen(&World::new()) {
        return skip("this file system does not record access times");
    }
    breaks("secret.txt was read", |stage| {
        drop(fs::read(stage.world.outer().join("outside/folder/secret.txt")).expect("it is there"));
    });
    breaks("outside was read", |stage| {
        let _ = fs::read_dir(stage.world.outer().join("outside")).expect("it is there").count();
    });
}

#[test]
fn canary_change_is_found() {
    breaks("has changed", |stage| {
        fs::write(stage.world.outer().join("outside/new.txt"), "").expect("it can be written");
    });
    breaks("has changed", |stage| {
        let _ = fs::remove_file(stage.world.outer().join("secret.txt"));
    });
}

#[test]
fn panic_of_any_thread_is_found() {
    breaks("1 panics", |_| elsewhere(|| panic!("this panic is part of a test")));
}

#[test]
fn expected_panic_must_happen() {
    let oracle = oracle().panicking(1);
    let nothing = oracle.try_watch(PATIENCE, &|_: &Stage| async {}).1;
    assert!(nothing.iter().any(|text| text.contains("0 panics")), "{nothing:?}");
}

#[test]
fn panic_in_the_log_is_found() {
    breaks("the log tells", |_| tracing::error!("the call panicked: no message"));
}

#[test]
fn slow_call_is_found() {
    // The measurements are given: those of a real call would depend on the machine.
    let oracle = oracle();
    let broken = |took, late| {
        oracle.judged(SLACK, &|| {}, &|| Timed { done: (), took, late, pings: Pings::default() }).1
    };
    let millisecond = Duration::from_millis(1);
    assert_eq!(broken(SLACK * 2, Duration::ZERO), Vec::<String>::new());
    assert_eq!(
        broken(SLACK * 2 + millisecond, Duration::ZERO),
        ["it took 201ms, and 200ms were allowed"]
    );
    // The bound grows with the scheduling delay of the machine.
    assert_eq!(broken(SLACK * 6, SLACK), Vec::<String>::new());
    assert_eq!(broken(SLACK * 6 + millisecond, SLACK).len(), 1);
}

#[test]
fn call_time_is_measured_from_start_to_end() {
    let held = || {
        let start = Instant::now();
        while start.elapsed() < SLACK {
            std::hint::spin_loop();
        }
        ((), Pings::default())
    };
    let start = Instant::now();
    let timed = oracle().timed(held);
    assert!(timed.took >= SLACK && timed.took <= start.elapsed(), "{:?}", timed.took);
}

fn emit(stage: &Stage, event: Event) {
    let time = std::time::SystemTime::UNIX_EPOCH;
    stage.recorder.receive(&Envelope { seq: 0, time, event });
}

fn subject() -> Subject {
    Subject {
        call_id: CallId::new("c"),
        tool: Arc::from("t"),
        parent: None,
        session_id: None,
        turn_id: None,
        side_effects: None,
    }
}

#[test]
fn missing_or_repeated_terminal_event_is_found() {
    let invalid = || Event::InputInvalid(subject(), String::new());
    breaks("0 ends", |stage| emit(stage, Event::Called(subject())));
    // The recorder hears nothing of a call of another host.
    let result = ToolResult::success(CallId::new("silent"), "t", "done");
    let broken = oracle().try_watch(PATIENCE, &|_: &Stage| std::future::ready(result.clone())).1;
    assert_eq!(broken, ["`silent` has 0 ends: []"]);
    breaks("2 ends", |stage| {
        emit(stage, invalid());
        emit(stage, invalid());
    });
    breaks("after its end", |stage| {
        emit(stage, invalid());
        emit(stage, Event::Called(subject()));
    });
}

#[test]
fn invalid_result_is_found() {
    let silent = ErrorKind::execution(ExecutionKind::Failed, " ");
    let wrong = ToolResult::failure(CallId::new("c"), "t", silent);
    let oracle = oracle();
    let broken = oracle.try_watch(PATIENCE, &|_: &Stage| std::future::ready(wrong.clone())).1;
    assert!(broken.iter().any(|text| text.contains("not valid")), "{broken:?}");
}

#[test]
fn missing_benign_plugin_is_found() {
    breaks("benign", |stage| {
        let _ = stage.host.registry().unregister("echo");
    });
}

#[test]
fn memory_peak_during_a_call_is_found() {
    let small = || {
        Oracle::new(|_, builder| builder.limits(Limits { memory: 16 << 20, ..Limits::default() }))
    };
    let hold = |mib: usize| {
        move |_: &Stage| {
            drop(std::hint::black_box(vec![1_u8; mib << 20]));
            std::future::ready(())
        }
    };
    let broken = small().try_watch(PATIENCE, &hold(80)).1;
    assert!(broken.iter().any(|text| text.contains("the process grew by")), "{broken:?}");
    assert_eq!(small().try_watch(PATIENCE, &hold(8)).1, Vec::<String>::new());
    assert_eq!(small().at_once(4).try_watch(PATIENCE, &hold(80)).1, Vec::<String>::new());
}

/// Returns the violated invariants for a call of a native tool that busy-waits for `time`.
fn holding(time: Duration) -> Vec<String> {
    let native = Native::new("hold", move |_, _| {
        let start = Instant::now();
        while start.elapsed() < time {
            std::hint::spin_loop();
        }
        Ok(ToolOutput::text("held"))
    });
    let oracle = Oracle::new(|_, builder| builder.tool(native.factory()));
    let call = Call::new("hold", json!({}));
    oracle.try_call(&call, PATIENCE, &|| {}).1
}

#[test]
fn call_blocking_its_thread_is_found() {
    let broken = holding(ping::SILENCE * 3);
    assert!(broken.iter().any(|text| text.contains("got no answer")), "{broken:?}");
    assert_eq!(holding(Duration::ZERO), Vec::<String>::new());
}

#[test]
fn late_end_of_a_call_is_found() {
    let error =
        |class: &str| json!({"class": class, "detail": {"limit": "timeout", "value_ms": 50.0}});
    assert_eq!(overdue(&error("timeout"), SLACK, Duration::ZERO), None);
    assert_eq!(overdue(&error("cancelled"), SLACK * 2, Duration::ZERO), None);
    let late = overdue(&error("timeout"), SLACK * 2, Duration::ZERO);
    assert!(late.is_some_and(|text| text.contains("ended after")));
}

#[test]
fn turn_lasts_until_the_program_has_run() {
    let turns = Arc::new(Mutex::new(Vec::new()));
    let seen = turns.clone();
    // The world is arranged once for the library and once for the program.
    let look = move |_: &World| seen.lock().expect("whole").push(TURN.try_lock().is_err());
    let case = Case::new(HOSTILE_ECHO, "echo").input(json!({"text": "hello"})).arrange(look);
    assert_eq!(around_both(&case).output(), "hello");
    assert_eq!(*turns.lock().expect("whole"), [true, true]);
}

#[test]
fn correct_server_passes() {
    let case = || Case::new(HOSTILE_ECHO, "echo").input(json!({"text": "hello"}));
    for calls in [1, 8] {
        let answers = served(&case(), calls).answers;
        assert_eq!(answers.len(), calls);
        assert!(
            answers.iter().all(|answer| answer["result"]["content"][0]["text"] == "hello"),
            "{answers:?}"
        );
    }
}
