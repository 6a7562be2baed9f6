//! The approvals of plugin files: which of them the host may offer to a model.

use super::approval::{NotApproved, PluginApproval};
use super::plugin::Plugin;
use crate::tool::Digest;
use std::path::{Path, PathBuf};

/// The approvals of an operator. The host asks for that of each plugin file; shipped plugins and
/// native tools need none.
///
/// The methods are called on the threads that load plugins, and must not block for long.
pub trait Approvals: Send + Sync {
    /// Called before each scan of the plugin files, so that changed approvals can be read.
    fn scan_begins(&self) {}

    /// Says whether these bytes may be compiled and describe themselves, in a sandbox without
    /// files. Called before anything of them runs. Default: they may.
    ///
    /// # Errors
    ///
    /// [`NotApproved`] if they may not: the file is rejected for that reason.
    fn check_bytes(&self, bytes: &PluginBytes<'_>) -> Result<(), NotApproved> {
        let _ = bytes;
        Ok(())
    }

    /// Returns the approval of a plugin that has described itself.
    fn of(&self, plugin: &Plugin) -> PluginApproval;

    /// Says why these bytes are not approved, for a file that cannot be loaded for want of a grant.
    /// Default: nothing is known of it.
    fn refusal_of_bytes(&self, bytes: &PluginBytes<'_>) -> Option<NotApproved> {
        let _ = bytes;
        None
    }

    /// Says how a file that is no plugin differs from an approved one of its name, in words that
    /// begin a sentence, such as `it has changed since it was approved`. A person then learns first
    /// that the file was replaced. `digest` is `None` if the file cannot be read as a component.
    /// Default: nothing is known of it.
    fn change_of(&self, name: &str, path: &Path, digest: Option<Digest>) -> Option<String> {
        let _ = (name, path, digest);
        None
    }

    /// Returns the files that hold the approvals. A watching host scans again when one of them
    /// changes. Default: none.
    fn files(&self) -> Vec<PathBuf> {
        Vec::new()
    }
}

/// The bytes of a plugin file.
#[derive(Debug, Clone, Copy)]
#[non_exhaustive]
pub struct PluginBytes<'a> {
    /// The plugin's name: its file name without `.wasm`.
    pub name: &'a str,
    /// The path of the file.
    pub path: &'a Path,
    /// The SHA-256 of the bytes.
    pub digest: Digest,
}

/// The approvals of a host without an operator's: everything that it was told to load is approved.
pub(crate) struct AllApproved;

impl Approvals for AllApproved {
    fn of(&self, _: &Plugin) -> PluginApproval {
        PluginApproval::Approved
    }
}
