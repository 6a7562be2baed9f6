//! Sources with all their faults in them at once, each behind a switch, so that one build does for
//! all: a fault is put on by its number when a test runs.
//!
//! Where a comparison or a guard comes out the same with a fault, the switch is not even asked: the
//! tests that ask it are all that could see the fault.

mod forms;
mod visit;

use super::fault::{Fault, Site};
use anyhow::Context as _;
use std::collections::{BTreeMap, BTreeSet};

/// A source with its faults.
#[derive(Debug)]
pub(super) struct Woven {
    pub(super) text: String,
    /// The numbers of those that it has.
    pub(super) faults: BTreeSet<usize>,
    /// Those that cannot compile.
    pub(super) unviable: BTreeSet<usize>,
}

/// What an error of the compiler at a place of a woven source is about.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Blame {
    /// This fault does not compile.
    Fault(usize),
    /// The form around these faults does not, so that they cannot be woven.
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
    // At one place, what was found first stands first: the beginning of the outer expression, the
    // end of the inner one.
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

/// What an error at a byte of a woven source is about: the fault whose switch is on its line, else
/// the faults of the innermost form around it.
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
