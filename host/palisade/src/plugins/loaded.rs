//! The result of loading.

use super::plugin::Plugin;
use super::rejected::Rejected;
use super::scan::DirectoryError;
use crate::registry::RegisterError;

/// A plugin that is found but not loaded: it is compiling or waits for that.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Compiling {
    /// The plugin's name.
    pub plugin: String,
    /// The plugin's file in printable form.
    pub file: String,
    /// Whether its bytes are approved, and so whether its tools may be offered.
    pub approval: BytesApproval,
}

impl Compiling {
    /// Returns the name for a model, which gets the names of approved plugins only.
    #[must_use]
    pub fn approved_name(self) -> Option<String> {
        match self.approval {
            BytesApproval::Approved => Some(self.plugin),
            BytesApproval::Missing => None,
        }
    }
}

/// The approval of the bytes of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BytesApproval {
    /// They are approved, or need no approval.
    Approved,
    /// They are not approved. The name of the file is no word that a person has approved, so it
    /// does not reach a model.
    Missing,
}

/// The result of loading.
#[derive(Debug, Default, Clone)]
pub struct Loaded {
    /// The loaded plugins.
    pub plugins: Vec<Plugin>,
    /// The rejected files.
    pub rejected: Vec<Rejected>,
}

/// The reason why nothing can be loaded.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LoadError {
    /// A directory cannot be read.
    #[error(transparent)]
    Directory(#[from] DirectoryError),
    /// A native tool has a name that is taken, or a factory that cannot be used.
    #[error(transparent)]
    Native(#[from] RegisterError),
}
