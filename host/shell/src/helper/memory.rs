//! The resident memory of the processes of a command.

use super::process_tree::tasks;
use std::fs;

/// Returns true if the processes together hold more memory than the limit, in bytes.
pub(super) fn exceeds(processes: &[i32], limit: u64) -> bool {
    let sum = |memory: fn(i32) -> u64| {
        processes.iter().fold(0_u64, |sum, pid| sum.saturating_add(memory(*pid)))
    };
    // Two passes: the cheap first sum counts shared pages once per process. The exact second sum is
    // more expensive.
    sum(resident) > limit && sum(proportional) > limit
}

/// Returns the resident memory of a process that is not backed by a file, in bytes.
fn resident(pid: i32) -> u64 {
    sum_of_process(pid, "status", &["RssAnon:", "RssShmem:"]).unwrap_or(0)
}

/// Returns the same with a proportional share of shared pages, or the resident memory if the kernel
/// does not report the share.
fn proportional(pid: i32) -> u64 {
    sum_of_process(pid, "smaps_rollup", &["Pss_Anon:", "Pss_Shmem:"])
        .unwrap_or_else(|| resident(pid))
}

/// Returns the sum of these lines in a file of a process, in bytes. If the first thread of the
/// process has ended, its file has none of them, and the file of another thread has them.
fn sum_of_process(pid: i32, file: &str, keys: &[&str]) -> Option<u64> {
    let of_thread = |task| sum_of_file(&format!("/proc/{pid}/task/{task}/{file}"), keys);
    sum_of_file(&format!("/proc/{pid}/{file}"), keys)
        .or_else(|| tasks(pid).into_iter().find_map(of_thread))
}

fn sum_of_file(file: &str, keys: &[&str]) -> Option<u64> {
    let text = fs::read_to_string(file).ok()?;
    let value = |line: &str| {
        let rest = keys.iter().find_map(|key| line.strip_prefix(key))?;
        rest.split_whitespace().next()?.parse::<u64>().ok()
    };
    let values: Vec<u64> = text.lines().filter_map(value).collect();
    (!values.is_empty()).then(|| values.iter().sum::<u64>() << 10)
}
