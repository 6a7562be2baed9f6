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
    /// The engine's data of core instances, in bytes.
    data: u64,
}

impl Cost {
    fn plus(self, other: Self) -> Self {
        Self {
            instances: self.instances.saturating_add(other.instances),
            parts: self.parts.saturating_add(other.parts),
            data: self.data.saturating_add(other.data),
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
    /// The core module index space: the data of each instance, in bytes.
    modules: Vec<Option<u64>>,
}

impl Instances {
    /// Adds parts that the engine processes once for each instance.
    pub(super) fn spend(&mut self, parts: u32) {
        self.own = self.own.plus(Cost { parts: parts.into(), ..Cost::default() });
    }

    /// Adds an instance of a core module. One that comes from outside has at most the data of the
    /// module with the most data in the whole file.
    pub(super) fn core(&mut self, instance: &Instance<'_>, most_data: u64) {
        self.own = self.own.plus(match instance {
            Instance::Instantiate { module_index, args } => {
                let data = self.module(*module_index).unwrap_or(most_data);
                Cost { instances: 1, parts: 1 + args.len() as u64, data }
            }
            // A bundle of exports is a list of names and does not exist at run time.
            Instance::FromExports(exports) => {
                Cost { parts: 1 + exports.len() as u64, ..Cost::default() }
            }
        });
    }

    /// Adds a core module with the data of each of its instances, in bytes, or `None` for one that
    /// comes from outside.
    pub(super) fn push_module(&mut self, data: Option<u64>) {
        self.modules.push(data);
    }

    /// Returns the data of each instance of a core module.
    pub(super) fn module(&self, index: u32) -> Option<u64> {
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
                inside.plus(Cost { instances: 1, parts: 1 + args.len() as u64, data: 0 })
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
        Cap::InstanceData.check(self.own.data)
    }
}
