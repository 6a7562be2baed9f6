//! A plugin that is ready to be called.

use super::imports::{self, Import};
use super::lazy_code::{CodeError, LazyCode};
use super::provenance::Freshness;
use crate::execution::OwnerShares;
use crate::execution::account::HeldDescription;
use crate::sandbox::adapt::World;
use crate::sandbox::description::LeftOut;
use crate::sandbox::guest_files::GuestFiles;
use crate::tool::offer::{DocumentIndex, Offer};
use crate::tool::{Definition, Digest, ToolPattern};
use std::fmt;
use std::sync::Arc;
use tokio_util::sync::CancellationToken;

/// A plugin that is compiled and described. Its code is linked, or remains on disk until the first
/// call.
pub struct Prepared {
    pub(crate) code: LazyCode,
    pub(crate) digest: Digest,
    pub(crate) imports: Vec<Import>,
    pub(crate) definitions: Vec<Definition>,
    pub(crate) offer: Offer,
    pub(crate) documents: DocumentIndex,
    pub(crate) left_out: Vec<LeftOut>,
    /// The memory of the description, which counts for as long as the plugin is loaded.
    pub(crate) description: HeldDescription,
    pub(crate) freshness: Freshness,
    /// The shares that all calls of the plugin use.
    pub(crate) owner: OwnerShares,
    /// The resources that the file systems of all calls of the plugin share.
    pub(crate) files: Arc<GuestFiles>,
}

impl fmt::Debug for Prepared {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Prepared")
            .field("digest", &self.digest)
            .field("freshness", &self.freshness)
            .finish_non_exhaustive()
    }
}

impl Prepared {
    /// Returns the tools, in the plugin's order.
    #[must_use]
    pub fn definitions(&self) -> &[Definition] {
        &self.definitions
    }

    /// Returns the resources and prompts.
    #[must_use]
    pub fn offer(&self) -> &Offer {
        &self.offer
    }

    /// Returns the functions that are no tools, of a component of another world.
    #[must_use]
    pub fn left_out(&self) -> &[LeftOut] {
        &self.left_out
    }

    /// Returns the world that the plugin was loaded as.
    #[must_use]
    pub fn world(&self) -> &World {
        self.code.world()
    }

    /// Returns the imports.
    #[must_use]
    pub fn imports(&self) -> &[Import] {
        &self.imports
    }

    /// Returns the SHA-256 digest of the plugin's bytes.
    #[must_use]
    pub fn digest(&self) -> Digest {
        self.digest
    }

    /// Returns the grants of the plugin, one on each line.
    #[must_use]
    pub fn grants(&self) -> Vec<String> {
        self.code.powers().map(|powers| powers.grants()).unwrap_or_default()
    }

    /// Returns true if the plugin can call other tools, as far as they are granted.
    pub(crate) fn calls_tools(&self) -> bool {
        imports::call_tools(&self.imports)
    }

    /// Returns the tools that the plugin may call.
    pub(crate) fn granted_tools(&self) -> Arc<[ToolPattern]> {
        self.code.powers().map(|powers| powers.tools()).unwrap_or_default()
    }

    /// Returns whether the code was compiled or taken from the cache.
    #[must_use]
    pub fn freshness(&self) -> Freshness {
        self.freshness
    }

    /// Returns true if calls use code that is not optimised.
    pub(crate) fn is_baseline(&self) -> bool {
        self.code.is_baseline(self.digest)
    }

    /// Compiles the optimised code, which later calls use. Blocks for a whole compilation.
    pub(crate) fn optimize(&self, cancel: &CancellationToken) -> Result<(), CodeError> {
        self.code.optimize(self.digest, cancel)
    }

    /// Loads the code, unless it is loaded. From then on neither the file nor the cache is needed.
    /// Blocks; must not be called in an async context.
    pub(crate) fn hold(&self) -> Result<(), String> {
        let lock = self.code.lock_blocking();
        self.code.load(self.digest, lock).map_err(|error| error.to_string())
    }
}
