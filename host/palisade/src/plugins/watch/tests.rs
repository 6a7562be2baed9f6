//! Tests of the polling loop, with the waits driven where time does not matter.
#![allow(clippy::unwrap_used, reason = "a test may stop at the first surprise")]

use super::*;
use crate::plugins::sources::Sources;
use std::cell::Cell;
use std::fs;
use tempfile::TempDir;

const LONG: Duration = Duration::from_secs(30);

fn sources(directory: &TempDir) -> Sources {
    Sources { directories: vec![directory.path().to_owned()], ..Sources::default() }
}

/// Watches a new directory on a thread, which sends for every scan.
fn watched() -> (TempDir, StopHandle, Receiver<()>) {
    let directory = tempfile::tempdir().unwrap();
    let ((stop_handle, stop_signal), (sender, scans)) = (stop_channel(), channel());
    let sources = sources(&directory);
    std::thread::spawn(move || {
        let scan = |_| {
            let _ = sender.send(());
        };
        let take = || Snapshot::take(&sources, &[]);
        let _ = watch(take, |time| stop_signal.wait(time), scan, || false);
    });
    (directory, stop_handle, scans)
}

#[test]
fn scan_runs_at_start_and_after_changes() {
    let (directory, _stop_handle, scans) = watched();
    scans.recv_timeout(LONG).unwrap();
    fs::write(directory.path().join("a.wasm"), "a").unwrap();
    scans.recv_timeout(LONG).unwrap();
}

#[test]
fn scan_that_is_due_runs_without_a_change() {
    let directory = tempfile::tempdir().unwrap();
    let (due, scans) = (Cell::new(3), Cell::new(0));
    let polls = Cell::new(0);
    let wait = |_| {
        polls.set(polls.get() + 1);
        if polls.get() > 10 { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    };
    let scan = |_| scans.set(scans.get() + 1);
    let is_due = || due.replace(due.get() - 1) > 0;
    let _ = watch(|| Snapshot::take(&sources(&directory), &[]), wait, scan, is_due);
    assert_eq!(scans.get(), 1 + 3, "one at the start, and those that were due");
}

#[test]
fn dropping_the_handle_ends_the_thread() {
    let (_directory, stop_handle, scans) = watched();
    scans.recv_timeout(LONG).unwrap();
    drop(stop_handle);
    assert_eq!(scans.recv_timeout(LONG), Err(RecvTimeoutError::Disconnected));
}

#[test]
fn dropping_the_handle_interrupts_a_wait() {
    let (stop_handle, stop_signal) = stop_channel();
    let waiting = std::thread::spawn(move || stop_signal.wait(Duration::from_secs(3600)));
    drop(stop_handle);
    assert_eq!(waiting.join().unwrap(), ControlFlow::Break(()));
}

/// Returns the number of quiet periods before a scan, if `changes` snapshots differ from their
/// predecessor.
fn quiet_periods(changes: u32) -> u32 {
    let (periods, taken) = (Cell::new(0), Cell::new(0));
    let wait = |time: Duration| {
        assert_eq!(time, QUIET);
        periods.set(periods.get() + 1);
        ControlFlow::Continue(())
    };
    let take = || {
        taken.set(taken.get() + 1);
        taken.get().min(changes)
    };
    assert_eq!(after_quiet(0, take, wait), ControlFlow::Continue(taken.get().min(changes)));
    periods.get()
}

#[test]
fn frequent_changes_are_one_scan_per_second() {
    assert_eq!([0, 7, u32::MAX].map(quiet_periods), [1, 8, 10]);
    assert_eq!(QUIET * MAX_QUIET_PERIODS, Duration::from_secs(1));
    let closed = after_quiet(0, || 0, |_| ControlFlow::Break(()));
    assert_eq!(closed, ControlFlow::Break(()));
}

/// Creates a plugin file that is no longer young.
#[cfg(target_os = "linux")]
fn old_file(path: &std::path::Path) {
    fs::File::create(path).unwrap().set_modified(std::time::UNIX_EPOCH).unwrap();
}

#[cfg(target_os = "linux")]
#[test]
fn idle_poll_reads_only_metadata() {
    use rustix::fs::inotify::{self, ReadFlags};
    let directory = tempfile::tempdir().unwrap();
    let path = |number: u32| directory.path().join(format!("{number}.wasm"));
    (0..20).for_each(|number| old_file(&path(number)));
    let opens =
        inotify::init(inotify::CreateFlags::NONBLOCK | inotify::CreateFlags::CLOEXEC).unwrap();
    inotify::add_watch(&opens, directory.path(), inotify::WatchFlags::OPEN).unwrap();
    // The directory itself is opened by every poll.
    let opened_files = || {
        let mut space = [std::mem::MaybeUninit::uninit(); 4096];
        let mut reader = inotify::Reader::new(&opens, &mut space);
        let events = std::iter::from_fn(|| reader.next().ok().map(|event| event.events()));
        events.filter(|event| !event.contains(ReadFlags::ISDIR)).count()
    };
    let (polls, scans) = (Cell::new(0), Cell::new(0));
    let wait = |time: Duration| {
        assert_eq!(time, POLL, "an idle watch waits for no quiet period");
        polls.set(polls.get() + 1);
        if polls.get() > 100 { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    };
    assert_eq!(
        watch(
            || Snapshot::take(&sources(&directory), &[]),
            wait,
            |_| scans.set(scans.get() + 1),
            || false
        ),
        ControlFlow::Break(())
    );
    assert_eq!(scans.get(), 1, "only the scan at the start");
    assert_eq!(opened_files(), 0);
    // The counter does report opens.
    fs::read(path(7)).unwrap();
    assert_eq!(opened_files(), 1);
}
