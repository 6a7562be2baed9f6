//! Directories for compiled code, one per test run: a cached verdict about a plugin must not
//! outlive the host build that made it.

use std::fmt;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::UNIX_EPOCH;

/// Returns the directory below `home` for the current test run, and removes those of ended runs.
/// All processes below the same cargo process share the directory, so that a guest is compiled once
/// for all suites.
///
/// # Panics
///
/// If the directory cannot be created.
#[must_use]
pub fn of_this_run(home: &Path) -> PathBuf {
    let run = Process::running();
    sweep(home, |name| Process::parse(name).is_some_and(|other| other == run || other.lives()));
    private(home.join(run.to_string()))
}

/// Returns the directory below `home` for this build of this program, and removes those of other
/// builds. For measurements made by several processes that start with compiled code.
///
/// # Panics
///
/// If the program cannot read its own file's metadata, or the directory cannot be created.
#[must_use]
pub fn of_this_build(home: &Path) -> PathBuf {
    let own = std::env::current_exe().and_then(fs::metadata).expect("a program knows its own file");
    let linked = own
        .modified()
        .ok()
        .and_then(|time| time.duration_since(UNIX_EPOCH).ok())
        .unwrap_or_default();
    let build = format!("{}-{}", linked.as_nanos(), own.len());
    sweep(home, |name| name == build);
    private(home.join(build))
}

/// Removes the entries that `keeps` does not select. Best effort: another process may remove them
/// at the same time, and a leftover directory is harmless.
fn sweep(home: &Path, keeps: impl Fn(&str) -> bool) {
    for entry in fs::read_dir(home).into_iter().flatten().flatten() {
        if entry.file_name().to_str().is_none_or(|name| !keeps(name)) {
            let _ = fs::remove_dir_all(entry.path());
        }
    }
}

/// Creates a directory that only its owner can enter, as the cache requires.
fn private(path: PathBuf) -> PathBuf {
    let mut builder = fs::DirBuilder::new();
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    let made = builder.recursive(true).create(&path);
    made.unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    path
}

/// A process, identified by id and start time, since ids are reused.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Process {
    id: u32,
    start: u64,
}

impl fmt::Display for Process {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}-{}", self.id, self.start)
    }
}

impl Process {
    /// Returns the nearest ancestor that is cargo, or the process itself if there is none.
    fn running() -> Self {
        let own = std::process::id();
        let mut line = std::iter::successors(Stat::of(own), |stat| Stat::of(stat.parent));
        let cargo = line.find(|stat| stat.name.starts_with("cargo"));
        let runner = cargo.or_else(|| Stat::of(own));
        // Without `/proc`, each process gets a directory of its own.
        runner.map_or(Self { id: own, start: 0 }, |stat| Self { id: stat.id, start: stat.start })
    }

    fn parse(name: &str) -> Option<Self> {
        let (id, start) = name.split_once('-')?;
        Some(Self { id: id.parse().ok()?, start: start.parse().ok()? })
    }

    fn lives(self) -> bool {
        Stat::of(self.id).is_some_and(|stat| stat.start == self.start)
    }
}

/// The fields of `/proc/PID/stat` that are used here.
struct Stat {
    id: u32,
    name: String,
    parent: u32,
    start: u64,
}

impl Stat {
    /// Returns `None` if there is no such process, or no `/proc`.
    fn of(id: u32) -> Option<Self> {
        let text = fs::read_to_string(format!("/proc/{id}/stat")).ok()?;
        // The name may contain brackets and spaces, so it ends at the last bracket.
        let (head, tail) = text.rsplit_once(") ")?;
        let fields: Vec<&str> = tail.split(' ').collect();
        Some(Self {
            id,
            name: head.split_once('(')?.1.to_owned(),
            parent: fields.get(1)?.parse().ok()?,
            start: fields.get(19)?.parse().ok()?,
        })
    }
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;
    use std::process::{Command, Stdio};

    #[test]
    fn cache_of_an_ended_run_is_removed() {
        let home = tempfile::tempdir().expect("a directory");
        let own = of_this_run(home.path());
        let mut other = Command::new("cat").stdin(Stdio::piped()).spawn().expect("a process");
        let stat = Stat::of(other.id()).expect("it runs");
        let theirs =
            private(home.path().join(Process { id: stat.id, start: stat.start }.to_string()));
        // A process with the same id and another start time.
        let past =
            private(home.path().join(Process { id: stat.id, start: stat.start + 1 }.to_string()));
        assert_eq!(of_this_run(home.path()), own, "the same for the whole run");
        assert!(own.is_dir() && theirs.is_dir() && !past.exists());
        drop(other.stdin.take());
        other.wait().expect("it ends");
        let _ = of_this_run(home.path());
        assert!(own.is_dir() && !theirs.exists());
    }

    #[test]
    fn cache_of_another_build_is_removed() {
        let home = tempfile::tempdir().expect("a directory");
        let past = private(home.path().join("1-1"));
        let own = of_this_build(home.path());
        assert!(own.is_dir() && !past.exists());
        assert_eq!(of_this_build(home.path()), own);
    }

    #[test]
    fn process_is_identified_by_id_and_start_time() {
        let own = Stat::of(std::process::id()).expect("it runs");
        let process = Process { id: own.id, start: own.start };
        assert!(process.lives() && !Process { start: own.start + 1, ..process }.lives());
        assert_eq!(Process::parse(&process.to_string()), Some(process));
        assert_eq!(Process::parse("key"), None);
    }
}
