//! Weaves all faults into a source, each behind a switch, so that one build is enough: a fault is
//! switched on by its number when a test runs.
//!
//! If a comparison or a guard has the same value with a fault, the switch is not queried. So the
//! tests that query it are the only ones that could see the fault.

mod forms;
mod visit;

use super::fault::{Fault, Site};
use anyhow::Context as _;
use std::collections::{BTreeMap, BTreeSet};

/// A source with its faults.
#[derive(Debug)]
pub(super) struct Woven {
    pub(super) text: String,
    /// The numbers of the woven faults.
    pub(super) faults: BTreeSet<usize>,
    /// The numbers of the faults that cannot compile.
    pub(super) unviable: BTreeSet<usize>,
}

/// The cause of a compiler error in a woven source.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Blame {
    /// This fault does not compile.
    Fault(usize),
    /// The form around these faults does not compile, so that they cannot be woven.
    Form(Vec<usize>),
}

/// Weaves faults into a source.
pub(super) fn weave(source: &str, faults: &[&Fault]) -> anyhow::Result<Woven> {
    let parsed = syn::parse_file(source).context("a source that does not parse")?;
    let mut sites: BTreeMap<Site, Vec<&Fault>> = BTreeMap::new();
    for fault in faults {
        sites.entry(fault.site).or_default().push(fault);
    }
    let mut edits = visit::edits(source, &parsed, &sites);
    // The sort is stable. Edits at the same place keep their order: the start of an outer
    // expression comes before that of an inner one, and the end of an inner one before that of an
    // outer one.
    edits.found.sort_by_key(|edit| edit.place.start);
    let (mut text, mut done) = (String::new(), 0);
    for edit in &edits.found {
        text.push_str(source.get(done..edit.place.start).context("two changes of one place")?);
        text.push_str(&edit.text);
        done = edit.place.end;
    }
    text.push_str(source.get(done..).context("a change beyond the end")?);
    Ok(Woven { text, faults: edits.woven, unviable: edits.unviable })
}

/// Returns the cause of an error at a byte of a woven source: the fault whose switch is on its
/// line, or else the faults of the innermost form around it.
pub(super) fn blame(woven: &str, at: usize) -> Option<Blame> {
    let (before, after) = (woven.get(..at)?, woven.get(at..)?);
    let line = [before.rsplit('\n').next()?, after.split('\n').next()?].concat();
    if let Some((_, rest)) = line.split_once(forms::SWITCH) {
        return Some(Blame::Fault(rest.split_once(')')?.0.parse().ok()?));
    }
    let mut open = Vec::new();
    for mark in before.split(forms::MARK).skip(1) {
        match mark.split_once("*/")?.0 {
            "" => drop(open.pop()),
            numbers => open.push(numbers),
        }
    }
    Some(Blame::Form(open.pop()?.split(',').filter_map(|number| number.parse().ok()).collect()))
}

#[cfg(test)]
mod tests;
