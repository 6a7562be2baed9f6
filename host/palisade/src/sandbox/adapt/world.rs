//! The world that the host expects a plugin to have.

use super::docs::Docs;
use crate::tool::{Digest, SideEffects};
use std::sync::Arc;

/// The world that the host expects a plugin to have. The operator decides it, not the plugin.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum World {
    /// `palisade:tool/plugin`: the plugin describes its own tools.
    #[default]
    Tool,
    /// Any other world: the exported functions become tools.
    Functions(Arc<Adaptation>),
}

impl World {
    /// Returns the digest under which the description of a plugin is kept, which depends on what
    /// the operator has said as well.
    pub(crate) fn description_digest(&self, plugin: Digest) -> Digest {
        match self {
            Self::Tool => plugin,
            Self::Functions(adaptation) => {
                let Adaptation { class, docs } = &**adaptation;
                Digest::of(format!("adapted {plugin} {class} {docs:?}").as_bytes())
            }
        }
    }
}

/// How the functions of a component become tools.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Adaptation {
    class: SideEffects,
    docs: Docs,
}

impl Adaptation {
    /// Creates an adaptation without descriptions of the functions. The sandbox of a call holds
    /// what this class allows, whatever the component does.
    #[must_use]
    pub fn new(class: SideEffects) -> Self {
        Self { class, docs: Docs::default() }
    }

    /// Sets the descriptions of the functions. They take precedence over those in the component.
    #[must_use]
    pub fn with_docs(self, docs: Docs) -> Self {
        Self { docs, ..self }
    }

    /// Returns the class of all tools.
    #[must_use]
    pub fn class(&self) -> SideEffects {
        self.class
    }

    /// Returns the descriptions of the functions.
    #[must_use]
    pub fn docs(&self) -> &Docs {
        &self.docs
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn description_is_kept_for_its_class_and_docs_only() {
        let plugin = Digest::of(b"a component");
        let of = |adaptation: Adaptation| {
            World::Functions(Arc::new(adaptation)).description_digest(plugin)
        };
        let none = of(Adaptation::new(SideEffects::None));
        assert_eq!(World::Tool.description_digest(plugin), plugin);
        assert_eq!(none, of(Adaptation::new(SideEffects::None)));
        let docs = Docs::default().with(Some("a:b/c"), "f", "Does it.");
        let others = [
            plugin,
            of(Adaptation::new(SideEffects::Read)),
            of(Adaptation::new(SideEffects::None).with_docs(docs)),
        ];
        assert!(others.iter().all(|other| *other != none));
    }
}
