//! The errors of building guests. Each message is one line with advice.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

/// An error of building guests.
#[derive(Debug)]
pub(crate) enum Error {
    /// The target could not be found or made.
    Target(palisade_wasip2::Error),
    /// The guests do not compile; cargo has printed the errors to stderr.
    Guests {
        /// The requested packages or examples.
        names: Vec<String>,
    },
    /// Cargo succeeded, but a guest is missing.
    Missing {
        /// The expected path of the guest.
        path: PathBuf,
    },
    /// A plugin cannot be initialised in advance.
    Snapshot {
        /// The name of the plugin.
        name: &'static str,
        /// The reason.
        reason: String,
    },
    /// The published package must include the plugins, and this one does not.
    NoPlugins {
        /// The expected directory of the plugins.
        folder: PathBuf,
    },
}

impl Error {
    /// Returns the error of a file operation; `doing` is a verb such as `create`.
    pub(crate) fn io(doing: &str, path: &Path, source: io::Error) -> Self {
        Self::Target(palisade_wasip2::Error::io(doing, path, source))
    }
}

impl From<palisade_wasip2::Error> for Error {
    fn from(error: palisade_wasip2::Error) -> Self {
        Self::Target(error)
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Target(error) => error.fmt(f),
            Self::Guests { names } => {
                write!(
                    f,
                    "these guests do not compile for wasm32-wasip2, see below: {}",
                    names.join(", ")
                )
            }
            Self::Missing { path } => write!(
                f,
                "cargo built the guests but {} is missing: a guest is a library of crate type cdylib",
                path.display()
            ),
            Self::Snapshot { name, reason } => {
                write!(f, "the plugin {name} cannot be initialised in advance: {reason}")
            }
            Self::NoPlugins { folder } => {
                write!(
                    f,
                    "neither the sources of the plugins nor built ones are there: {} is empty",
                    folder.display()
                )
            }
        }
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Target(error) => error.source(),
            _ => None,
        }
    }
}
