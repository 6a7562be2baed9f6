//! The processes of a command, as `/proc` and the control group list them.

use super::cgroup::Cgroup;
use super::memory;
use crate::ShellLimits;
use crate::process::ExceededLimit;
use rustix::process::{Pid, getpid};
use std::collections::HashMap;
use std::fs;

/// Returns the threads of this process.
pub(super) fn threads() -> Vec<i32> {
    tasks(getpid().as_raw_pid())
}

/// The result of a count.
#[derive(Debug, Default)]
pub(super) struct ProcessCount {
    /// The child processes of this process. Only this process reaps them, so that their IDs stay
    /// valid.
    pub(super) children: Vec<Pid>,
    /// The exceeded limit, if any.
    pub(super) exceeded: Option<ExceededLimit>,
}

/// Counts the processes of a command: those of its control group if it has one, otherwise the
/// descendants of this process.
pub(super) fn count(limits: ShellLimits, group: Option<&Cgroup>) -> ProcessCount {
    let tree = Children::detect();
    let own = tree.of_process(getpid().as_raw_pid());
    let children = own.iter().filter_map(|pid| Pid::from_raw(*pid)).collect();
    let all = group.and_then(Cgroup::processes).unwrap_or_else(|| descendants(own, &tree, limits));
    let exceeded = if all.len() as u64 > limits.processes {
        Some(ExceededLimit::Processes(limits.processes))
    } else {
        let is_over = match group.filter(|group| group.bounds_memory()) {
            Some(group) => group.ran_out_of_memory(),
            None => memory::exceeds(&all, limits.memory),
        };
        is_over.then_some(ExceededLimit::Memory(limits.memory))
    };
    ProcessCount { children, exceeded }
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

/// Visits each descendant of this process, nearest first. The children of a process are looked up
/// after the visit.
pub(super) fn each_descendant(mut visit: impl FnMut(Pid)) {
    let tree = Children::detect();
    let mut all = vec![getpid().as_raw_pid()];
    let mut at = 0;
    while let Some(parent) = all.get(at).copied() {
        let children = tree.of_process(parent);
        children.iter().copied().filter_map(Pid::from_raw).for_each(&mut visit);
        all.extend(children);
        at += 1;
    }
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

/// Returns the fourth field of `stat`. The second one, the program's name, may contain any
/// characters.
fn parent_of(pid: i32) -> Option<i32> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    stat.rsplit_once(')')?.1.split_whitespace().nth(1)?.parse().ok()
}
