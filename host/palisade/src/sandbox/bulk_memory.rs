//! Splits long bulk memory instructions into slices before compilation, and inserts checks of the
//! epoch into long straight code and before each call of the host.
//!
//! The engine checks the epoch once per bulk instruction, so a `memory.fill` of 100 MiB could not
//! be interrupted. Here, each instruction whose length may exceed a slice of 256 KiB gets a second
//! path: a function that works slice by slice in a loop, which checks the epoch in each iteration.
//! The instruction itself stays in place for short lengths, at the price of one comparison.
//!
//! The result does the same as the original: the slow path checks all bounds first, and leaves a
//! range outside of the memory to the original instruction, which traps before it writes. Functions
//! and types are appended, so that no index changes.
//!
//! Each use of an imported function, which the host may carry out, is replaced by one of an added
//! function that calls it: in code, in tables, in globals and in element segments. The engine
//! checks the epoch at its head, so no way leads to the host without a check. In the usual form of
//! components, the segments that fill another module's table stay as they are, and the calls
//! through that table are checked.
//!
//! Tables need no slices: one has at most [`ELEMENTS_PER_TABLE`] elements.
//!
//! [`ELEMENTS_PER_TABLE`]: super::limits::ELEMENTS_PER_TABLE

mod added;
mod body;
mod error;
mod layout;
mod module;
mod references;
mod sections;
mod shared_tables;
mod slow_path;
mod straight_code;
#[cfg(test)]
mod tests;

pub(super) use error::SliceError;

use super::precheck::Cap;
use sections::{Change, Section, Sections, Writer, id};
use shared_tables::SharedTables;
use std::borrow::Cow;
use wasmparser::Parser;

/// The version of the rewriting. Cached code of another version is not used, so every change of the
/// output needs a new one.
pub(super) const VERSION: u32 = 7;

/// The bytes of a component without long bulk memory instructions and long straight code. Only such
/// bytes are compiled.
pub(super) struct Sliced<'a>(Cow<'a, [u8]>);

impl<'a> Sliced<'a> {
    /// Rewrites a component that has passed the pre-compilation check. Takes time and memory linear
    /// in its size.
    ///
    /// # Errors
    ///
    /// Returns [`SliceError`] if the component is malformed or has too many kinds of instructions.
    pub(super) fn new(bytes: &'a [u8]) -> Result<Self, SliceError> {
        if !Parser::is_component(bytes) {
            return Err(SliceError::Header);
        }
        let tables = SharedTables::of(bytes)?;
        let mut out = Writer::default();
        Ok(Self(match component(bytes, tables, 1, &mut out)? {
            Change::None => Cow::Borrowed(bytes),
            Change::Some => Cow::Owned(out.into_bytes()),
        }))
    }

    pub(super) fn as_bytes(&self) -> &[u8] {
        &self.0
    }
}

fn component(
    bytes: &[u8],
    tables: SharedTables,
    depth: u64,
    out: &mut Writer,
) -> Result<Change, SliceError> {
    if depth > Cap::Nesting.max() {
        return Err(SliceError::Nesting);
    }
    if !Parser::is_component(bytes) {
        return Err(SliceError::Header);
    }
    let mut sections = Sections::new(bytes)?;
    out.raw(sections.header());
    let mut change = Change::None;
    while let Some(section) = sections.next()? {
        change = change.or(match section.id {
            id::CORE_MODULE => module(&section, tables, out)?,
            id::COMPONENT => {
                let inner = |out: &mut Writer| component(section.content, tables, depth + 1, out);
                out.section(section.id, inner)?
            }
            _ => copied(&section, out),
        });
    }
    Ok(change)
}

fn module(
    section: &Section<'_>,
    tables: SharedTables,
    out: &mut Writer,
) -> Result<Change, SliceError> {
    if !Parser::is_core_wasm(section.content) {
        return Err(SliceError::Header);
    }
    match module::rewritten(section.content, tables)? {
        Some(module) => out.section(section.id, |out| {
            out.raw(&module);
            Ok(Change::Some)
        }),
        None => Ok(copied(section, out)),
    }
}

fn copied(section: &Section<'_>, out: &mut Writer) -> Change {
    out.raw(section.whole);
    Change::None
}
