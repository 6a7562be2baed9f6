//! A count of the instances that a component would create, without creating them. A component that
//! instantiates its child twice over thirty levels would create 2^30.

use super::cap::Cap;
use super::error::PrecheckError;
use wasmparser::{ComponentInstance, Instance};

/// The cost of one instantiation of a component, with nested instantiations multiplied out.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Cost {
    instances: u64,
    parts: u64,
    core: CoreCost,
}

impl Cost {
    fn plus(self, other: Self) -> Self {
        Self {
            instances: self.instances.saturating_add(other.instances),
            parts: self.parts.saturating_add(other.parts),
            core: self.core.plus(other.core),
        }
    }
}

/// The data, memories and tables that the engine makes for instances of core modules.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct CoreCost {
    /// The engine's data, in bytes.
    pub(super) data: u64,
    pub(super) memories: u64,
    pub(super) tables: u64,
}

impl CoreCost {
    pub(super) fn plus(self, other: Self) -> Self {
        Self {
            data: self.data.saturating_add(other.data),
            memories: self.memories.saturating_add(other.memories),
            tables: self.tables.saturating_add(other.tables),
        }
    }

    /// Returns the greater of each quantity.
    pub(super) fn max(self, other: Self) -> Self {
        Self {
            data: self.data.max(other.data),
            memories: self.memories.max(other.memories),
            tables: self.tables.max(other.tables),
        }
    }
}

/// The instance counts of one component while the walk is inside it. Each component is counted
/// once, at its end, and every instantiation of it adds the total.
#[derive(Default)]
pub(super) struct Instances {
    own: Cost,
    /// The component index space; `None` for a component that comes from outside.
    components: Vec<Option<Cost>>,
    /// The core module index space: the cost of each instance.
    modules: Vec<Option<CoreCost>>,
}

impl Instances {
    /// Adds parts that the engine processes once for each instance.
    pub(super) fn spend(&mut self, parts: u32) {
        self.own = self.own.plus(Cost { parts: parts.into(), ..Cost::default() });
    }

    /// Adds an instance of a core module. A module from outside costs at most as much as the most
    /// expensive module of the whole file.
    pub(super) fn core(&mut self, instance: &Instance<'_>, most: CoreCost) {
        self.own = self.own.plus(match instance {
            Instance::Instantiate { module_index, args } => {
                let core = self.module(*module_index).unwrap_or(most);
                Cost { instances: 1, parts: 1 + args.len() as u64, core }
            }
            // A bundle of exports is a list of names and does not exist at run time.
            Instance::FromExports(exports) => {
                Cost { parts: 1 + exports.len() as u64, ..Cost::default() }
            }
        });
    }

    /// Adds a core module with the cost of each of its instances, or `None` for one that comes from
    /// outside.
    pub(super) fn push_module(&mut self, cost: Option<CoreCost>) {
        self.modules.push(cost);
    }

    /// Returns the cost of each instance of a core module.
    pub(super) fn module(&self, index: u32) -> Option<CoreCost> {
        self.modules.get(index as usize).copied().flatten()
    }

    pub(super) fn component(
        &mut self,
        instance: &ComponentInstance<'_>,
    ) -> Result<(), PrecheckError> {
        let cost = match instance {
            ComponentInstance::FromExports(exports) => {
                Cost { parts: 1 + exports.len() as u64, ..Cost::default() }
            }
            ComponentInstance::Instantiate { component_index, args } => {
                let inside = self.get(*component_index).ok_or(PrecheckError::ForeignComponent)?;
                inside.plus(Cost { instances: 1, parts: 1 + args.len() as u64, ..Cost::default() })
            }
        };
        self.own = self.own.plus(cost);
        Ok(())
    }

    /// Adds a nested component that is complete.
    pub(super) fn defined(&mut self, inner: &Self) {
        self.components.push(Some(inner.own));
    }

    /// Adds a component of unknown content: an import, or an export of an instance.
    pub(super) fn foreign(&mut self) {
        self.components.push(None);
    }

    /// Adds another index for a known component.
    pub(super) fn again(&mut self, index: u32) {
        let found = self.get(index);
        self.push(found);
    }

    pub(super) fn push(&mut self, component: Option<Cost>) {
        self.components.push(component);
    }

    pub(super) fn get(&self, index: u32) -> Option<Cost> {
        self.components.get(index as usize).copied().flatten()
    }

    /// Checks the totals of the outermost component against the caps.
    pub(super) fn check(&self) -> Result<(), PrecheckError> {
        Cap::Instances.check(self.own.instances)?;
        Cap::Parts.check(self.own.parts)?;
        Cap::InstanceData.check(self.own.core.data)?;
        Cap::AllMemories.check(self.own.core.memories)?;
        Cap::AllTables.check(self.own.core.tables)
    }
}
