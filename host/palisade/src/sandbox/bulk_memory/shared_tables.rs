//! The tables that core modules share, and the way in which calls of the host through them are
//! checked.

use super::error::SliceError;
use super::sections::{Sections, id};
use wasmparser::{
    BinaryReader, CompositeInnerType, ImportSectionReader, TypeRef, TypeSectionReader, ValType,
};

/// The place at which calls through a table that another module has filled are checked. A module
/// never gives its own table an unchecked function.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum SharedTables {
    /// Before the call, in each module that exports a table. Segments for tables of other modules
    /// keep the imported functions: the engine takes some 1,300 instructions more for each added
    /// function in such a segment, at each instantiation. The components of most toolchains have
    /// this form: a module of tiny functions exports the table, and one without code fills it.
    CheckedAtCalls,
    /// In the function that is called: segments for tables of other modules get added functions
    /// too. So it is where functions can reach the tables of other modules in other ways, such as
    /// in components that are linked at run time.
    CheckedInFunctions,
}

impl SharedTables {
    /// Returns the place for a component, whose other parts are passed over. Components inside it
    /// are judged with it.
    pub(super) fn of(component: &[u8]) -> Result<Self, SliceError> {
        match is_mixed(component)? {
            true => Ok(Self::CheckedInFunctions),
            false => Ok(Self::CheckedAtCalls),
        }
    }
}

/// Returns true if a core module with code can get a function of another one's table in a table,
/// an argument or a global.
fn is_mixed(component: &[u8]) -> Result<bool, SliceError> {
    let mut inside = vec![component];
    while let Some(component) = inside.pop() {
        let mut sections = Sections::new(component)?;
        while let Some(section) = sections.next()? {
            match section.id {
                id::CORE_MODULE if shares_functions(section.content)? => return Ok(true),
                id::COMPONENT => inside.push(section.content),
                _ => {}
            }
        }
    }
    Ok(false)
}

fn shares_functions(module: &[u8]) -> Result<bool, SliceError> {
    let (mut imports_table, mut has_code) = (false, false);
    let mut sections = Sections::new(module)?;
    while let Some(section) = sections.next()? {
        let reader = BinaryReader::new(section.content, 0);
        match section.id {
            id::TYPES => {
                for group in TypeSectionReader::new(reader)? {
                    for ty in group?.types() {
                        let CompositeInnerType::Func(ty) = &ty.composite_type.inner else {
                            return Ok(true);
                        };
                        let mut values = ty.params().iter().chain(ty.results());
                        if values.any(|value: &ValType| value.is_reference_type()) {
                            return Ok(true);
                        }
                    }
                }
            }
            id::IMPORTS => {
                for import in ImportSectionReader::new(reader)?.into_imports() {
                    match import?.ty {
                        TypeRef::Table(_) => imports_table = true,
                        TypeRef::Global(global) if global.content_type.is_reference_type() => {
                            return Ok(true);
                        }
                        _ => {}
                    }
                }
            }
            id::CODE => has_code = true,
            _ => {}
        }
    }
    Ok(imports_table && has_code)
}
