//! Counts the processes of a command and their memory.

use super::cgroup::Cgroup;
use crate::options::ShellLimits;
use crate::process::Excess;
use rustix::process::{Pid, getpid};
use std::collections::HashMap;
use std::fs;

/// Returns the threads of this process.
pub(super) fn threads() -> Vec<i32> {
    tasks(getpid().as_raw_pid())
}

/// The result of a count.
#[derive(Debug, Default)]
pub(super) struct Census {
    /// The child processes of this process. Only this process reaps them, so that their IDs stay
    /// valid.
    pub(super) children: Vec<Pid>,
    /// The exceeded limit, if any.
    pub(super) excess: Option<Excess>,
}

/// Counts the processes of a command: those of its control group if it has one, otherwise the
/// descendants of this process.
pub(super) fn take(limits: ShellLimits, group: Option<&Cgroup>) -> Census {
    let parents = Parents::look();
    let own = parents.children(getpid().as_raw_pid());
    let children = own.iter().filter_map(|pid| Pid::from_raw(*pid)).collect();
    let all =
        group.and_then(Cgroup::processes).unwrap_or_else(|| descendants(own, &parents, limits));
    let excess = if all.len() as u64 > limits.processes {
        Some(Excess::Processes(limits.processes))
    } else {
        let holds_more = match group.filter(|group| group.bounds_memory()) {
            Some(group) => group.ran_out_of_memory(),
            None => holds_more(&all, limits.memory),
        };
        holds_more.then_some(Excess::Memory(limits.memory))
    };
    Census { children, excess }
}

fn descendants(own: Vec<i32>, parents: &Parents, limits: ShellLimits) -> Vec<i32> {
    let mut all = own;
    let mut at = 0;
    // Stop at the limit: a larger count does not change the result.
    while let Some(pid) = all.get(at).copied().filter(|_| all.len() as u64 <= limits.processes) {
        all.extend(parents.children(pid));
        at += 1;
    }
    all
}

/// Visits each descendant of this process, nearest first. The children of a process are looked up
/// after the visit.
pub(super) fn each_descendant(mut visit: impl FnMut(Pid)) {
    let parents = Parents::look();
    let mut all = vec![getpid().as_raw_pid()];
    let mut at = 0;
    while let Some(parent) = all.get(at).copied() {
        let children = parents.children(parent);
        children.iter().copied().filter_map(Pid::from_raw).for_each(&mut visit);
        all.extend(children);
        at += 1;
    }
}

/// The source of parent-child relations.
enum Parents {
    /// The `children` file of each thread.
    Asked,
    /// A table of the parents of all processes, for kernels without that file.
    Table(HashMap<i32, Vec<i32>>),
}

impl Parents {
    fn look() -> Self {
        let own = getpid().as_raw_pid();
        if fs::exists(format!("/proc/{own}/task/{own}/children")).unwrap_or(false) {
            return Self::Asked;
        }
        let mut table: HashMap<i32, Vec<i32>> = HashMap::new();
        for pid in numbers("/proc") {
            if let Some(parent) = parent(pid) {
                table.entry(parent).or_default().push(pid);
            }
        }
        Self::Table(table)
    }

    fn children(&self, pid: i32) -> Vec<i32> {
        match self {
            Self::Asked => tasks(pid).into_iter().flat_map(|task| of_thread(pid, task)).collect(),
            Self::Table(table) => table.get(&pid).cloned().unwrap_or_default(),
        }
    }
}

fn of_thread(pid: i32, task: i32) -> Vec<i32> {
    let told = fs::read_to_string(format!("/proc/{pid}/task/{task}/children")).unwrap_or_default();
    told.split_whitespace().filter_map(|pid| pid.parse().ok()).collect()
}

fn tasks(pid: i32) -> Vec<i32> {
    numbers(&format!("/proc/{pid}/task"))
}

/// Returns the numeric entries of a directory; empty if the directory is gone.
fn numbers(directory: &str) -> Vec<i32> {
    let entries = fs::read_dir(directory).into_iter().flatten().flatten();
    entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok()).collect()
}

/// Returns the fourth field of `stat`. The second one, the program's name, may contain any
/// characters.
fn parent(pid: i32) -> Option<i32> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    stat.rsplit_once(')')?.1.split_whitespace().nth(1)?.parse().ok()
}

/// Returns true if the processes together hold more memory than the limit, in bytes.
fn holds_more(processes: &[i32], limit: u64) -> bool {
    let sum =
        |of: fn(i32) -> u64| processes.iter().fold(0_u64, |sum, pid| sum.saturating_add(of(*pid)));
    // Two passes: the cheap first sum counts shared pages once per process. The exact second sum is
    // more expensive.
    sum(resident) > limit && sum(proportional) > limit
}

/// Returns the resident memory of a process that is not backed by a file, in bytes.
fn resident(pid: i32) -> u64 {
    of_process(pid, "status", &["RssAnon:", "RssShmem:"]).unwrap_or(0)
}

/// Returns the same with a proportional share of shared pages, or the resident memory if the kernel
/// does not tell the share.
fn proportional(pid: i32) -> u64 {
    of_process(pid, "smaps_rollup", &["Pss_Anon:", "Pss_Shmem:"]).unwrap_or_else(|| resident(pid))
}

/// Reads a file of a process. A process whose first thread has ended tells nothing there, and
/// another thread tells the memory that they share.
fn of_process(pid: i32, file: &str, keys: &[&str]) -> Option<u64> {
    let of_thread = |task| kilobytes(&format!("/proc/{pid}/task/{task}/{file}"), keys);
    kilobytes(&format!("/proc/{pid}/{file}"), keys)
        .or_else(|| tasks(pid).into_iter().find_map(of_thread))
}

fn kilobytes(file: &str, keys: &[&str]) -> Option<u64> {
    let text = fs::read_to_string(file).ok()?;
    let value = |line: &str| {
        let rest = keys.iter().find_map(|key| line.strip_prefix(key))?;
        rest.split_whitespace().next()?.parse::<u64>().ok()
    };
    let values: Vec<u64> = text.lines().filter_map(value).collect();
    (!values.is_empty()).then(|| values.iter().sum::<u64>() << 10)
}
