//! Compiles each pattern once by itself, to name the one that is refused and to know what running it can cost.

use std::collections::HashSet;

use jsonschema::PatternOptions;
use serde_json::json;

use super::error::SchemaError;
use super::meter::Metered;
use super::outline::Outline;
use super::{MAX_PATTERN, MAX_PATTERN_BYTES, MAX_PATTERNS, MAX_PATTERNS_TOGETHER};

/// The classes of compiled size, in bytes.
const CLASSES: [usize; 5] = [4 << 10, 16 << 10, 64 << 10, 256 << 10, MAX_PATTERN_BYTES];

/// The cache of the lazy automaton, in bytes a pattern. Where it is too small the engine falls back to a simulation that takes a
/// thousand times longer, so it is generous; the number of patterns is bounded instead.
const AUTOMATON_CACHE: usize = 512 << 10;

/// How many bytes of a pattern's own text one step compares: alternatives that are plain words are tried one by one.
const BYTES_PER_STEP: usize = 32;

/// What matching one text costs.
#[derive(Debug, Default, Clone, Copy)]
pub(super) struct Matching {
    /// For each byte of the text, in steps: the compiled size in KiB.
    pub(super) byte: u64,
    /// For any text, in steps.
    pub(super) text: u64,
}

/// How large the patterns of a schema are.
#[derive(Debug, Default, Clone, Copy)]
pub(super) struct PatternLoad {
    /// The most that one `pattern` costs.
    pub(super) value: Matching,
    /// What all patterns of property names cost together.
    pub(super) name: Matching,
    /// How many different patterns there are.
    pub(super) count: usize,
    /// All of them compiled, in bytes.
    pub(super) together: usize,
}

/// How the validator runs patterns: in time linear in the text, whatever the pattern is.
pub(super) fn options() -> PatternOptions<jsonschema::Regex> {
    PatternOptions::regex().size_limit(MAX_PATTERN_BYTES).dfa_size_limit(AUTOMATON_CACHE)
}

/// Checks every pattern of a schema.
pub(super) fn check(outline: &Outline<'_>) -> Result<PatternLoad, SchemaError> {
    let mut seen = HashSet::new();
    let mut load = PatternLoad::default();
    let mut together = 0_usize;
    for (pattern, keyword, pointer) in &outline.patterns {
        let refuse = |why| SchemaError::Pattern { keyword, pointer: pointer.clone(), why };
        if pattern.len() > MAX_PATTERN {
            return Err(refuse("it is longer than 4 KiB"));
        }
        if !seen.insert((*pattern, *keyword)) {
            continue;
        }
        let size = compiled_size(pattern).ok_or_else(|| refuse("the linear-time engine does not compile it"))?;
        together = together.saturating_add(size);
        if seen.len() > MAX_PATTERNS || together > MAX_PATTERNS_TOGETHER {
            return Err(refuse("with it the schema's patterns are more than 128, or compile to more than 4 MiB"));
        }
        load.add(keyword, pattern.len(), size);
    }
    (load.count, load.together) = (seen.len(), together);
    Ok(load)
}

impl PatternLoad {
    fn add(&mut self, keyword: &str, length: usize, size: usize) {
        let (byte, text) = ((size >> 10) as u64, (length / BYTES_PER_STEP) as u64);
        if keyword == "pattern" {
            self.value = Matching { byte: self.value.byte.max(byte), text: self.value.text.max(text) };
        } else {
            let Matching { byte: bytes, text: texts } = self.name;
            self.name = Matching { byte: bytes.saturating_add(byte), text: texts.saturating_add(text) };
        }
    }
}

/// The first class that the compiled pattern fits into.
fn compiled_size(pattern: &str) -> Option<usize> {
    let schema = json!({ "pattern": pattern });
    // For the one representation of values that there is: for another the compiler would make all of the validator a second time.
    let validator = |size| jsonschema::options_for::<Metered>().with_pattern_options(options().size_limit(size));
    let compiles = |size: usize| validator(size).build(&schema).is_ok();
    CLASSES.into_iter().find(|size| compiles(*size))
}
