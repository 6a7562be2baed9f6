//! A registered tool.

use super::origin::Origin;
use crate::execution::share::Share;
use crate::execution::{Factory, owner};
use crate::tool::{Definition, Digest};
use std::fmt;
use std::sync::Arc;

/// A registered tool: its definition and the factory that creates an instance per call.
#[derive(Clone)]
pub struct Registered {
    pub(super) definition: Definition,
    factory: Factory,
    pub(super) origin: Origin,
    owner: Digest,
    queue: Arc<Share>,
    turns: Arc<Share>,
}

impl fmt::Debug for Registered {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Registered")
            .field("name", &self.definition.name())
            .field("origin", &self.origin)
            .finish_non_exhaustive()
    }
}

impl Registered {
    /// Creates the entries of a plugin's tools.
    pub(crate) fn from_plugin(
        origin: &Origin,
        tools: Vec<(Definition, Factory)>,
    ) -> Vec<Arc<Self>> {
        let entry = |(definition, factory)| Self::unlisted(definition, factory, origin.clone());
        tools.into_iter().map(entry).collect()
    }

    /// Creates a tool outside any registry, which cannot be called by name.
    pub(crate) fn unlisted(definition: Definition, factory: Factory, origin: Origin) -> Arc<Self> {
        let owner =
            origin.digest().unwrap_or_else(|| Digest::of(definition.name().as_str().as_bytes()));
        let queue = owner::queue().share(owner);
        let turns = owner::turns().share(owner);
        Arc::new(Self { definition, factory, origin, owner, queue, turns })
    }

    /// Returns the tool's definition.
    #[must_use]
    pub fn definition(&self) -> &Definition {
        &self.definition
    }

    /// Creates a new instance.
    #[must_use]
    pub fn instantiate(&self) -> Box<dyn crate::execution::Tool> {
        (self.factory)()
    }

    /// Returns the tool's origin.
    #[must_use]
    pub fn origin(&self) -> &Origin {
        &self.origin
    }

    /// Returns the owner to whom the tool's calls are charged: its plugin, or the native tool
    /// itself.
    pub(crate) fn owner(&self) -> Digest {
        self.owner
    }

    /// Returns the owner's share of the queue slots.
    pub(crate) fn queue(&self) -> &Arc<Share> {
        &self.queue
    }

    /// Returns the owner's share of the turns to compute.
    #[doc(hidden)]
    pub fn turns(&self) -> &Arc<Share> {
        &self.turns
    }
}
