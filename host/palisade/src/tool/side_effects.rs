//! The five classes of side effects.

use super::text::elided;
use std::fmt;
use std::str::FromStr;

/// The strongest effect that a tool's capabilities permit, in ascending order of risk.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum SideEffects {
    /// Pure computation: the sandbox holds no directory.
    None,
    /// Reads the workspace, mounted read-only.
    Read,
    /// Changes the workspace, mounted read-write.
    Write,
    /// Runs programs.
    Execute,
    /// Changes the state of other machines.
    Network,
}

impl SideEffects {
    /// All classes, in ascending order of risk.
    pub const ALL: [Self; 5] = [Self::None, Self::Read, Self::Write, Self::Execute, Self::Network];

    /// Returns the name used in configuration, events and results.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Read => "read",
            Self::Write => "write",
            Self::Execute => "execute",
            Self::Network => "network",
        }
    }

    /// Returns the access of this class to the files of the workspace.
    pub(crate) fn files(self) -> FileAccess {
        match self {
            Self::None | Self::Network => FileAccess::None,
            Self::Read => FileAccess::Read,
            Self::Write | Self::Execute => FileAccess::ReadWrite,
        }
    }

    /// Returns whether this class sees any file of the workspace.
    pub(crate) fn sees_files(self) -> bool {
        match self.files() {
            FileAccess::None => false,
            FileAccess::Read | FileAccess::ReadWrite => true,
        }
    }
}

/// Access to the files of the workspace.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum FileAccess {
    /// No access.
    None,
    /// Read-only access.
    Read,
    /// Read and write access.
    ReadWrite,
}

impl fmt::Display for SideEffects {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

/// An unknown class name.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "`{0}` is not a class of side effects; the classes are none, read, write, execute and network"
)]
pub struct UnknownSideEffects(String);

impl FromStr for SideEffects {
    type Err = UnknownSideEffects;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        Self::ALL
            .into_iter()
            .find(|class| class.as_str() == text)
            .ok_or_else(|| UnknownSideEffects(elided(text, 64)))
    }
}
