//! A value of the settings, with its origin.

use std::fmt;
use std::path::PathBuf;

/// The source of a value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Origin {
    /// The program's default.
    Default,
    /// A file.
    File(PathBuf),
    /// An environment variable.
    Environment(&'static str),
    /// The command line.
    Flag(&'static str),
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Default => f.write_str("default"),
            Self::File(path) => write!(f, "{}", path.display()),
            Self::Environment(name) => f.write_str(name),
            Self::Flag(name) => f.write_str(name),
        }
    }
}

/// A value with its origin.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Value<T> {
    /// The effective value.
    pub value: T,
    /// Its origin.
    pub origin: Origin,
}

impl<T> Value<T> {
    /// Creates a value that is the program's default.
    pub(in crate::config) fn default(value: T) -> Self {
        Self { value, origin: Origin::Default }
    }

    /// Replaces the value if a stronger source gives one.
    pub fn set(&mut self, value: Option<T>, origin: impl FnOnce() -> Origin) {
        if let Some(value) = value {
            *self = Self { value, origin: origin() };
        }
    }
}
