//! The references to functions outside of the code: those of tables, globals and element segments.

use super::added::AddedFunctions;
use super::error::SliceError;
use super::layout::Layout;
use super::sections::{Change, id};
use std::collections::BTreeMap;
use wasm_encoder::reencode::{Error, Reencode, utils};
use wasm_encoder::{ElementSection, Elements, Encode, GlobalSection, TableSection};
use wasmparser::{
    BinaryReader, Element, ElementSectionReader, GlobalSectionReader, TableSectionReader,
};

/// The changed sections of a module that refer to functions, each with its length before it.
pub(super) struct References(BTreeMap<u8, Vec<u8>>);

impl References {
    /// Writes the added functions in the place of the imported ones.
    pub(super) fn of(
        layout: &Layout<'_>,
        added: &mut AddedFunctions<'_>,
    ) -> Result<Self, SliceError> {
        let reader = |id| layout.section(id).map(|content| BinaryReader::new(content, 0));
        let referenced = added.referenced();
        let mut redirect = Redirect { layout, added, change: Change::None, keeps: false };
        let mut changed = Self(BTreeMap::new());
        if let Some(reader) = reader(id::TABLES) {
            let mut tables = TableSection::new();
            redirect.parse_table_section(&mut tables, TableSectionReader::new(reader)?)?;
            changed.take(id::TABLES, &tables, &mut redirect.change);
        }
        if let Some(reader) = reader(id::GLOBALS) {
            let mut globals = GlobalSection::new();
            redirect.parse_global_section(&mut globals, GlobalSectionReader::new(reader)?)?;
            changed.take(id::GLOBALS, &globals, &mut redirect.change);
        }
        let mut elements = ElementSection::new();
        if let Some(reader) = reader(id::ELEMENTS) {
            redirect.parse_element_section(&mut elements, ElementSectionReader::new(reader)?)?;
        }
        if !referenced.is_empty() {
            // Code may refer only to functions that a segment, a global or an export names.
            elements.declared(Elements::Functions(referenced.into()));
            redirect.change = Change::Some;
        }
        changed.take(id::ELEMENTS, &elements, &mut redirect.change);
        Ok(changed)
    }

    fn take(&mut self, id: u8, section: &impl Encode, change: &mut Change) {
        if std::mem::replace(change, Change::None) == Change::Some {
            let mut bytes = Vec::new();
            section.encode(&mut bytes);
            self.0.insert(id, bytes);
        }
    }

    /// Returns a changed section, with its length before it.
    pub(super) fn section(&self, id: u8) -> Option<&[u8]> {
        self.0.get(&id).map(Vec::as_slice)
    }
}

/// Writes items again, with added functions in the place of the imported ones.
struct Redirect<'a, 'b> {
    layout: &'a Layout<'a>,
    added: &'a mut AddedFunctions<'b>,
    change: Change,
    /// True in a segment that keeps the imported functions.
    keeps: bool,
}

impl Reencode for Redirect<'_, '_> {
    type Error = SliceError;

    fn parse_element(
        &mut self,
        elements: &mut ElementSection,
        element: Element<'_>,
    ) -> Result<(), Error<SliceError>> {
        self.keeps = self.layout.keeps_imports(&element.kind);
        let parsed = utils::parse_element(self, elements, element);
        self.keeps = false;
        parsed
    }

    fn function_index(&mut self, function: u32) -> Result<u32, Error<SliceError>> {
        if self.keeps {
            return Ok(function);
        }
        Ok(match self.added.import(function).map_err(Error::UserError)? {
            Some(added) => {
                self.change = Change::Some;
                added
            }
            None => function,
        })
    }
}

impl From<Error<SliceError>> for SliceError {
    fn from(error: Error<SliceError>) -> Self {
        match error {
            Error::UserError(error) => error,
            Error::ParseError(error) => Self::Malformed(error),
            other => Self::References(other.to_string()),
        }
    }
}
