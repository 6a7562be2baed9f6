//! The errors of a build, each with what to do.

use crate::language::UnknownProject;
use crate::trial::TrialError;
use palisade::tool::text::visible;
use std::io;
use std::path::Path;

/// A project cannot be built.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum BuildError {
    /// The directory has no project.
    #[error(transparent)]
    Project(#[from] UnknownProject),
    /// A program or a package is missing.
    #[error("{what} is missing; get it with `{command}`")]
    Missing {
        /// The missing program or package.
        what: String,
        /// The one command that gets it.
        command: String,
    },
    /// The target of Rust is missing, and cannot be made.
    #[error(transparent)]
    Target(#[from] palisade_wasip2::Error),
    /// The project's own description does not fit.
    #[error("{reason}")]
    Manifest {
        /// The reason, with what is accepted.
        reason: String,
    },
    /// The toolchain failed; it has printed why.
    #[error("{program} did not build the project; its own messages are above")]
    Failed {
        /// The program.
        program: String,
    },
    /// The output of the toolchain is no component.
    #[error("the toolchain made no component: {reason}")]
    Component {
        /// The reason.
        reason: String,
    },
    /// The component is not a plugin.
    #[error("`{file}` was built and is not a plugin: {reason}{advice}")]
    Refused {
        /// The file.
        file: String,
        /// The reason of the host.
        reason: String,
        /// The advice for this language; empty, or a clause after `; `.
        advice: &'static str,
    },
    /// The plugin cannot be tried.
    #[error(transparent)]
    Trial(#[from] TrialError),
    /// A file operation failed.
    #[error("cannot {doing} `{path}`: {source}")]
    Io {
        /// The operation.
        doing: &'static str,
        /// The file.
        path: String,
        /// The cause.
        source: io::Error,
    },
}

impl BuildError {
    pub(super) fn io(doing: &'static str, path: &Path, source: io::Error) -> Self {
        Self::Io { doing, path: visible(&path.display().to_string()), source }
    }

    pub(super) fn missing(what: impl Into<String>, command: impl Into<String>) -> Self {
        Self::Missing { what: what.into(), command: command.into() }
    }

    pub(super) fn failed(program: &str) -> Self {
        Self::Failed { program: program.to_owned() }
    }
}
