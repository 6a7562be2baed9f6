//! The memory that this process may use, as Linux reports it.

use std::fs;
use std::path::Path;
use std::sync::OnceLock;

/// Returns the memory of the machine, or the limit of the process's control group if that is less,
/// in bytes. It is read once.
pub fn usable() -> Option<u64> {
    static USABLE: OnceLock<Option<u64>> = OnceLock::new();
    *USABLE.get_or_init(read)
}

fn read() -> Option<u64> {
    let machine = fs::read_to_string("/proc/meminfo").ok().and_then(|text| of_machine(&text));
    let groups = fs::read_to_string("/proc/self/cgroup").unwrap_or_default();
    machine.into_iter().chain(of_groups(&groups, Path::new("/sys/fs/cgroup"))).min()
}

fn of_machine(meminfo: &str) -> Option<u64> {
    let kib = meminfo
        .lines()
        .find_map(|line| line.strip_prefix("MemTotal:"))?
        .split_whitespace()
        .next()?;
    kib.parse::<u64>().ok()?.checked_mul(1024)
}

/// Returns the least limit of the control groups of a process, in bytes. A limit of a group also
/// applies to the groups below it.
fn of_groups(groups: &str, mounted: &Path) -> Option<u64> {
    groups.lines().filter_map(|line| of_group(line, mounted)).min()
}

/// Reads the limits of one line of `/proc/PID/cgroup`: `hierarchy:controllers:path`.
fn of_group(line: &str, mounted: &Path) -> Option<u64> {
    let (controllers, path) = line.split_once(':')?.1.split_once(':')?;
    let (root, file) = match controllers {
        "" => (mounted.to_owned(), "memory.max"),
        _ if controllers.split(',').any(|name| name == "memory") => {
            (mounted.join("memory"), "memory.limit_in_bytes")
        }
        _ => return None,
    };
    let group = root.join(path.trim_start_matches('/'));
    // A container often sees its own group as the root, and its path as that of the host.
    let groups = group.ancestors().take_while(|directory| directory.starts_with(&root));
    groups
        .filter_map(|directory| fs::read_to_string(directory.join(file)).ok()?.trim().parse().ok())
        .min()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test that cannot prepare its directory has failed")]
    use super::*;

    #[test]
    fn machine_memory_is_read_in_kib() {
        assert_eq!(of_machine("MemFree: 1 kB\nMemTotal:  2048 kB\n"), Some(2 << 20));
        assert_eq!(of_machine("MemFree: 1 kB\n"), None);
        assert!(usable().is_some());
    }

    #[test]
    fn lowest_cgroup_limit_applies() {
        let mounted = tempfile::tempdir().unwrap();
        let limited = |directory: &str, file: &str, limit: &str| {
            let directory = mounted.path().join(directory);
            fs::create_dir_all(&directory).unwrap();
            fs::write(directory.join(file), limit).unwrap();
        };
        let of = |groups: &str| of_groups(groups, mounted.path());
        assert_eq!(of("0::/a/b\n"), None);
        limited("a/b", "memory.max", "max\n");
        assert_eq!(of("0::/a/b\n"), None);
        limited("a", "memory.max", "1000\n");
        assert_eq!(of("0::/a/b\n"), Some(1000));
        limited("a/b", "memory.max", "900\n");
        assert_eq!(of("0::/a/b\n"), Some(900));
        assert_eq!(of("0::/elsewhere\n"), None);
        limited("memory/docker", "memory.limit_in_bytes", "800\n");
        assert_eq!(of("4:cpu,memory:/docker\n1:name=systemd:/\n0::/a/b\n"), Some(800));
    }
}
