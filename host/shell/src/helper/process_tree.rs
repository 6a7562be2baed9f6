//! The processes of a command, as `/proc` and the control group list them.

use super::cgroup::{Cgroup, TASKS_PER_PROCESS};
use super::memory;
use crate::ShellLimits;
use crate::process::ExceededLimit;
use rustix::process::{
    Pid, PidfdFlags, Signal, WaitId, WaitIdOptions, getpid, pidfd_open, pidfd_send_signal, waitid,
};
use std::collections::HashMap;
use std::fs;
use std::time::{Duration, Instant};

/// The pause between two attempts to kill a tree of processes.
const KILL_PAUSE: Duration = Duration::from_millis(5);

/// Returns the threads of this process.
pub(super) fn threads() -> Vec<i32> {
    tasks(getpid().as_raw_pid())
}

/// Counts the processes of a command, and returns the limit that they exceed. They are the
/// descendants of this process, or those of the control group if they are more. The tree has the
/// zombies, which keep their process ids and are in no list of a group; the group has the processes
/// that `/proc` hides.
pub(super) fn exceeded(limits: ShellLimits, group: Option<&Cgroup>) -> Option<ExceededLimit> {
    let tree = Children::detect();
    let mut all = descendants(tree.of_process(getpid().as_raw_pid()), &tree, limits);
    if let Some(listed) = group.and_then(Cgroup::processes)
        && listed.len() > all.len()
    {
        all = listed;
    }
    let most = limits.processes.saturating_mul(TASKS_PER_PROCESS);
    if all.len() as u64 > limits.processes {
        Some(ExceededLimit::Processes(limits.processes))
    } else if all.iter().map(|pid| tasks(*pid).len() as u64).sum::<u64>() > most {
        Some(ExceededLimit::Threads(most))
    } else {
        let is_over = match group.filter(|group| group.bounds_memory()) {
            Some(group) => group.ran_out_of_memory(),
            None => memory::exceeds(&all, limits.memory),
        };
        is_over.then_some(ExceededLimit::Memory(limits.memory))
    }
}

/// Reaps the children of this process that have ended, but for the shell. The command cannot wait for
/// them, so that they are not among its processes. Only this process reaps its children, so that
/// their ids stay valid.
pub(super) fn reap_orphans(shell: Pid) {
    let own = Children::detect().of_process(getpid().as_raw_pid());
    for orphan in own.into_iter().filter_map(Pid::from_raw).filter(|child| *child != shell) {
        let _ = waitid(WaitId::Pid(orphan), WaitIdOptions::EXITED | WaitIdOptions::NOHANG);
    }
}

fn descendants(own: Vec<i32>, tree: &Children, limits: ShellLimits) -> Vec<i32> {
    let mut all = own;
    let mut at = 0;
    // Stop at the limit: a larger count does not change the result.
    while let Some(pid) = all.get(at).copied().filter(|_| all.len() as u64 <= limits.processes) {
        all.extend(tree.of_process(pid));
        at += 1;
    }
    all
}

/// The bit of the capability to see hidden processes (`CAP_SYS_PTRACE`).
const SYS_PTRACE: u32 = 19;

/// Returns whether a process of this user could hide from this one: `/proc` is mounted with
/// `hidepid`, which covers a process that cannot be traced, for example since its program cannot be
/// read.
pub(super) fn may_be_hidden() -> bool {
    let read = |file: &str| fs::read_to_string(file).unwrap_or_default();
    let (mounts, status) = (read("/proc/self/mountinfo"), read("/proc/self/status"));
    let sees_all = status.lines().find_map(|line| line.strip_prefix("CapEff:"));
    let sees_all = sees_all.and_then(|set| u64::from_str_radix(set.trim(), 16).ok());
    hides(&mounts) && sees_all.is_none_or(|set| set >> SYS_PTRACE & 1 == 0)
}

/// Returns whether the topmost mount at `/proc` hides processes.
fn hides(mountinfo: &str) -> bool {
    let of_proc = |line: &&str| line.split(' ').nth(4) == Some("/proc");
    let options = mountinfo.lines().rfind(of_proc).and_then(|line| line.rsplit(' ').next());
    let mut hidden = options.into_iter().flat_map(|options| options.split(','));
    hidden.any(|option| {
        option.strip_prefix("hidepid=").is_some_and(|value| !matches!(value, "0" | "off"))
    })
}

/// Visits each descendant of this process, nearest first. The children of a process are looked up
/// after the visit.
pub(super) fn each_descendant(mut visit: impl FnMut(Pid)) {
    each_descendant_of(getpid(), |process, _| visit(process));
}

/// Visits each descendant of a process with its parent, as [`each_descendant`].
fn each_descendant_of(root: Pid, mut visit: impl FnMut(Pid, i32)) {
    let tree = Children::detect();
    let mut all = vec![root.as_raw_pid()];
    let mut at = 0;
    while let Some(parent) = all.get(at).copied() {
        let children = tree.of_process(parent);
        let processes = children.iter().copied().filter_map(Pid::from_raw);
        processes.for_each(|process| visit(process, parent));
        all.extend(children);
        at += 1;
    }
}

/// Kills all descendants of another process, which does not do it itself: again and again until
/// there are none, for at most this time.
pub(super) fn kill_descendants_of(root: Pid, time: Duration) {
    let until = Instant::now() + time;
    loop {
        let mut is_any_alive = false;
        each_descendant_of(root, |process, parent| {
            is_any_alive |= kill_child(process, parent, root.as_raw_pid());
        });
        if !is_any_alive || Instant::now() >= until {
            return;
        }
        std::thread::sleep(KILL_PAUSE);
    }
}

/// Kills a process that was found as a child of `parent`, and returns true if it was alive. Another
/// process may have its number since, which the opened handle and then its parent tell: orphans of
/// the tree are children of its root.
fn kill_child(process: Pid, parent: i32, root: i32) -> bool {
    let Ok(handle) = pidfd_open(process, PidfdFlags::empty()) else { return false };
    let Some((state, now)) = state_and_parent(process.as_raw_pid()) else { return false };
    let is_alive = !matches!(state, 'Z' | 'X') && (now == parent || now == root);
    if is_alive {
        let _ = pidfd_send_signal(&handle, Signal::KILL);
    }
    is_alive
}

/// The source of parent-child relations.
enum Children {
    /// The `children` file of each thread.
    Files,
    /// A table of the parents of all processes, for kernels without that file.
    Table(HashMap<i32, Vec<i32>>),
}

impl Children {
    fn detect() -> Self {
        let own = getpid().as_raw_pid();
        if fs::exists(format!("/proc/{own}/task/{own}/children")).unwrap_or(false) {
            return Self::Files;
        }
        let mut table: HashMap<i32, Vec<i32>> = HashMap::new();
        for pid in numbers("/proc") {
            if let Some(parent) = parent_of(pid) {
                table.entry(parent).or_default().push(pid);
            }
        }
        Self::Table(table)
    }

    fn of_process(&self, pid: i32) -> Vec<i32> {
        match self {
            Self::Files => {
                tasks(pid).into_iter().flat_map(|task| children_of_thread(pid, task)).collect()
            }
            Self::Table(table) => table.get(&pid).cloned().unwrap_or_default(),
        }
    }
}

fn children_of_thread(pid: i32, task: i32) -> Vec<i32> {
    let listed =
        fs::read_to_string(format!("/proc/{pid}/task/{task}/children")).unwrap_or_default();
    listed.split_whitespace().filter_map(|pid| pid.parse().ok()).collect()
}

/// Returns the threads of a process.
pub(super) fn tasks(pid: i32) -> Vec<i32> {
    numbers(&format!("/proc/{pid}/task"))
}

/// Returns the numeric entries of a directory; empty if the directory is gone.
fn numbers(directory: &str) -> Vec<i32> {
    let entries = fs::read_dir(directory).into_iter().flatten().flatten();
    entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok()).collect()
}

fn parent_of(pid: i32) -> Option<i32> {
    state_and_parent(pid).map(|(_, parent)| parent)
}

/// Returns the third and the fourth field of `stat`. The second one, the program's name, may
/// contain any characters.
fn state_and_parent(pid: i32) -> Option<(char, i32)> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    let mut fields = stat.rsplit_once(')')?.1.split_whitespace();
    Some((fields.next()?.chars().next()?, fields.next()?.parse().ok()?))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test may stop at the first surprise")]
    use super::*;

    /// The threads of the process that [`holds_threads`] is.
    const THREADS: &str = "PALISADE_TEST_THREADS";

    /// Does nothing, except in a process that another test has started.
    #[test]
    fn holds_threads() {
        let Ok(count) = std::env::var(THREADS) else { return };
        for _ in 0..count.parse().unwrap_or(0) {
            std::thread::spawn(|| std::thread::sleep(Duration::from_secs(600)));
        }
        std::thread::sleep(Duration::from_secs(600));
    }

    #[test]
    fn threads_of_one_process_count() {
        let limits = ShellLimits { processes: 40, memory: u64::MAX };
        for (threads, expected) in [(250, None), (400, Some(ExceededLimit::Threads(320)))] {
            let mut process = std::process::Command::new(std::env::current_exe().unwrap())
                .args(["--exact", "helper::process_tree::tests::holds_threads"])
                .env(THREADS, threads.to_string())
                .stdout(std::process::Stdio::null())
                .spawn()
                .unwrap();
            let pid = i32::try_from(process.id()).unwrap();
            while tasks(pid).len() < threads {
                std::thread::yield_now();
            }
            let found = exceeded(limits, None);
            process.kill().unwrap();
            process.wait().unwrap();
            assert_eq!(found, expected);
        }
    }

    #[test]
    fn hidepid_of_the_topmost_mount_counts() {
        let mount = |options: &str| format!("22 27 0:21 / /proc rw - proc proc rw{options}\n");
        for shown in ["", ",hidepid=0", ",hidepid=off,gid=4"] {
            assert!(!hides(&(mount(",hidepid=2") + &mount(shown))), "{shown}");
        }
        for hidden in [",hidepid=1", ",gid=4,hidepid=2", ",hidepid=invisible,subset=pid"] {
            assert!(hides(&(mount("") + &mount(hidden))), "{hidden}");
        }
        assert!(!hides("") && !hides("23 27 0:22 / /sys rw - sysfs hidepid=2 rw"));
    }
}
