//! The facts about a core module that its function bodies do not state.

use super::error::SliceError;
use super::sections::{Section, Sections, id};
use wasmparser::{
    BinaryReader, CompositeInnerType, DataKind, DataSectionReader, FunctionSectionReader,
    ImportSectionReader, TypeRef, TypeSectionReader,
};

/// The facts about a core module that its function bodies do not state.
#[derive(Default)]
pub(super) struct Layout<'a> {
    /// The number of parameters of each type, or `None` for a type that is no function type.
    types: Vec<Option<u32>>,
    /// The number of imported functions, which have the lowest indices.
    pub(super) imported_functions: u32,
    /// The type of each function that the module defines.
    functions: Vec<u32>,
    /// The size of each passive data segment. An active one is empty when code runs.
    passive: Vec<Option<u32>>,
    /// The content of the code section.
    pub(super) code: Option<&'a [u8]>,
}

impl<'a> Layout<'a> {
    pub(super) fn of(module: &'a [u8]) -> Result<Self, SliceError> {
        let mut layout = Self::default();
        let mut sections = Sections::new(module)?;
        let mut seen = [false; 256];
        while let Some(section) = sections.next()? {
            let is_read =
                matches!(section.id, id::TYPES | id::IMPORTS | id::FUNCTIONS | id::CODE | id::DATA);
            if let Some(seen) = seen.get_mut(usize::from(section.id))
                && is_read
                && std::mem::replace(seen, true)
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
                    let is_function =
                        matches!(import?.ty, TypeRef::Func(_) | TypeRef::FuncExact(_));
                    self.imported_functions += u32::from(is_function);
                }
            }
            id::FUNCTIONS => {
                for ty in FunctionSectionReader::new(reader)? {
                    self.functions.push(ty?);
                }
            }
            id::CODE => self.code = Some(section.content),
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

    /// Returns the number of parameters of the function with this index among the defined ones.
    pub(super) fn parameters(&self, function: usize) -> Result<u32, SliceError> {
        let ty = *self.functions.get(function).ok_or(SliceError::NoType)?;
        self.types.get(ty as usize).copied().flatten().ok_or(SliceError::NoType)
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
        let defined = u32::try_from(self.functions.len()).map_err(|_| SliceError::TooLarge)?;
        self.imported_functions.checked_add(defined).ok_or(SliceError::TooLarge)
    }
}
