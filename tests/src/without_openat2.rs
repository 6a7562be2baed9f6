//! The same tests on a system without `openat2`: a program whose kernel does not know that call, or may not say that it does.
//!
//! Linux before 5.6 answers `ENOSYS`, and so do sandboxes of containers that do not list the call; others answer `EPERM`. A filter of the kernel (seccomp)
//! does the same here. It is put on a thread that is thrown away, and whatever that thread starts inherits it, for good.

use std::io;
use std::process::{Command, Output};

use rustix::fs::{CWD, Mode, OFlags, ResolveFlags, openat2};
use rustix::io::Errno;

/// Tells a program that was started here what to expect.
const VARIABLE: &str = "PALISADE_TESTS_WITHOUT_OPENAT2";

/// How the kernel refuses the call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Refused {
    /// As a kernel that does not know it: `ENOSYS`.
    Unknown,
    /// As a filter that does not allow it: `EPERM`.
    Forbidden,
}

impl Refused {
    /// Both.
    pub const ALL: [Self; 2] = [Self::Unknown, Self::Forbidden];

    /// What the call answers then.
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

    /// Runs a program to its end, with all that it starts, without `openat2`.
    ///
    /// # Errors
    ///
    /// Where this kernel takes no filter, or the program cannot be started.
    pub fn output(self, command: &mut Command) -> io::Result<Output> {
        command.env(VARIABLE, self.name());
        let confined = || {
            filter::put_on(self)?;
            command.output()
        };
        std::thread::scope(|scope| scope.spawn(confined).join())
            .unwrap_or_else(|_| Err(io::Error::other("it panicked")))
    }

    /// Runs tests of this very binary once more, without `openat2`: all whose path contains `filter`, but for those that do this themselves.
    ///
    /// # Errors
    ///
    /// As [`output`](Self::output).
    pub fn run_again(self, filter: &str, but: &str) -> io::Result<Output> {
        self.output(Command::new(std::env::current_exe()?).args([filter, "--skip", but]))
    }
}

/// How the call is refused to this program, if it is: for a test that has to know on which side it runs.
///
/// # Panics
///
/// Where this program was told that it is refused, and it is not: then the other tests would say nothing.
#[must_use]
pub fn refused_here() -> Option<Refused> {
    let told = std::env::var_os(VARIABLE)?;
    let refused = Refused::ALL.into_iter().find(|refused| told == refused.name())?;
    assert_eq!(ask().err(), Some(refused.errno()), "openat2 is not refused after all");
    Some(refused)
}

/// Whether this kernel has the call at all.
#[must_use]
pub fn exists() -> bool {
    ask().is_ok()
}

fn ask() -> rustix::io::Result<()> {
    openat2(CWD, ".", OFlags::PATH | OFlags::CLOEXEC, Mode::empty(), ResolveFlags::BENEATH).map(drop)
}

#[cfg(target_os = "linux")]
mod filter {
    use super::Refused;
    use seccompiler::{BpfProgram, SeccompAction, SeccompFilter, apply_filter};
    use std::collections::BTreeMap;
    use std::io;

    /// The number of `openat2`, the same on every architecture.
    const OPENAT2: i64 = 437;

    /// Takes the call away from this thread and from whatever it starts.
    pub(super) fn put_on(refused: Refused) -> io::Result<()> {
        let answer = SeccompAction::Errno(refused.errno().raw_os_error().unsigned_abs());
        let architecture = std::env::consts::ARCH.try_into().map_err(io::Error::other)?;
        let rules = BTreeMap::from([(OPENAT2, Vec::new())]);
        let filter = SeccompFilter::new(rules, SeccompAction::Allow, answer, architecture).map_err(io::Error::other)?;
        let program: BpfProgram = filter.try_into().map_err(io::Error::other)?;
        apply_filter(&program).map_err(io::Error::other)
    }
}

#[cfg(not(target_os = "linux"))]
mod filter {
    /// There is nothing to take away.
    pub(super) fn put_on(_: super::Refused) -> std::io::Result<()> {
        Err(std::io::ErrorKind::Unsupported.into())
    }
}
