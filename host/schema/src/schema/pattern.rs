//! Compiles each pattern separately, to report the refused one and to determine the cost of running
//! it.

use std::collections::HashSet;

use jsonschema::PatternOptions;
use serde_json::json;

use super::error::SchemaError;
use super::meter::Metered;
use super::outline::Outline;
use super::{MAX_PATTERN, MAX_PATTERN_BYTES, MAX_PATTERNS, MAX_PATTERNS_TOGETHER};

/// The size classes of compiled patterns, in bytes.
const CLASSES: [usize; 5] = [4 << 10, 16 << 10, 64 << 10, 256 << 10, MAX_PATTERN_BYTES];

/// The cache of the lazy DFA, in bytes per pattern. If it is too small, the engine falls back to a
/// simulation that is a thousand times slower, so it is generous; the number of patterns is bounded
/// instead.
const AUTOMATON_CACHE: usize = 512 << 10;

/// The number of bytes of a pattern's own text that one step compares: alternatives of plain words
/// are tried one by one.
const BYTES_PER_STEP: usize = 32;

/// The price of matching one text.
#[derive(Debug, Default, Clone, Copy)]
pub(super) struct Matching {
    /// Steps for each byte of the text: the compiled size in KiB.
    pub(super) byte: u64,
    /// Steps for each text.
    pub(super) text: u64,
}

/// The cost of a schema's patterns.
#[derive(Debug, Default, Clone, Copy)]
pub(super) struct PatternLoad {
    /// The maximum price of a single `pattern`.
    pub(super) value: Matching,
    /// The total price of all patterns for property names.
    pub(super) name: Matching,
    /// The number of different patterns.
    pub(super) count: usize,
    /// The compiled size of all patterns, in bytes.
    pub(super) together: usize,
}

/// Returns the options of the pattern engine, which runs in time linear in the text for every
/// pattern.
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
        let size = compiled_size(pattern)
            .ok_or_else(|| refuse("the linear-time engine does not compile it"))?;
        together = together.saturating_add(size);
        if seen.len() > MAX_PATTERNS || together > MAX_PATTERNS_TOGETHER {
            return Err(refuse(
                "with it the schema's patterns are more than 128, or compile to more than 4 MiB",
            ));
        }
        load.add(keyword, pattern.len(), size);
    }
    load.count = seen.len();
    load.together = together;
    Ok(load)
}

impl PatternLoad {
    fn add(&mut self, keyword: &str, length: usize, size: usize) {
        let byte = (size >> 10) as u64;
        let text = (length / BYTES_PER_STEP) as u64;
        if keyword == "pattern" {
            self.value =
                Matching { byte: self.value.byte.max(byte), text: self.value.text.max(text) };
        } else {
            let Matching { byte: bytes, text: texts } = self.name;
            self.name =
                Matching { byte: bytes.saturating_add(byte), text: texts.saturating_add(text) };
        }
    }
}

/// Returns the smallest size class that the compiled pattern fits into.
fn compiled_size(pattern: &str) -> Option<usize> {
    let schema = json!({ "pattern": pattern });
    // Uses `Metered`, because another representation would compile the whole generic validator a
    // second time.
    let validator = |size| {
        jsonschema::options_for::<Metered>().with_pattern_options(options().size_limit(size))
    };
    let compiles = |size: usize| validator(size).build(&schema).is_ok();
    CLASSES.into_iter().find(|size| compiles(*size))
}
