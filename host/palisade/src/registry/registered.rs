//! A registered tool.

use super::error::RegisterError;
use super::origin::Origin;
use crate::execution::catch_panic::panic_text;
use crate::execution::share::Share;
use crate::execution::{Factory, are_distinct, owner};
use crate::tool::text::cut;
use crate::tool::{Definition, Digest};
use std::collections::BTreeMap;
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

/// A registered tool: its definition and the factory that creates an instance per call.
#[derive(Clone)]
pub struct Registered {
    pub(super) definition: Definition,
    factory: Factory,
    pub(super) origin: Origin,
    grants: Arc<[String]>,
    role: Role,
    owner: Digest,
    queue: Arc<Share>,
    turns: Arc<Share>,
}

/// The thing that a call of the entry runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Role {
    /// A tool.
    Tool,
    /// A document or prompt of a plugin, which is in no registry and has no name of its own.
    Offering,
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
    /// Creates the entries of a plugin's tools, with what is granted to the plugin.
    pub(crate) fn from_plugin(
        origin: &Origin,
        tools: Vec<(Definition, Factory)>,
        grants: &[String],
    ) -> Vec<Arc<Self>> {
        let grants: Arc<[String]> = grants.into();
        let entry = |(definition, factory)| {
            Self::new(definition, factory, origin.clone(), Role::Tool, grants.clone())
        };
        tools.into_iter().map(entry).collect()
    }

    /// Creates the entry of a native tool. Its factory is called twice, to see that it returns a
    /// new instance each time.
    pub(crate) fn native(factory: Factory) -> Result<Arc<Self>, RegisterError> {
        let tried = catch_unwind(AssertUnwindSafe(|| {
            let (first, second) = (factory(), factory());
            (first.definition().clone(), are_distinct(&*first, &*second))
        }));
        match tried {
            Ok((definition, true)) => Ok(Self::tool(definition, factory, Origin::Native)),
            Ok((definition, false)) => {
                Err(RegisterError::SharedInstance { name: definition.name().to_string() })
            }
            Err(panic) => {
                let message = cut(panic_text(&*panic).unwrap_or("no message"), 512).to_owned();
                Err(RegisterError::Panicked { message })
            }
        }
    }

    /// Creates the entry of a tool.
    pub(crate) fn tool(definition: Definition, factory: Factory, origin: Origin) -> Arc<Self> {
        Self::new(definition, factory, origin, Role::Tool, Arc::default())
    }

    /// Creates an entry outside any registry, which cannot be called by name.
    pub(crate) fn offering(definition: Definition, factory: Factory, origin: Origin) -> Arc<Self> {
        Self::new(definition, factory, origin, Role::Offering, Arc::default())
    }

    fn new(
        definition: Definition,
        factory: Factory,
        origin: Origin,
        role: Role,
        grants: Arc<[String]>,
    ) -> Arc<Self> {
        let owner =
            origin.digest().unwrap_or_else(|| Digest::of(definition.name().as_str().as_bytes()));
        let shared = owner::owner_of(owner);
        let queue = owner::queue().share_of(&shared);
        let turns = owner::turns().share_of(&shared);
        Arc::new(Self { definition, factory, origin, grants, role, owner, queue, turns })
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

    /// Returns what is granted to the tool's plugin beyond the classes of its tools, one grant on
    /// each line.
    #[must_use]
    pub fn grants(&self) -> &[String] {
        &self.grants
    }

    /// Returns the value for this tool among those by tools' names: that of its name with the
    /// plugin's, or else of its name alone.
    pub(crate) fn rule_in<'m, V>(&self, rules: &'m BTreeMap<String, V>) -> Option<&'m V> {
        // Few tools have such rules, and a call should not build a name for nothing.
        if rules.is_empty() {
            return None;
        }
        let name = self.definition.name().as_str();
        let full = rules.get(&format!("{}/{name}", self.origin.rule_name()));
        full.or_else(|| rules.get(name))
    }

    pub(crate) fn role(&self) -> Role {
        self.role
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
