//! The control group of one command, if this user may create one: the kernel then tracks its
//! processes, bounds their memory, and kills them all at once.
//!
//! Supports cgroup v2 only. A confined command cannot leave its group, because `/sys` is closed to
//! it.

use crate::native::shell::options::ShellLimits;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// The control group of a command, removed on drop.
#[derive(Debug)]
pub(super) struct Cgroup {
    directory: PathBuf,
    /// The group of this process.
    home: PathBuf,
    memory: Memory,
}

/// Kernel tasks per allowed process: a hard limit beyond the helper's count, against a fork bomb
/// that outruns the count.
const TASKS: u64 = 8;

/// How the memory of a group is bounded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Memory {
    /// By the kernel.
    Bounded,
    /// Not bounded: the memory controller is not available here.
    Open,
}

impl Cgroup {
    /// Creates a group beside that of this process, or below it, and moves this process into it;
    /// processes that it starts are in the group as well. Returns `None` if this user may not
    /// create a group or move a process.
    pub(super) fn enter(limits: ShellLimits) -> Option<Self> {
        let mounted = mount(&fs::read_to_string("/proc/self/mountinfo").ok()?)?;
        let home = mounted.join(own(&fs::read_to_string("/proc/self/cgroup").ok()?)?);
        // Below the group of this process there are no controllers: a group that contains processes
        // cannot delegate them.
        let beside =
            home.parent().filter(|parent| parent.starts_with(&mounted)).map(Path::to_owned);
        let places = beside.into_iter().chain([home.clone()]);
        places.into_iter().find_map(|place| Self::made_in(&place, &home, limits))
    }

    fn made_in(place: &Path, home: &Path, limits: ShellLimits) -> Option<Self> {
        let directory = place.join(format!("palisade-shell-{}", std::process::id()));
        fs::create_dir(&directory).ok()?;
        let mut group = Self { directory, home: home.to_owned(), memory: Memory::Open };
        if group.write("memory.max", &limits.memory.to_string()).is_ok() {
            group.memory = Memory::Bounded;
            // An OOM kill then ends the whole command and not only its largest process. Linux 4.19
            // or later.
            let _ = group.write("memory.oom.group", "1");
        }
        let _ = group.write("pids.max", &limits.processes.saturating_mul(TASKS).to_string());
        group.write("cgroup.procs", "0").ok().map(|()| group)
    }

    /// Moves this process back.
    ///
    /// # Errors
    ///
    /// If the move fails, the group is unusable: killing it would kill this process.
    pub(super) fn leave(&self) -> io::Result<()> {
        fs::write(self.home.join("cgroup.procs"), "0")
    }

    /// Returns the processes of the group.
    pub(super) fn processes(&self) -> Option<Vec<i32>> {
        let told = fs::read_to_string(self.directory.join("cgroup.procs")).ok()?;
        Some(told.lines().filter_map(|pid| pid.parse().ok()).collect())
    }

    /// Returns true if the kernel bounds the memory of the group.
    pub(super) fn bounds_memory(&self) -> bool {
        self.memory == Memory::Bounded
    }

    /// Returns true if the OOM killer has killed a process of the group.
    pub(super) fn ran_out_of_memory(&self) -> bool {
        let events = fs::read_to_string(self.directory.join("memory.events")).unwrap_or_default();
        killed(&events)
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
fn mount(mounts: &str) -> Option<PathBuf> {
    let of_groups =
        |line: &&str| line.split_once(" - ").is_some_and(|(_, kind)| kind.starts_with("cgroup2 "));
    mounts.lines().find(of_groups)?.split(' ').nth(4).map(PathBuf::from)
}

/// Returns the group of this process relative to the mount: the path of hierarchy 0.
fn own(groups: &str) -> Option<&str> {
    let path = groups.lines().find_map(|line| line.strip_prefix("0::/"))?;
    // The kernel reports a group outside of the mount with a leading `..`.
    (!path.starts_with("..")).then_some(path)
}

fn killed(events: &str) -> bool {
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
    fn cgroup_path_is_parsed() {
        let mounts = "26 23 0:24 / /sys rw - sysfs sysfs rw\n31 26 0:28 / /sys/fs/cgroup rw,nosuid - cgroup2 cgroup2 rw\n";
        assert_eq!(mount(mounts), Some("/sys/fs/cgroup".into()));
        assert_eq!(mount("36 32 0:33 / /sys/fs/cgroup/cpu rw - cgroup cgroup rw,cpu\n"), None);
        assert_eq!(own("9:pids:/x\n0::/user.slice/app.scope\n"), Some("user.slice/app.scope"));
        assert_eq!(own("0::/\n"), Some(""));
        assert_eq!(own("0::/../other\n"), None);
        assert_eq!(own("3:cpu:/\n"), None);
    }

    #[test]
    fn out_of_memory_kill_is_detected() {
        assert!(killed("low 0\nhigh 0\nmax 12\noom 1\noom_kill 3\noom_group_kill 1\n"));
        assert!(!killed("low 0\nhigh 0\nmax 12\noom 0\noom_kill 0\n"));
        assert!(!killed(""));
    }
}
