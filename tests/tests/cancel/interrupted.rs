//! Ctrl-C: the program cancels its call, prints the result, and exits with 130.

use std::io::{BufRead as _, BufReader, Read as _};
use std::process::Stdio;

use palisade::SideEffects;
use palisade_tests::guest::{CANCEL_COMPUTE, CANCEL_POLL, CANCEL_SLEEP};
use palisade_tests::program::{Ran, finish};
use palisade_tests::{Case, Guest, World};
use rustix::process::{Pid, Signal, kill_process};

/// Runs the program until the guest reports that it has started, then interrupts it.
fn interrupted(guest: Guest, tool: &str) -> (World, Ran) {
    let case = Case::new(guest, tool).allow(SideEffects::Write);
    let world = case.world();
    let mut child = case.program(&world).args(["--verbose"]).stdout(Stdio::piped()).start();
    let mut stderr = BufReader::new(child.stderr.take().unwrap());
    let mut heard = String::new();
    while !heard.contains("started") {
        assert_ne!(stderr.read_line(&mut heard).unwrap(), 0, "it ended before it started: {heard}");
    }
    let process = Pid::from_raw(i32::try_from(child.id()).unwrap()).unwrap();
    kill_process(process, Signal::INT).unwrap();
    // Drain stderr: with a full pipe the program would block before it exits.
    std::thread::spawn(move || stderr.read_to_string(&mut String::new()));
    (world, finish(child))
}

#[track_caller]
fn was_interrupted(ran: &Ran) {
    assert_eq!(ran.code, 130, "{ran:?}");
    let result = ran.json();
    palisade_tests::uniform::check_shape(&result);
    assert_eq!(result["error"]["class"], "cancelled");
}

#[test]
fn interrupt_ends_a_computing_tool() {
    was_interrupted(&interrupted(CANCEL_COMPUTE, "compute").1);
}

#[test]
fn interrupt_ends_a_sleeping_tool() {
    was_interrupted(&interrupted(CANCEL_SLEEP, "sleep").1);
}

#[test]
fn interrupt_grants_a_polling_tool_its_grace() {
    let (world, ran) = interrupted(CANCEL_POLL, "tidy");
    was_interrupted(&ran);
    assert_eq!(world.read("tidied.txt").as_deref(), Some("yes"));
}
