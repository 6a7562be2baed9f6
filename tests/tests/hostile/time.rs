//! Guests that wait, invalid timeouts, and clocks that jump.

use palisade_tests::sample::{Group, leaves_out};
use std::time::{Duration, Instant};

use palisade::{Call, ErrorKind, SideEffects, ToolContext};
use palisade_tests::guest::HOSTILE_ABUSE;
use palisade_tests::native::Native;
use palisade_tests::oracle::{Oracle, around, around_both};
use palisade_tests::program::finish;
use palisade_tests::soak::Deadline;
use palisade_tests::{Case, Stage};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::json;

use super::{ENOUGH, SHORT, abuse, case, raw};

#[test]
fn endless_sleep_is_stopped_in_time() {
    if leaves_out(&[Group::G]) {
        return;
    }
    for how in ["sleep", "sleep-until-the-end-of-time"] {
        for amount in [u64::MAX, u64::MAX / 2, 1 << 62] {
            let _ = around(&abuse(how, amount).timeout(SHORT)).error("timeout");
        }
    }
    let _ = around_both(&abuse("sleep", u64::MAX).timeout(SHORT)).error("timeout");
    assert_eq!(around_both(&abuse("sleep", 1_000_000)).output(), "slept");
}

#[test]
fn endless_polling_starves_no_call_and_is_stopped() {
    let oracle = Oracle::for_case(&abuse("poll-for-ever", 0));
    let call = Call::new("abuse", json!({"how": "poll-for-ever"})).with_timeout(SHORT);
    let results = oracle.watch(SHORT, |stage: &Stage| {
        let (host, call) = (stage.host.clone(), call.clone());
        async move {
            // One thread: a guest that polls in a loop must yield to the other call.
            let other = host.call("echo", json!({"text": "hello"}), json!({}));
            let both = async { tokio::join!(host.dispatch(host.session(), call), other) };
            let (stopped, fine) = both.await;
            vec![stopped, fine]
        }
    });
    assert_eq!(results[0].error().unwrap().class().as_str(), "timeout");
    assert_eq!(results[1].output().as_deref(), Some("hello"));
}

#[test]
fn invalid_times_are_refused_or_clamped() {
    let oracle = Oracle::for_case(&abuse("sleep", 0));
    let sleep = |amount: u64| Call::new("abuse", json!({"how": "sleep", "amount": amount}));
    for time in [Duration::ZERO, Duration::from_nanos(1), Duration::from_millis(1)] {
        let result = oracle.call(&sleep(1 << 40).with_timeout(time), SHORT);
        assert_eq!(result.error().unwrap().class().as_str(), "timeout", "{time:?}");
    }
    for time in [Duration::MAX, Duration::from_millis(u64::MAX), Duration::from_secs(u64::MAX)] {
        assert_eq!(
            oracle.call(&sleep(1).with_timeout(time), ENOUGH).output().as_deref(),
            Some("slept"),
            "{time:?}"
        );
    }
}

#[test]
fn end_at_the_deadline_is_one_end() {
    if leaves_out(&[Group::C]) {
        return;
    }
    let oracle = Oracle::for_case(&abuse("sleep", 0).allow(SideEffects::Write));
    let deadline = Deadline::over(oracle.stage.clone());
    // The soak run makes ten thousand.
    let ended = deadline.run(400);
    assert_eq!(ended.broken, Vec::<String>::new());
    assert!(ended.written > 0 && ended.late > 0, "both ends are met: {ended:?}");
    assert!(oracle.call(&Call::new("abuse", json!({"how": "sleep"})), ENOUGH).is_success());
}

/// Waits until a condition holds.
fn until(what: &str, holds: impl Fn() -> bool) {
    let deadline = Instant::now() + ENOUGH;
    while !holds() {
        assert!(Instant::now() < deadline, "not reached in time: {what}");
        std::thread::park_timeout(Duration::from_millis(1));
    }
}

/// Waits until a process is in this state.
fn until_state(process: Pid, state: char) {
    let path = format!("/proc/{}/stat", process.as_raw_nonzero());
    let is = || {
        std::fs::read_to_string(&path)
            .is_ok_and(|stat| stat.rsplit(") ").next().is_some_and(|rest| rest.starts_with(state)))
    };
    until(&format!("the process is in state {state}"), is);
}

#[test]
fn suspended_process_reports_its_timeout_on_resumption() {
    if leaves_out(&[Group::A]) {
        return;
    }
    let time = Duration::from_secs(2);
    let case = Case::new(HOSTILE_ABUSE, "abuse")
        .input(json!({"how": "emit-and-sleep", "amount": 1024}))
        .timeout(time);
    let world = case.world();
    let events = world.home().join("events.jsonl");
    let program = case.program(&world).args(["--events".as_ref(), events.as_os_str()]);
    let child = program.stdout(std::process::Stdio::piped()).start();
    // The clock of the call runs as soon as the guest does.
    let has_begun =
        || std::fs::read_to_string(&events).is_ok_and(|text| text.contains("output_delta"));
    until("the guest begins", has_begun);
    let process = Pid::from_raw(i32::try_from(child.id()).unwrap()).unwrap();
    kill_process(process, Signal::STOP).unwrap();
    until_state(process, 'T');
    let stopped = Instant::now();
    // The deadline passes while the process is stopped.
    until("the deadline has passed", || stopped.elapsed() > time * 2);
    let still = stopped.elapsed();
    kill_process(process, Signal::CONT).unwrap();
    let result = finish(child).exits_with(7).json();
    assert_eq!(result["error"]["class"], "timeout");
    let took = Duration::from_secs_f64(result["duration_ms"].as_f64().unwrap() / 1e3);
    assert!(took >= still, "{took:?}, of which the process was suspended for {still:?}");
}

#[test]
fn trap_after_the_deadline_is_a_timeout() {
    // The engine cannot interrupt a bulk operation, and a trap follows at once: the deadline takes
    // precedence.
    let fill = "(memory.fill (i32.const 65536) (i32.const 7) (i32.const 24000000))";
    let plugin = raw().execute(&format!("(drop (memory.grow (i32.const 400))) {fill} unreachable"));
    let _ = around(&case(&plugin).timeout(Duration::from_millis(1))).error("timeout");
    assert_eq!(around(&case(&plugin)).kind(), "trap");
}

/// Returns a host with a native tool that blocks its thread while `patience` holds, then fails.
fn failing(patience: fn(&ToolContext) -> bool) -> Oracle {
    let native = Native::new("fails", move |_, context| {
        while patience(context) {}
        Err(ErrorKind::from("it broke".to_owned()))
    });
    Oracle::new(|_, builder| builder.tool(native.factory()))
}

#[test]
fn late_failure_of_a_native_tool_is_a_timeout() {
    let call = Call::new("fails", json!({})).with_timeout(Duration::from_millis(20));
    let overdue = failing(|context| !context.remaining().is_zero()).call(&call, SHORT);
    assert_eq!(overdue.error().unwrap().class().as_str(), "timeout", "{overdue}");
    let in_time = failing(|_| false).call(&call.with_timeout(ENOUGH), SHORT);
    assert_eq!(in_time.error().unwrap().class().as_str(), "execution_error", "{in_time}");
}

#[test]
fn wait_ends_with_the_remaining_time() {
    let oracle = Oracle::for_case(&abuse("sleep", 0));
    for amount in [21_000_000, u64::MAX] {
        let call = Call::new("abuse", json!({"how": "sleep", "amount": amount}));
        let result =
            oracle.call(&call.with_timeout(Duration::from_millis(20)), Duration::from_millis(40));
        assert_eq!(result.error().unwrap().class().as_str(), "timeout", "{amount}: {result}");
    }
}
