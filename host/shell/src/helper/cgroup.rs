//! The control group of one command, if this user may create one: the kernel then tracks its
//! processes, bounds their memory, and kills them all at once.
//!
//! Supports cgroup v2 only. A confined command cannot leave its group, because `/sys` is closed to
//! it.

use crate::ShellLimits;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// The control group of a command, removed on drop.
#[derive(Debug)]
pub(super) struct Cgroup {
    directory: PathBuf,
    /// The group of this process, to which it returns.
    previous: PathBuf,
    memory: MemoryLimit,
}

/// Threads for each allowed process. The kernel enforces that in a group, against a fork bomb that
/// outruns the count of the helper.
pub(super) const TASKS_PER_PROCESS: u64 = 8;

/// Whether the memory of a group is limited.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum MemoryLimit {
    /// The kernel enforces the limit.
    Enforced,
    /// The memory controller is not available here.
    Unavailable,
}

impl Cgroup {
    /// Creates a group beside that of this process, or below it, and moves this process into it;
    /// processes that it starts are in the group as well. Returns `None` if this user may not
    /// create a group or move a process.
    pub(super) fn enter(limits: ShellLimits) -> Option<Self> {
        let mounted = mount_point(&fs::read_to_string("/proc/self/mountinfo").ok()?)?;
        let own = mounted.join(own_group(&fs::read_to_string("/proc/self/cgroup").ok()?)?);
        // Below the group of this process there are no controllers: a group that contains processes
        // cannot delegate them.
        let sibling_parent =
            own.parent().filter(|parent| parent.starts_with(&mounted)).map(Path::to_owned);
        let parents = sibling_parent.into_iter().chain([own.clone()]);
        parents.into_iter().find_map(|parent| Self::create_in(&parent, &own, limits))
    }

    fn create_in(parent: &Path, own: &Path, limits: ShellLimits) -> Option<Self> {
        let directory = parent.join(format!("palisade-shell-{}", std::process::id()));
        fs::create_dir(&directory).ok()?;
        let mut group =
            Self { directory, previous: own.to_owned(), memory: MemoryLimit::Unavailable };
        if group.write("memory.max", &limits.memory.to_string()).is_ok() {
            group.memory = MemoryLimit::Enforced;
            // An OOM kill then ends the whole command and not only its largest process. Linux 4.19
            // or later.
            let _ = group.write("memory.oom.group", "1");
        }
        let _ = group
            .write("pids.max", &limits.processes.saturating_mul(TASKS_PER_PROCESS).to_string());
        group.write("cgroup.procs", "0").ok().map(|()| group)
    }

    /// Moves this process back.
    ///
    /// # Errors
    ///
    /// If the move fails, the group is unusable: killing it would kill this process.
    pub(super) fn leave(&self) -> io::Result<()> {
        fs::write(self.previous.join("cgroup.procs"), "0")
    }

    /// Returns the processes of the group.
    pub(super) fn processes(&self) -> Option<Vec<i32>> {
        let listed = fs::read_to_string(self.directory.join("cgroup.procs")).ok()?;
        Some(listed.lines().filter_map(|pid| pid.parse().ok()).collect())
    }

    /// Returns true if the kernel bounds the memory of the group.
    pub(super) fn bounds_memory(&self) -> bool {
        self.memory == MemoryLimit::Enforced
    }

    /// Returns true if the OOM killer has killed a process of the group.
    pub(super) fn ran_out_of_memory(&self) -> bool {
        let events = fs::read_to_string(self.directory.join("memory.events")).unwrap_or_default();
        has_oom_kill(&events)
    }

    /// Kills all processes of the group in one step. Requires Linux 5.14.
    pub(super) fn kill(&self) {
        let _ = self.write("cgroup.kill", "1");
    }

    fn write(&self, file: &str, text: &str) -> io::Result<()> {
        // Open without creating: a missing file means that the kernel lacks the feature.
        let mut file = fs::File::options().write(true).open(self.directory.join(file))?;
        io::Write::write_all(&mut file, text.as_bytes())
    }
}

impl Drop for Cgroup {
    fn drop(&mut self) {
        // Only an empty group can be removed.
        let _ = fs::remove_dir(&self.directory);
    }
}

/// Returns the mount point of cgroup v2: the fifth field of the `mountinfo` line with `cgroup2`
/// after the separator ` - `.
fn mount_point(mounts: &str) -> Option<PathBuf> {
    let is_cgroup2 =
        |line: &&str| line.split_once(" - ").is_some_and(|(_, kind)| kind.starts_with("cgroup2 "));
    mounts.lines().find(is_cgroup2)?.split(' ').nth(4).map(PathBuf::from)
}

/// Returns the group of this process relative to the mount: the path of hierarchy 0.
fn own_group(groups: &str) -> Option<&str> {
    let path = groups.lines().find_map(|line| line.strip_prefix("0::/"))?;
    // The kernel reports a group outside of the mount with a leading `..`.
    (!path.starts_with("..")).then_some(path)
}

/// Returns true if `memory.events` counts an OOM kill.
fn has_oom_kill(events: &str) -> bool {
    let count = events
        .lines()
        .find_map(|line| line.strip_prefix("oom_kill "))
        .and_then(|count| count.parse::<u64>().ok());
    count.is_some_and(|count| count > 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mount_point_and_group_are_parsed() {
        let mounts = "26 23 0:24 / /sys rw - sysfs sysfs rw\n\
            31 26 0:28 / /sys/fs/cgroup rw,nosuid - cgroup2 cgroup2 rw\n";
        assert_eq!(mount_point(mounts), Some("/sys/fs/cgroup".into()));
        assert_eq!(
            mount_point("36 32 0:33 / /sys/fs/cgroup/cpu rw - cgroup cgroup rw,cpu\n"),
            None
        );
        assert_eq!(
            own_group("9:pids:/x\n0::/user.slice/app.scope\n"),
            Some("user.slice/app.scope")
        );
        assert_eq!(own_group("0::/\n"), Some(""));
        assert_eq!(own_group("0::/../other\n"), None);
        assert_eq!(own_group("3:cpu:/\n"), None);
    }

    #[test]
    fn oom_kills_are_detected() {
        assert!(has_oom_kill("low 0\nhigh 0\nmax 12\noom 1\noom_kill 3\noom_group_kill 1\n"));
        assert!(!has_oom_kill("low 0\nhigh 0\nmax 12\noom 0\noom_kill 0\n"));
        assert!(!has_oom_kill(""));
    }
}
