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
}

impl Cost {
    fn plus(self, other: Self) -> Self {
        Self {
            instances: self.instances.saturating_add(other.instances),
            parts: self.parts.saturating_add(other.parts),
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
}

impl Instances {
    /// Adds parts that the engine processes once for each instance.
    pub(super) fn spend(&mut self, parts: u32) {
        self.own = self.own.plus(Cost { instances: 0, parts: parts.into() });
    }

    pub(super) fn core(&mut self, instance: &Instance<'_>) {
        self.own = self.own.plus(match instance {
            Instance::Instantiate { args, .. } => {
                Cost { instances: 1, parts: 1 + args.len() as u64 }
            }
            // A bundle of exports is a list of names and does not exist at run time.
            Instance::FromExports(exports) => {
                Cost { instances: 0, parts: 1 + exports.len() as u64 }
            }
        });
    }

    pub(super) fn component(
        &mut self,
        instance: &ComponentInstance<'_>,
    ) -> Result<(), PrecheckError> {
        let cost = match instance {
            ComponentInstance::FromExports(exports) => {
                Cost { instances: 0, parts: 1 + exports.len() as u64 }
            }
            ComponentInstance::Instantiate { component_index, args } => {
                let inside = self.get(*component_index).ok_or(PrecheckError::ForeignComponent)?;
                inside.plus(Cost { instances: 1, parts: 1 + args.len() as u64 })
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
        Cap::Parts.check(self.own.parts)
    }
}
