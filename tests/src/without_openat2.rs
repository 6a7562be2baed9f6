//! Test runs without `openat2`, as on a kernel that does not provide the system call or in a
//! container that forbids it.
//!
//! Linux before 5.6 returns `ENOSYS`, as do container sandboxes that do not list the call; others
//! return `EPERM`. A seccomp filter does the same here. It is irrevocable and inherited by child
//! processes, so it is installed on a short-lived thread.

use std::io;
use std::process::{Command, Output};

use rustix::fs::{CWD, Mode, OFlags, ResolveFlags, openat2};
use rustix::io::Errno;

/// The environment variable that tells a child process which error to expect.
const VARIABLE: &str = "PALISADE_TESTS_WITHOUT_OPENAT2";

/// The kernel's refusal of the call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Refused {
    /// The error of a kernel without the call: `ENOSYS`.
    Unknown,
    /// The error of a filter that forbids the call: `EPERM`.
    Forbidden,
}

impl Refused {
    /// Both refusals.
    pub const ALL: [Self; 2] = [Self::Unknown, Self::Forbidden];

    /// Returns the error of the call.
    #[must_use]
    pub fn errno(self) -> Errno {
        match self {
            Self::Unknown => Errno::NOSYS,
            Self::Forbidden => Errno::PERM,
        }
    }

    fn name(self) -> &'static str {
        match self {
            Self::Unknown => "ENOSYS",
            Self::Forbidden => "EPERM",
        }
    }

    /// Runs a program and its child processes without `openat2`, until the program exits.
    ///
    /// # Errors
    ///
    /// If the kernel does not accept the filter, or the program cannot be started.
    pub fn output(self, command: &mut Command) -> io::Result<Output> {
        command.env(VARIABLE, self.name());
        let confined = || {
            filter::put_on(self)?;
            command.output()
        };
        std::thread::scope(|scope| scope.spawn(confined).join())
            .unwrap_or_else(|_| Err(io::Error::other("it panicked")))
    }

    /// Runs tests of the current binary again without `openat2`: those whose path contains `filter`
    /// but none of `but`. The tests that call this function must be excluded.
    ///
    /// # Errors
    ///
    /// As [`output`](Self::output).
    pub fn run_again(self, filter: &str, but: &[&str]) -> io::Result<Output> {
        let skipped = but.iter().flat_map(|but| ["--skip", *but]);
        self.output(Command::new(std::env::current_exe()?).arg(filter).args(skipped))
    }
}

/// Returns the refusal that this process was started with, for tests that depend on it.
///
/// # Panics
///
/// If this process was started without `openat2`, but the call succeeds: the other tests would
/// prove nothing.
#[must_use]
pub fn refused_here() -> Option<Refused> {
    let told = std::env::var_os(VARIABLE)?;
    let refused = Refused::ALL.into_iter().find(|refused| told == refused.name())?;
    assert_eq!(ask().err(), Some(refused.errno()), "openat2 is not refused after all");
    Some(refused)
}

/// Returns true if the kernel provides the call.
#[must_use]
pub fn exists() -> bool {
    ask().is_ok()
}

fn ask() -> rustix::io::Result<()> {
    openat2(CWD, ".", OFlags::PATH | OFlags::CLOEXEC, Mode::empty(), ResolveFlags::BENEATH)
        .map(drop)
}

#[cfg(target_os = "linux")]
mod filter {
    use super::Refused;
    use seccompiler::{BpfProgram, SeccompAction, SeccompFilter, apply_filter};
    use std::collections::BTreeMap;
    use std::io;

    /// The number of `openat2`, which is the same on every architecture.
    const OPENAT2: i64 = 437;

    /// Installs a filter that refuses the call in this thread and in its child processes.
    pub(super) fn put_on(refused: Refused) -> io::Result<()> {
        let answer = SeccompAction::Errno(refused.errno().raw_os_error().unsigned_abs());
        let architecture = std::env::consts::ARCH.try_into().map_err(io::Error::other)?;
        let rules = BTreeMap::from([(OPENAT2, Vec::new())]);
        let filter = SeccompFilter::new(rules, SeccompAction::Allow, answer, architecture)
            .map_err(io::Error::other)?;
        let program: BpfProgram = filter.try_into().map_err(io::Error::other)?;
        apply_filter(&program).map_err(io::Error::other)
    }
}

#[cfg(not(target_os = "linux"))]
mod filter {
    /// Fails: other systems have no seccomp filters.
    pub(super) fn put_on(_: super::Refused) -> std::io::Result<()> {
        Err(std::io::ErrorKind::Unsupported.into())
    }
}
