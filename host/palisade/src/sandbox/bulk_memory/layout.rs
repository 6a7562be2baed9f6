//! The facts about a core module that its function bodies do not state.

use super::error::SliceError;
use super::sections::{Section, Sections, id};
use super::shared_tables::SharedTables;
use std::collections::BTreeMap;
use wasmparser::{
    BinaryReader, CompositeInnerType, DataKind, DataSectionReader, ElementKind,
    ExportSectionReader, ExternalKind, FunctionSectionReader, ImportSectionReader, TypeRef,
    TypeSectionReader,
};

/// An imported function.
pub(super) struct Import {
    /// The index of its type.
    pub(super) ty: u32,
    /// The number of its parameters.
    pub(super) parameters: u32,
}

/// The facts about a core module that its function bodies do not state.
pub(super) struct Layout<'a> {
    /// The number of parameters of each type, or `None` for a type that is no function type.
    types: Vec<Option<u32>>,
    /// The type of each imported function. These have the lowest indices.
    imports: Vec<u32>,
    /// The number of imported tables, which have the lowest indices.
    imported_tables: u32,
    /// Whether other modules can fill a table of this one.
    exports_table: bool,
    tables: SharedTables,
    /// The type of each function that the module defines.
    functions: Vec<u32>,
    /// The size of each passive data segment. An active one is empty when code runs.
    passive: Vec<Option<u32>>,
    /// The contents of the sections that are read, by their numbers.
    sections: BTreeMap<u8, &'a [u8]>,
}

impl<'a> Layout<'a> {
    pub(super) fn of(module: &'a [u8], tables: SharedTables) -> Result<Self, SliceError> {
        let mut layout = Self {
            types: Vec::new(),
            imports: Vec::new(),
            imported_tables: 0,
            exports_table: false,
            tables,
            functions: Vec::new(),
            passive: Vec::new(),
            sections: BTreeMap::new(),
        };
        let mut sections = Sections::new(module)?;
        while let Some(section) = sections.next()? {
            if id::READ.contains(&section.id)
                && layout.sections.insert(section.id, section.content).is_some()
            {
                return Err(SliceError::TwoSections);
            }
            layout.take(&section)?;
        }
        Ok(layout)
    }

    fn take(&mut self, section: &Section<'a>) -> Result<(), SliceError> {
        let reader = BinaryReader::new(section.content, 0);
        match section.id {
            id::TYPES => {
                for group in TypeSectionReader::new(reader)? {
                    self.types.extend(group?.types().map(|ty| match &ty.composite_type.inner {
                        CompositeInnerType::Func(ty) => u32::try_from(ty.params().len()).ok(),
                        _ => None,
                    }));
                }
            }
            id::IMPORTS => {
                for import in ImportSectionReader::new(reader)?.into_imports() {
                    match import?.ty {
                        TypeRef::Func(ty) | TypeRef::FuncExact(ty) => self.imports.push(ty),
                        TypeRef::Table(_) => self.imported_tables += 1,
                        _ => {}
                    }
                }
            }
            id::FUNCTIONS => {
                for ty in FunctionSectionReader::new(reader)? {
                    self.functions.push(ty?);
                }
            }
            id::EXPORTS => {
                for export in ExportSectionReader::new(reader)? {
                    self.exports_table |= export?.kind == ExternalKind::Table;
                }
            }
            id::DATA => {
                for segment in DataSectionReader::new(reader)? {
                    let segment = segment?;
                    self.passive.push(match segment.kind {
                        DataKind::Passive => u32::try_from(segment.data.len()).ok(),
                        DataKind::Active { .. } => None,
                    });
                }
            }
            _ => {}
        }
        Ok(())
    }

    /// Returns the content of a section that is read.
    pub(super) fn section(&self, id: u8) -> Option<&'a [u8]> {
        self.sections.get(&id).copied()
    }

    /// Returns true if an element segment keeps the imported functions, because calls through its
    /// table are checked where they are made.
    pub(super) fn keeps_imports(&self, segment: &ElementKind<'_>) -> bool {
        let ElementKind::Active { table_index, .. } = segment else { return false };
        self.tables == SharedTables::CheckedAtCalls
            && table_index.unwrap_or(0) < self.imported_tables
    }

    /// Returns true if calls through a table can reach an imported function of another module.
    pub(super) fn checks_indirect_calls(&self) -> bool {
        self.tables == SharedTables::CheckedAtCalls && self.exports_table
    }

    /// Returns the number of parameters of the function with this index among the defined ones.
    pub(super) fn parameters(&self, function: usize) -> Result<u32, SliceError> {
        let ty = *self.functions.get(function).ok_or(SliceError::NoType)?;
        self.parameters_of(ty).ok_or(SliceError::NoType)
    }

    /// Returns the function of this index if it is imported.
    pub(super) fn import(&self, function: u32) -> Option<Import> {
        let ty = *self.imports.get(function as usize)?;
        Some(Import { ty, parameters: self.parameters_of(ty)? })
    }

    fn parameters_of(&self, ty: u32) -> Option<u32> {
        self.types.get(ty as usize).copied().flatten()
    }

    /// Returns the size of a data segment, if it is passive.
    pub(super) fn passive(&self, segment: u32) -> Option<u32> {
        self.passive.get(segment as usize).copied().flatten()
    }

    /// Returns the index of the first type that is appended.
    pub(super) fn next_type(&self) -> Result<u32, SliceError> {
        u32::try_from(self.types.len()).map_err(|_| SliceError::TooLarge)
    }

    /// Returns the index of the first function that is appended.
    pub(super) fn next_function(&self) -> Result<u32, SliceError> {
        let functions = self.imports.len().saturating_add(self.functions.len());
        u32::try_from(functions).map_err(|_| SliceError::TooLarge)
    }
}
