//! The rewriting of one core module.

use super::added::AddedFunctions;
use super::body;
use super::error::SliceError;
use super::layout::Layout;
use super::references::References;
use super::sections::{Change, Section, Sections, Writer, id};
use super::shared_tables::SharedTables;
use super::slow_path::TYPE;
use wasmparser::{BinaryReader, CodeSectionReader};

/// Returns a core module with added functions, or `None` if it needs none.
pub(super) fn rewritten(
    module: &[u8],
    tables: SharedTables,
) -> Result<Option<Vec<u8>>, SliceError> {
    let layout = Layout::of(module, tables)?;
    let mut added = AddedFunctions::new(&layout);
    let mut bodies = Writer::default();
    let change = bodies_of(&layout, &mut added, &mut bodies)?;
    let references = References::of(&layout, &mut added)?;
    if change == Change::None && added.all().is_empty() {
        return Ok(None);
    }
    let needed = [
        (id::FUNCTIONS, !added.all().is_empty()),
        (id::ELEMENTS, references.section(id::ELEMENTS).is_some()),
        (id::CODE, !added.all().is_empty()),
    ];
    let missing =
        needed.into_iter().filter(|(id, is_needed)| *is_needed && layout.section(*id).is_none());
    let mut rewriting = Rewriting {
        added: &added,
        references,
        bodies,
        missing: missing.map(|(id, _)| id).collect(),
        out: Writer::default(),
    };
    let mut sections = Sections::new(module)?;
    rewriting.out.raw(sections.header());
    while let Some(section) = sections.next()? {
        rewriting.write(&section)?;
    }
    rewriting.write_missing(|_| true)?;
    Ok(Some(rewriting.out.into_bytes()))
}

/// Writes the bodies of the module's functions, without their number.
fn bodies_of(
    layout: &Layout<'_>,
    added: &mut AddedFunctions<'_>,
    out: &mut Writer,
) -> Result<Change, SliceError> {
    let mut change = Change::None;
    let Some(code) = layout.section(id::CODE) else { return Ok(change) };
    for (function, body) in
        CodeSectionReader::new(BinaryReader::new(code, 0))?.into_iter().enumerate()
    {
        let parameters = layout.parameters(function)?;
        change = change.or(body::rewrite(&body?, parameters, layout, added, out)?);
    }
    Ok(change)
}

/// A module with added functions, as it is written.
struct Rewriting<'a> {
    added: &'a AddedFunctions<'a>,
    references: References,
    bodies: Writer,
    /// The sections that the original does not have and the result needs, in order.
    missing: Vec<u8>,
    out: Writer,
}

impl Rewriting<'_> {
    fn write(&mut self, section: &Section<'_>) -> Result<(), SliceError> {
        self.write_missing(|missing| id::is_behind(section.id, missing))?;
        let Self { added, references, bodies, out, .. } = self;
        let functions = added.all();
        match section.id {
            id::TYPES => out.section(section.id, |out| {
                append(section.content, 1, out)?;
                out.raw(&TYPE);
                Ok(())
            }),
            id::FUNCTIONS => out.section(section.id, |out| {
                append(section.content, functions.len(), out)?;
                for function in functions {
                    out.number(added.type_of(*function)?);
                }
                Ok(())
            }),
            id::CODE => out.section(section.id, |out| {
                let count = CodeSectionReader::new(BinaryReader::new(section.content, 0))?.count();
                out.length(count as usize + functions.len())?;
                out.raw(bodies.as_bytes());
                for function in functions {
                    let body = added.body(*function);
                    out.length(body.len())?;
                    out.raw(&body);
                }
                Ok(())
            }),
            id => {
                match references.section(id) {
                    Some(changed) => {
                        out.raw(&[id]);
                        out.raw(changed);
                    }
                    None => out.raw(section.whole),
                }
                Ok(())
            }
        }
    }

    /// Writes the missing sections of these numbers, the original of which has no items.
    fn write_missing(&mut self, is_due: impl Fn(u8) -> bool) -> Result<(), SliceError> {
        while let Some(id) = self.missing.first().copied().filter(|id| is_due(*id)) {
            self.missing.remove(0);
            self.write(&Section { id, content: &[0], whole: &[] })?;
        }
        Ok(())
    }
}

/// Writes the items of a section after a number that has room for `more`.
fn append(items: &[u8], more: usize, out: &mut Writer) -> Result<(), SliceError> {
    let mut reader = BinaryReader::new(items, 0);
    let count = reader.read_var_u32()? as usize;
    out.length(count + more)?;
    out.raw(reader.read_bytes(reader.bytes_remaining())?);
    Ok(())
}
