//! Why a plugin was not compiled.

use crate::sandbox::prepare::brief;
use crate::tool::text::{cut, visible};
use std::time::Duration;

/// Why a plugin was not compiled.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum CompileError {
    /// The engine does not accept it.
    #[error("it does not compile: {0}")]
    Invalid(String),
    /// It took too much time of the processor.
    #[error("compilation took more than {} of processor time; `limits.compile_time` in your own palisade.toml allows it more", humantime::format_duration(*max))]
    Time {
        /// The processor time that there was.
        max: Duration,
    },
    /// It was not done after a time in which even a busy machine would have done it.
    #[error(
        "compilation was not done after {}, and has not had the processor time that it may take; try again when the machine is less busy",
        humantime::format_duration(*max)
    )]
    Wall {
        /// How long it was waited for.
        max: Duration,
    },
    /// This process has to do with compilations that nothing can end.
    #[error(
        "compilations that were given up still run in this process, and no more are begun beside them; a compiler in a child process can be ended"
    )]
    Busy,
    /// It took too much memory.
    #[error("compilation took more than {} MiB; `limits.compile_memory` in your own palisade.toml allows it more", max >> 20)]
    Memory {
        /// The address space that there was, in bytes.
        max: u64,
    },
    /// It is so large that compiling it would take too much memory, as far as that is known beforehand.
    #[error("compiling it would take more than {} MiB by its size; `limits.compile_memory` in your own palisade.toml allows it more", max >> 20)]
    Size {
        /// The address space that there was, in bytes.
        max: u64,
    },
    /// What came of it is too large.
    #[error("it compiles to more than {} MiB of code, the most that is accepted", max >> 20)]
    Code {
        /// The limit, in bytes.
        max: u64,
    },
    /// Loading was cancelled.
    #[error("loading was cancelled before it was compiled")]
    Cancelled,
    /// The compiler ended without an answer, or failed by itself.
    #[error("the compiler failed on it: {0}")]
    Crashed(String),
    /// There is no compiler.
    #[error("the compiler could not be started: {0}")]
    Start(String),
}

impl CompileError {
    pub(super) fn invalid(error: &wasmtime::Error) -> Self {
        Self::Invalid(brief(error))
    }

    pub(super) fn crashed(how: &str) -> Self {
        Self::Crashed(shown(how))
    }

    /// Of an error that comes before the compiler judges a component, or after it.
    pub(super) fn failed(error: &wasmtime::Error) -> Self {
        Self::Crashed(brief(error))
    }

    pub(super) fn start(error: &std::io::Error) -> Self {
        Self::Start(error.to_string())
    }
}

/// Words of a child, which may be hostile by now, fit for one line.
pub(super) fn shown(text: &str) -> String {
    visible(cut(text, 1024)).replace('\n', " ")
}
