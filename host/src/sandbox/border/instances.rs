//! How many instances come of a component: counted, never made. A component that instantiates its child twice over thirty levels has 2^30.

use super::{BorderRefused, Cap};
use wasmparser::{ComponentInstance, Instance};

/// What one instantiation of a component comes to, with everything inside it multiplied out.
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

/// The instances of one component, counted as it is walked through. Each component is counted once, at its end; whoever instantiates it adds the sum.
#[derive(Default)]
pub(super) struct Instances {
    own: Cost,
    /// The components of its index space; `None` for one that comes from outside.
    components: Vec<Option<Cost>>,
}

impl Instances {
    /// So many parts that are gone through once for each instance.
    pub(super) fn spend(&mut self, parts: u32) {
        self.own = self.own.plus(Cost { instances: 0, parts: parts.into() });
    }

    pub(super) fn core(&mut self, instance: &Instance<'_>) {
        self.own = self.own.plus(match instance {
            Instance::Instantiate { args, .. } => Cost { instances: 1, parts: 1 + args.len() as u64 },
            // A bundle of exports is a list of names, and nothing at run time.
            Instance::FromExports(exports) => Cost { instances: 0, parts: 1 + exports.len() as u64 },
        });
    }

    pub(super) fn component(&mut self, instance: &ComponentInstance<'_>) -> Result<(), BorderRefused> {
        let cost = match instance {
            ComponentInstance::FromExports(exports) => Cost { instances: 0, parts: 1 + exports.len() as u64 },
            ComponentInstance::Instantiate { component_index, args } => {
                let inside = self.get(*component_index).ok_or(BorderRefused::ForeignComponent)?;
                inside.plus(Cost { instances: 1, parts: 1 + args.len() as u64 })
            }
        };
        self.own = self.own.plus(cost);
        Ok(())
    }

    /// A component inside this one is complete.
    pub(super) fn defined(&mut self, inner: &Self) {
        self.components.push(Some(inner.own));
    }

    /// A component that somebody else brings.
    pub(super) fn foreign(&mut self) {
        self.components.push(None);
    }

    /// A second name for a component.
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

    /// Whether what comes of the outermost component is within the caps.
    pub(super) fn check(&self) -> Result<(), BorderRefused> {
        Cap::Instances.holds(self.own.instances)?;
        Cap::Parts.holds(self.own.parts)
    }
}
