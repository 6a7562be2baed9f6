//! The pre-compilation check of a plugin: one pass over its bytes, linear in their size, that
//! expands nothing. No compiler sees bytes that did not pass.

mod cap;
mod error;
mod feature;
mod feature_check;
mod foreign;
mod header;
mod instances;
mod module;
mod tally;
#[cfg(test)]
mod tests;
mod types;

pub use cap::Cap;
pub use error::PrecheckError;
pub use feature::Feature;
pub use foreign::Foreign;

use instances::{CoreCost, Instances};
use tally::Tally;
use types::Scopes;
use wasmparser::{
    BinaryReader, ComponentAlias, ComponentExternalKind, ComponentOuterAliasKind, ComponentTypeRef,
    ComponentTypeSectionReader, Encoding, Parser, Payload, TypeBounds,
};

/// Checks the bytes of a plugin before compilation.
///
/// Accepts a binary component of bounded size, nesting and counts that uses no disabled feature and
/// whose instances fit into one call. The engine validates the component later, and its imports are
/// checked after that.
pub(super) fn check(bytes: &[u8]) -> Result<(), PrecheckError> {
    header::check(bytes)?;
    let mut walk = Walk {
        bytes,
        tally: Tally::default(),
        scopes: Scopes::default(),
        open: Vec::new(),
        most: CoreCost::default(),
    };
    Parser::new(0).parse_all(bytes).try_for_each(|payload| walk.take(&payload?))
}

/// A component or core module that the walk has entered and not left.
enum Open {
    Component(Instances),
    /// A core module, with the cost of each of its instances so far. It cannot contain another
    /// definition.
    Module(CoreCost),
}

struct Walk<'a> {
    bytes: &'a [u8],
    tally: Tally,
    scopes: Scopes,
    open: Vec<Open>,
    /// The most that an instance of any core module costs.
    most: CoreCost,
}

impl Walk<'_> {
    fn take(&mut self, payload: &Payload<'_>) -> Result<(), PrecheckError> {
        match payload {
            Payload::Version { encoding, .. } => self.enter(*encoding),
            Payload::End(_) => self.leave(),
            Payload::CustomSection(section) => {
                self.tally.add(Cap::CustomSections, section.data().len())?;
                module::names(section)
            }
            Payload::UnknownSection { id, range, .. } => {
                Err(PrecheckError::UnknownSection { id: *id, at: range.start })
            }
            payload => match self.open.last_mut() {
                Some(Open::Module(cost)) => {
                    *cost = cost.plus(module::core_cost(payload));
                    module::take(payload, &mut self.tally)
                }
                _ => self.part(payload),
            },
        }
    }

    fn enter(&mut self, encoding: Encoding) -> Result<(), PrecheckError> {
        if encoding == Encoding::Module {
            self.open.push(Open::Module(CoreCost::default()));
            return self.tally.add(Cap::Modules, 1usize);
        }
        self.open.push(Open::Component(Instances::default()));
        self.scopes.enter();
        Cap::Nesting.check(self.open.len())?;
        self.tally.add(Cap::Components, 1usize)
    }

    fn leave(&mut self) -> Result<(), PrecheckError> {
        let done = match self.open.pop() {
            Some(Open::Component(done)) => done,
            Some(Open::Module(cost)) => {
                self.most = self.most.max(cost);
                self.instances()?.push_module(Some(cost));
                return Ok(());
            }
            None => return Ok(()),
        };
        self.scopes.leave();
        match self.open.last_mut() {
            Some(Open::Component(around)) => {
                around.defined(&done);
                Ok(())
            }
            _ => done.check(),
        }
    }

    /// Checks a section of a component.
    fn part(&mut self, payload: &Payload<'_>) -> Result<(), PrecheckError> {
        match payload {
            Payload::ComponentTypeSection(section) => self.types(section),
            Payload::CoreTypeSection(section) => {
                self.tally.add(Cap::Types, section.count())?;
                section
                    .clone()
                    .into_iter()
                    .try_for_each(|found| module::declared(&found?, &mut self.tally))
            }
            Payload::ComponentImportSection(section) => {
                self.tally.add(Cap::Imports, section.count())?;
                section.clone().into_iter().try_for_each(|import| self.named(import?.ty))
            }
            Payload::ComponentExportSection(section) => {
                self.tally.add(Cap::Exports, section.count())?;
                section.clone().into_iter().try_for_each(|export| {
                    let export = export?;
                    self.exported(export.kind, export.index)
                })
            }
            Payload::ComponentAliasSection(section) => {
                self.tally.add(Cap::Aliases, section.count())?;
                section.clone().into_iter().try_for_each(|alias| self.alias(&alias?))
            }
            Payload::ComponentCanonicalSection(section) => {
                self.tally.add(Cap::Functions, section.count())?;
                self.instances()?.spend(section.count());
                section
                    .clone()
                    .into_iter()
                    .try_for_each(|function| feature_check::canonical(&function?))
            }
            Payload::InstanceSection(section) => {
                let most = self.most;
                section.clone().into_iter().try_for_each(|instance| {
                    self.instances()?.core(&instance?, most);
                    Ok(())
                })
            }
            Payload::ComponentInstanceSection(section) => section
                .clone()
                .into_iter()
                .try_for_each(|instance| self.instances()?.component(&instance?)),
            _ => Ok(()),
        }
    }

    /// Returns the instance counts of the innermost open component.
    fn instances(&mut self) -> Result<&mut Instances, PrecheckError> {
        match self.open.last_mut() {
            Some(Open::Component(instances)) => Ok(instances),
            _ => Err(PrecheckError::malformed(0, "a section stands outside of any component")),
        }
    }

    fn types(&mut self, section: &ComponentTypeSectionReader<'_>) -> Result<(), PrecheckError> {
        let start = section.original_position();
        let end = section.range().end;
        let bytes = self
            .bytes
            .get(start..end)
            .ok_or_else(|| PrecheckError::malformed(start, "a section has no end"))?;
        types::scan(
            BinaryReader::new(bytes, start),
            section.count(),
            &mut self.scopes,
            &mut self.tally,
        )
    }

    /// Counts an import. An imported component or type takes an entry in its index space.
    fn named(&mut self, ty: ComponentTypeRef) -> Result<(), PrecheckError> {
        self.instances()?.spend(1);
        match ty {
            ComponentTypeRef::Component(_) => self.instances()?.foreign(),
            ComponentTypeRef::Module(_) => self.instances()?.push_module(None),
            ComponentTypeRef::Type(TypeBounds::Eq(index)) => self.scopes.again(0, index),
            ComponentTypeRef::Type(TypeBounds::SubResource) => self.scopes.opaque(),
            _ => {}
        }
        Ok(())
    }

    fn exported(&mut self, kind: ComponentExternalKind, index: u32) -> Result<(), PrecheckError> {
        self.instances()?.spend(1);
        match kind {
            ComponentExternalKind::Component => self.instances()?.again(index),
            ComponentExternalKind::Module => {
                let instances = self.instances()?;
                instances.push_module(instances.module(index));
            }
            ComponentExternalKind::Type => self.scopes.again(0, index),
            _ => {}
        }
        Ok(())
    }

    fn alias(&mut self, alias: &ComponentAlias<'_>) -> Result<(), PrecheckError> {
        self.instances()?.spend(1);
        match *alias {
            ComponentAlias::InstanceExport { kind: ComponentExternalKind::Component, .. } => {
                self.instances()?.foreign();
            }
            ComponentAlias::InstanceExport { kind: ComponentExternalKind::Module, .. } => {
                self.instances()?.push_module(None);
            }
            ComponentAlias::InstanceExport { kind: ComponentExternalKind::Type, .. } => {
                self.scopes.opaque();
            }
            ComponentAlias::Outer { kind: ComponentOuterAliasKind::Type, count, index } => {
                self.scopes.again(count, index);
            }
            ComponentAlias::Outer { kind: ComponentOuterAliasKind::Component, count, index } => {
                let found = self.around(count).and_then(|around| around.get(index));
                self.instances()?.push(found);
            }
            ComponentAlias::Outer { kind: ComponentOuterAliasKind::CoreModule, count, index } => {
                let found = self.around(count).and_then(|around| around.module(index));
                self.instances()?.push_module(found);
            }
            _ => {}
        }
        Ok(())
    }

    /// Returns the enclosing component that is this many levels out.
    fn around(&self, count: u32) -> Option<&Instances> {
        match self.open.iter().rev().nth(count as usize)? {
            Open::Component(around) => Some(around),
            Open::Module(_) => None,
        }
    }
}
