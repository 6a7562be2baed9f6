//! The choice of the compiler, and its limits.

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;
use tokio_util::sync::CancellationToken;

/// The place where plugins from files are compiled. Plugins embedded in the host are compiled in
/// this process, unless there is a child compiler and the address space is too short for pooled
/// memory.
#[derive(Debug, Clone)]
pub enum Compiler {
    /// This process, on up to four threads.
    ///
    /// The limits are weaker here. A plugin that takes too long is rejected and the host goes on,
    /// but its threads cannot be stopped: they run until the compiler is done. At most two
    /// compilations run at once, abandoned ones included; while two abandoned ones run, every
    /// further compilation is rejected. The memory limit is checked beforehand against an estimate,
    /// from the size of the plugin and the memory per byte of ordinary code, and is not enforced. A
    /// compiler flaw runs with the rights of this process. This choice needs nothing but the
    /// library.
    InProcess(CompileLimits),
    /// A child process, within limits that the kernel enforces. The host kills it when they are
    /// exceeded.
    Child(ChildCompiler),
}

impl Default for Compiler {
    fn default() -> Self {
        Self::InProcess(CompileLimits::default())
    }
}

impl Compiler {
    /// Returns the CPU time limit for the compilation of one plugin.
    pub(crate) fn time(&self) -> Duration {
        self.limits().time
    }

    pub(crate) fn limits(&self) -> CompileLimits {
        match self {
            Self::InProcess(limits) => *limits,
            Self::Child(child) => child.limits,
        }
    }
}

/// A program that compiles one plugin and exits.
#[derive(Debug, Clone)]
pub struct ChildCompiler {
    pub(super) program: PathBuf,
    pub(super) arguments: Vec<OsString>,
    pub(super) limits: CompileLimits,
    pub(super) cancelled: CancellationToken,
}

impl ChildCompiler {
    /// The hidden subcommand by which the program `palisade` compiles.
    pub const VERB: &'static str = "compile-child";

    /// Creates a compiler that runs the program `palisade` at this absolute path. The program must
    /// have the version of this library, because the engine refuses code of another version.
    #[must_use]
    pub fn palisade(program: impl Into<PathBuf>) -> Self {
        Self::program(program, [Self::VERB])
    }

    /// Creates a compiler that runs any program. The host appends arguments of its own to
    /// `arguments`, and the program must pass these to
    /// [`answer_compilation`](super::answer_compilation). The path must be absolute.
    #[must_use]
    pub fn program<A: Into<OsString>>(
        program: impl Into<PathBuf>,
        arguments: impl IntoIterator<Item = A>,
    ) -> Self {
        let arguments = arguments.into_iter().map(Into::into).collect();
        Self {
            program: program.into(),
            arguments,
            limits: CompileLimits::default(),
            cancelled: CancellationToken::new(),
        }
    }

    /// Sets the limits for the compilation of one plugin.
    #[must_use]
    pub fn limits(mut self, limits: CompileLimits) -> Self {
        self.limits = limits;
        self
    }

    /// Kills running compilations, and starts no more, once this token is cancelled. The affected
    /// plugins are rejected.
    #[must_use]
    pub fn cancelled_by(mut self, token: CancellationToken) -> Self {
        self.cancelled = token;
        self
    }
}

/// The limits for the compilation of one plugin.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CompileLimits {
    /// CPU time: 1 ms to [`MAX_TIME`](Self::MAX_TIME). A compilation also ends after ten times as
    /// long in wall-clock time, however little CPU time it has got.
    ///
    /// A child process counts CPU time in whole seconds, rounded up.
    pub time: Duration,
    /// Address space of the child, in bytes, including the program, its input and its output. In
    /// this process: the bound of the estimate.
    pub memory: u64,
}

impl CompileLimits {
    /// The default CPU time. 20 MB of pure code take one minute on a slow core, and a Python
    /// component of that size about two thirds of that; the rest is margin for slower cores.
    pub const TIME: Duration = Duration::from_secs(180);
    /// The largest CPU time that can be configured.
    pub const MAX_TIME: Duration = Duration::from_secs(3600);
    /// The default address space. The largest accepted component, if it were pure code, takes about
    /// this much: 28 bytes per byte of code (measured).
    pub const MEMORY: u64 = 2 << 30;
    /// The smallest address space that can be configured. Less would not hold the program.
    pub const MIN_MEMORY: u64 = 256 << 20;
    /// The largest address space that can be configured.
    pub const MAX_MEMORY: u64 = 64 << 30;
    /// The ratio of wall-clock time to CPU time. On a busy machine a compilation gets only part of
    /// a core.
    const PATIENCE: u32 = 10;

    /// Returns the wall-clock limit.
    pub(super) fn wall(self) -> Duration {
        self.time.saturating_mul(Self::PATIENCE)
    }

    /// Returns the limits as a child enforces them: the kernel counts CPU time in whole seconds.
    pub(super) fn in_whole_seconds(self) -> Self {
        let is_partial = u64::from(self.time.subsec_nanos() > 0);
        Self {
            time: Duration::from_secs(self.time.as_secs().saturating_add(is_partial).max(1)),
            ..self
        }
    }
}

impl Default for CompileLimits {
    fn default() -> Self {
        Self { time: Self::TIME, memory: Self::MEMORY }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limits_are_those_of_the_compiler() {
        let limits = CompileLimits { time: Duration::from_secs(7), memory: 8 };
        let child = ChildCompiler::palisade("/bin/palisade").limits(limits);
        for compiler in [Compiler::InProcess(limits), Compiler::Child(child)] {
            assert_eq!((compiler.limits(), compiler.time()), (limits, limits.time));
        }
    }
}
