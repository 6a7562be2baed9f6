//! A loaded plugin.

use super::approval::PluginApproval;
use super::rejected::RegistrationError;
use crate::registry::{Origin, Registered, Source};
use crate::sandbox::{Freshness, Import, LeftOut, PluginSettings, Prepared, UnusableNames, World};
use crate::tool::offer::Offer;
use crate::tool::{Definition, Digest};
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// A loaded plugin.
#[derive(Clone)]
pub struct Plugin {
    pub(super) name: Arc<str>,
    pub(super) file: String,
    pub(super) path: Option<PathBuf>,
    pub(super) source: Source,
    pub(super) prepared: Arc<Prepared>,
    /// The tools as sessions see them; none if they cannot have the names of the settings.
    pub(super) tools: Vec<Arc<Registered>>,
    pub(super) names: Result<(), UnusableNames>,
    pub(super) approval: PluginApproval,
    /// The settings of the plugin, if there are any.
    pub(super) settings: Option<Arc<PluginSettings>>,
}

impl fmt::Debug for Plugin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Plugin")
            .field("name", &self.name)
            .field("file", &self.file)
            .field("prepared", &self.prepared)
            .finish_non_exhaustive()
    }
}

impl Plugin {
    /// Returns the plugin's name: its file name without `.wasm`.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns the plugin's location in printable form.
    #[must_use]
    pub fn file(&self) -> &str {
        &self.file
    }

    /// Returns the plugin's file, or `None` for a shipped plugin.
    #[must_use]
    pub fn path(&self) -> Option<&Path> {
        self.path.as_deref()
    }

    /// Returns the SHA-256 of the plugin's bytes.
    #[must_use]
    pub fn digest(&self) -> Digest {
        self.prepared.digest()
    }

    /// Returns the plugin's tools as sessions see them, in the order of their definitions. A plugin
    /// that is rejected because of its settings has none.
    #[must_use]
    pub fn tools(&self) -> &[Arc<Registered>] {
        &self.tools
    }

    /// Returns the definitions of the plugin's tools, under the names that the plugin gave them.
    #[must_use]
    pub fn definitions(&self) -> &[Definition] {
        self.prepared.definitions()
    }

    /// Returns the plugin's documents and prompts.
    #[must_use]
    pub fn offer(&self) -> &Offer {
        self.prepared.offer()
    }

    /// Returns true if a document or template of the plugin has this URI.
    #[must_use]
    pub fn has_document(&self, uri: &str) -> bool {
        self.prepared.documents.has(uri)
    }

    /// Returns the number of bytes that [`has_document`](Self::has_document) reads for this URI at
    /// most.
    #[doc(hidden)]
    #[must_use]
    pub fn document_search_cost(&self, uri: &str) -> usize {
        self.prepared.documents.search_cost(uri)
    }

    /// Returns the origin of the plugin's documents and prompts.
    pub(crate) fn origin(&self) -> Origin {
        Origin::Plugin {
            name: self.name.clone(),
            digest: self.prepared.digest(),
            source: self.source.clone(),
        }
    }

    /// Returns the settings of the plugin, if there are any.
    pub(crate) fn settings(&self) -> Option<&Arc<PluginSettings>> {
        self.settings.as_ref()
    }

    pub(crate) fn prepared(&self) -> &Arc<Prepared> {
        &self.prepared
    }

    /// Returns what is granted to the plugin beyond the classes of its tools, one grant on each
    /// line.
    #[must_use]
    pub fn grants(&self) -> Vec<String> {
        self.prepared.grants()
    }

    /// Returns the plugin's imports.
    #[must_use]
    pub fn imports(&self) -> &[Import] {
        self.prepared.imports()
    }

    /// Returns the world that the plugin was loaded as.
    #[must_use]
    pub fn world(&self) -> &World {
        self.prepared.world()
    }

    /// Returns the exported functions that are no tools, of a component of another world.
    #[must_use]
    pub fn left_out(&self) -> &[LeftOut] {
        self.prepared.left_out()
    }

    /// Returns the plugin's approval.
    #[must_use]
    pub fn approval(&self) -> &PluginApproval {
        &self.approval
    }

    /// Returns an error if nothing of the plugin may be offered, or if its tools cannot have the
    /// names of its settings.
    pub(super) fn check_offered(&self) -> Result<(), RegistrationError> {
        match &self.approval {
            PluginApproval::Approved | PluginApproval::ThisRun => {
                self.names.as_ref().map_err(RegistrationError::name_taken).copied()
            }
            PluginApproval::Missing(why) => Err(RegistrationError::from(&**why)),
        }
    }

    /// Returns whether the plugin was compiled or cached.
    #[must_use]
    pub fn freshness(&self) -> Freshness {
        self.prepared.freshness()
    }
}

/// Returns true if two plugins are the same prepared code.
pub(super) fn is_same_code(one: &Plugin, other: &Plugin) -> bool {
    Arc::ptr_eq(&one.prepared, &other.prepared)
}
