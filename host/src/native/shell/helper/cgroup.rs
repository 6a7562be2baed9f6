//! A control group for one command, where this user may make one: the kernel then knows its processes, bounds their
//! memory, and ends them all at once.
//!
//! Version 2 of control groups only. A confined command cannot leave its group, since `/sys` is closed to it.

use crate::native::shell::options::ShellLimits;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// The control group of a command, which is removed when this is dropped.
#[derive(Debug)]
pub(super) struct Cgroup {
    directory: PathBuf,
    /// The group of this process.
    home: PathBuf,
    memory: Memory,
}

/// Tasks, which is what the kernel counts, for each process: a wall behind the count of the helper, for a loop that forks faster than it is counted.
const TASKS: u64 = 8;

/// Who bounds the memory of a group.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Memory {
    /// The kernel.
    Bounded,
    /// Nobody: the controller is not at hand here.
    Open,
}

impl Cgroup {
    /// A group beside that of this process, or below it, with this process in it: what it starts is there as well. None where this user may make none, or
    /// move no process there.
    pub(super) fn enter(limits: ShellLimits) -> Option<Self> {
        let mounted = mount(&fs::read_to_string("/proc/self/mountinfo").ok()?)?;
        let home = mounted.join(own(&fs::read_to_string("/proc/self/cgroup").ok()?)?);
        // Below the group of this process the kernel gives no controllers, since that group has processes itself.
        let beside = home.parent().filter(|parent| parent.starts_with(&mounted)).map(Path::to_owned);
        let places = beside.into_iter().chain([home.clone()]);
        places.into_iter().find_map(|place| Self::made_in(&place, &home, limits))
    }

    fn made_in(place: &Path, home: &Path, limits: ShellLimits) -> Option<Self> {
        let directory = place.join(format!("palisade-shell-{}", std::process::id()));
        fs::create_dir(&directory).ok()?;
        let mut group = Self { directory, home: home.to_owned(), memory: Memory::Open };
        if group.write("memory.max", &limits.memory.to_string()).is_ok() {
            group.memory = Memory::Bounded;
            // All of the command is ended, and not the largest of its processes. Not every kernel knows this.
            let _ = group.write("memory.oom.group", "1");
        }
        let _ = group.write("pids.max", &limits.processes.saturating_mul(TASKS).to_string());
        group.write("cgroup.procs", "0").ok().map(|()| group)
    }

    /// Moves this process back.
    ///
    /// # Errors
    ///
    /// Where that fails the group is of no use: what ended it would end this process.
    pub(super) fn leave(&self) -> io::Result<()> {
        fs::write(self.home.join("cgroup.procs"), "0")
    }

    /// The processes of the group.
    pub(super) fn processes(&self) -> Option<Vec<i32>> {
        let told = fs::read_to_string(self.directory.join("cgroup.procs")).ok()?;
        Some(told.lines().filter_map(|pid| pid.parse().ok()).collect())
    }

    /// Whether the kernel bounds its memory.
    pub(super) fn bounds_memory(&self) -> bool {
        self.memory == Memory::Bounded
    }

    /// Whether the kernel has killed for want of memory here.
    pub(super) fn ran_out_of_memory(&self) -> bool {
        let events = fs::read_to_string(self.directory.join("memory.events")).unwrap_or_default();
        killed(&events)
    }

    /// Ends all of its processes in one step. Linux before 5.14 does not know that.
    pub(super) fn kill(&self) {
        let _ = self.write("cgroup.kill", "1");
    }

    fn write(&self, file: &str, text: &str) -> io::Result<()> {
        // Opened and not made: a file that the kernel does not have here is none.
        let mut file = fs::File::options().write(true).open(self.directory.join(file))?;
        io::Write::write_all(&mut file, text.as_bytes())
    }
}

impl Drop for Cgroup {
    fn drop(&mut self) {
        // Only an empty one can be removed.
        let _ = fs::remove_dir(&self.directory);
    }
}

/// Where the groups are mounted: the fifth field of the line whose file system, behind the lone dash, is that of groups.
fn mount(mounts: &str) -> Option<PathBuf> {
    let of_groups = |line: &&str| line.split_once(" - ").is_some_and(|(_, kind)| kind.starts_with("cgroup2 "));
    mounts.lines().find(of_groups)?.split(' ').nth(4).map(PathBuf::from)
}

/// The group of this process below the mount: the path of the hierarchy with the number 0.
fn own(groups: &str) -> Option<&str> {
    let path = groups.lines().find_map(|line| line.strip_prefix("0::/"))?;
    // A group outside of what is mounted here begins so.
    (!path.starts_with("..")).then_some(path)
}

fn killed(events: &str) -> bool {
    let count =
        events.lines().find_map(|line| line.strip_prefix("oom_kill ")).and_then(|count| count.parse::<u64>().ok());
    count.is_some_and(|count| count > 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_group_of_a_process_is_found_from_what_the_kernel_tells() {
        let mounts =
            "26 23 0:24 / /sys rw - sysfs sysfs rw\n31 26 0:28 / /sys/fs/cgroup rw,nosuid - cgroup2 cgroup2 rw\n";
        assert_eq!(mount(mounts), Some("/sys/fs/cgroup".into()));
        assert_eq!(mount("36 32 0:33 / /sys/fs/cgroup/cpu rw - cgroup cgroup rw,cpu\n"), None);
        assert_eq!(own("9:pids:/x\n0::/user.slice/app.scope\n"), Some("user.slice/app.scope"));
        assert_eq!(own("0::/\n"), Some(""));
        assert_eq!(own("0::/../other\n"), None);
        assert_eq!(own("3:cpu:/\n"), None);
    }

    #[test]
    fn an_end_for_want_of_memory_is_told_from_others() {
        assert!(killed("low 0\nhigh 0\nmax 12\noom 1\noom_kill 3\noom_group_kill 1\n"));
        assert!(!killed("low 0\nhigh 0\nmax 12\noom 0\noom_kill 0\n"));
        assert!(!killed(""));
    }
}
