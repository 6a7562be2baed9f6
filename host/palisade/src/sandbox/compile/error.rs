//! The error of a compilation.

use crate::sandbox::bulk_memory::SliceError;
use crate::sandbox::error_text::{error_line, printable};
use std::time::Duration;

/// The reason why a plugin was not compiled.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum CompileError {
    /// The engine rejects the component.
    #[error("it does not compile: {0}")]
    Invalid(String),
    /// The compilation exceeded its CPU time.
    #[error("compilation took more than {} of processor time; a higher limit allows it more (`CompileLimits::time`, in a configuration `limits.compile_time`)", humantime::format_duration(*max))]
    Time {
        /// The CPU time limit.
        max: Duration,
    },
    /// The compilation was not done within its wall-clock time, and had not used up its CPU time.
    #[error(
        "compilation did not finish within {}, because the machine is busy; try again later",
        humantime::format_duration(*max)
    )]
    Wall {
        /// The wall-clock limit.
        max: Duration,
    },
    /// Abandoned compilations, which cannot be stopped, occupy all slots of this process.
    #[error(
        "compilations that were given up still run in this process, and no more are begun beside them; a compiler in a child process can be ended"
    )]
    Busy,
    /// The compilation exceeded its memory.
    #[error("compilation took more than {} MiB; a higher limit allows it more (`CompileLimits::memory`, in a configuration `limits.compile_memory`)", max >> 20)]
    Memory {
        /// The address space limit, in bytes.
        max: u64,
    },
    /// The component is so large that its compilation is expected to exceed the memory limit.
    #[error("compiling it is estimated to need more than {} MiB; a higher limit allows it more (`CompileLimits::memory`, in a configuration `limits.compile_memory`)", max >> 20)]
    Size {
        /// The memory limit, in bytes.
        max: u64,
    },
    /// The compiled code is too large.
    #[error("it compiles to more than {} MiB of code, the most that is accepted", max >> 20)]
    Code {
        /// The limit, in bytes.
        max: u64,
    },
    /// Loading was cancelled.
    #[error("loading was cancelled before the plugin was compiled")]
    Cancelled,
    /// The compiler exited without an answer, or failed for a reason of its own.
    #[error("the compiler failed on it: {0}")]
    Crashed(String),
    /// The compiler could not be started.
    #[error("the compiler could not be started: {0}")]
    Start(String),
}

impl From<SliceError> for CompileError {
    fn from(error: SliceError) -> Self {
        Self::Invalid(printable(&error.to_string()))
    }
}

impl CompileError {
    /// Returns true if the reason lies in the state of the machine, which may pass.
    pub(crate) fn may_pass(&self) -> bool {
        match self {
            Self::Wall { .. } | Self::Busy | Self::Start(_) => true,
            Self::Invalid(_)
            | Self::Time { .. }
            | Self::Memory { .. }
            | Self::Size { .. }
            | Self::Code { .. }
            | Self::Cancelled
            | Self::Crashed(_) => false,
        }
    }

    pub(super) fn invalid(error: &wasmtime::Error) -> Self {
        Self::Invalid(error_line(error))
    }

    pub(super) fn crashed(how: &str) -> Self {
        Self::Crashed(printable(how))
    }

    /// Creates the error of a failure before or after the compiler judged the component.
    pub(super) fn failed(error: &wasmtime::Error) -> Self {
        Self::Crashed(error_line(error))
    }

    pub(super) fn start(error: &std::io::Error) -> Self {
        Self::Start(error.to_string())
    }
}
