//! The rewriting of one core module.

use super::body;
use super::error::SliceError;
use super::layout::Layout;
use super::sections::{Change, Section, Sections, Writer, id};
use super::slow_path::{SlowPaths, TYPE};
use wasmparser::{BinaryReader, CodeSectionReader};

/// Returns a core module with slow paths, or `None` if it needs none.
pub(super) fn rewritten(module: &[u8]) -> Result<Option<Vec<u8>>, SliceError> {
    let layout = Layout::of(module)?;
    let mut slow_paths = SlowPaths::new(layout.next_function()?);
    let mut bodies = Writer::default();
    if bodies_of(&layout, &mut slow_paths, &mut bodies)? == Change::None {
        return Ok(None);
    }
    let mut out = Writer::default();
    let mut sections = Sections::new(module)?;
    out.raw(sections.header());
    while let Some(section) = sections.next()? {
        write(&section, &layout, &slow_paths, &bodies, &mut out)?;
    }
    Ok(Some(out.into_bytes()))
}

/// Writes the bodies of the module's functions, without their number.
fn bodies_of(
    layout: &Layout<'_>,
    slow_paths: &mut SlowPaths,
    out: &mut Writer,
) -> Result<Change, SliceError> {
    let mut change = Change::None;
    let Some(code) = layout.code else { return Ok(change) };
    for (function, body) in
        CodeSectionReader::new(BinaryReader::new(code, 0))?.into_iter().enumerate()
    {
        let parameters = layout.parameters(function)?;
        change = change.or(body::rewrite(&body?, parameters, layout, slow_paths, out)?);
    }
    Ok(change)
}

fn write(
    section: &Section<'_>,
    layout: &Layout<'_>,
    slow_paths: &SlowPaths,
    bodies: &Writer,
    out: &mut Writer,
) -> Result<(), SliceError> {
    let appended = slow_paths.all();
    match section.id {
        id::TYPES => out.section(section.id, |out| {
            append(section.content, 1, out)?;
            out.raw(&TYPE);
            Ok(())
        }),
        id::FUNCTIONS => out.section(section.id, |out| {
            append(section.content, appended.len(), out)?;
            let ty = layout.next_type()?;
            appended.iter().for_each(|_| out.number(ty));
            Ok(())
        }),
        id::CODE => out.section(section.id, |out| {
            let count = CodeSectionReader::new(BinaryReader::new(section.content, 0))?.count();
            out.length(count as usize + appended.len())?;
            out.raw(bodies.as_bytes());
            for bulk in appended {
                let body = bulk.body();
                out.length(body.len())?;
                out.raw(&body);
            }
            Ok(())
        }),
        _ => {
            out.raw(section.whole);
            Ok(())
        }
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
