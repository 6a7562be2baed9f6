//! The five classes of side effect.

use std::fmt;
use std::str::FromStr;

/// The most that a tool can do to the world, by capability. The order is the order of risk.
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
    /// Every class, in the order of risk.
    pub const ALL: [Self; 5] = [Self::None, Self::Read, Self::Write, Self::Execute, Self::Network];

    /// The name used in configuration, events and results.
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

    /// What a tool of this class may do with the files of the workspace.
    pub(crate) fn files(self) -> FileAccess {
        match self {
            Self::None | Self::Network => FileAccess::None,
            Self::Read => FileAccess::Read,
            Self::Write | Self::Execute => FileAccess::ReadWrite,
        }
    }
}

/// What may be done with the files of the workspace.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum FileAccess {
    /// Nothing.
    None,
    /// They are read.
    Read,
    /// They are read and changed.
    ReadWrite,
}

impl fmt::Display for SideEffects {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

/// A text that names no class.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is not a class of side effects; the classes are none, read, write, execute and network")]
pub struct UnknownSideEffects(String);

impl FromStr for SideEffects {
    type Err = UnknownSideEffects;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        Self::ALL
            .into_iter()
            .find(|class| class.as_str() == text)
            .ok_or_else(|| UnknownSideEffects(text.chars().take(64).collect()))
    }
}
