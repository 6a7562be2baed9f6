//! Compiles each pattern separately, to report the refused one and to determine the cost of running
//! it.

use std::collections::HashMap;

use jsonschema::PatternOptions;
use regex_automata::meta;
use regex_automata::nfa::thompson;
use serde_json::json;

use super::error::SchemaError;
use super::meter::Metered;
use super::outline::{Node, Outline, PatternPlace, Step};
use super::translation::{prepare, translate};
use super::{MAX_PATTERN, MAX_PATTERN_BYTES, MAX_PATTERNS, MAX_PATTERNS_TOGETHER};

/// The size classes of compiled patterns, in bytes.
const CLASSES: [usize; 5] = [4 << 10, 16 << 10, 64 << 10, 256 << 10, MAX_PATTERN_BYTES];

/// The number of bytes of a pattern's own text that one step compares: alternatives of plain words
/// are tried one by one.
const BYTES_PER_STEP: usize = 32;

/// The least weight of a pattern among all of a schema, for each byte of its translated text:
/// compilation takes up to 5 µs for a byte (measured), also if nothing remains of it, as of
/// `(?:\p{L}){0}`.
const TEXT_WEIGHT: usize = 64;

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
    /// The maximum price of all patterns that are matched with a property name at once.
    pub(super) name: Matching,
    /// The number of different patterns.
    pub(super) count: usize,
    /// The compiled size of all patterns, and the working memory of those for names, in bytes.
    pub(super) together: usize,
}

/// Returns the options of the engine for the patterns of names, which runs in time linear in the
/// text for every pattern.
///
/// The engine keeps its working memory for each pattern and thread, and no account counts it.
/// Therefore it makes no automata, and its memory is in proportion to the compiled size. Names are
/// short, so that it is fast enough. For values there is [`super::matcher`].
pub(super) fn options() -> PatternOptions<jsonschema::Regex> {
    PatternOptions::regex().size_limit(MAX_PATTERN_BYTES).dfa_size_limit(0)
}

/// Checks every pattern of a schema. The order of its subschemas is that of `children_first`.
pub(super) fn check(outline: &Outline<'_>, order: &[usize]) -> Result<PatternLoad, SchemaError> {
    let mut seen = HashMap::new();
    let mut load = PatternLoad::default();
    let mut together = 0_usize;
    let mut working = HashMap::new();
    let mut names = vec![NameLoad::default(); outline.nodes.len()];
    for PatternPlace { pattern, keyword, pointer, node } in &outline.patterns {
        let refuse = |why| SchemaError::Pattern { keyword, pointer: pointer.clone(), why };
        if pattern.len() > MAX_PATTERN {
            return Err(refuse("it is longer than 4 KiB"));
        }
        if has_inline_flags(pattern) {
            return Err(refuse(
                "it has inline flags, which are not part of JSON Schema; for both cases of a \
                 letter write `[aA]`",
            ));
        }
        let size = match seen.get(&(*pattern, *keyword)) {
            Some(known) => *known,
            None => {
                let uncompiled = || refuse("the linear-time engine does not compile it");
                let text = text_weight(pattern, keyword).ok_or_else(uncompiled)?;
                // Compiling it would take long.
                let size = match together.saturating_add(text) {
                    ..=MAX_PATTERNS_TOGETHER => compiled_size(pattern).ok_or_else(uncompiled)?,
                    _ => usize::MAX,
                };
                seen.insert((*pattern, *keyword), size);
                together = together.saturating_add(size.max(text));
                size
            }
        };
        if *keyword == "patternProperties" && together <= MAX_PATTERNS_TOGETHER {
            // Each place has working memory of its own.
            let memory = *working.entry(*pattern).or_insert_with(|| working_memory(pattern));
            together = together.saturating_add(memory);
        }
        if seen.len() > MAX_PATTERNS || together > MAX_PATTERNS_TOGETHER {
            return Err(refuse(
                "with it the schema's patterns are more than 128, have more than 64 KiB of text (with \
                 classes such as `\\d` written out), or take more than 4 MiB",
            ));
        }
        let price = Matching::of(pattern, size);
        if *keyword == "pattern" {
            load.value = load.value.max(price);
        } else if let Some(names) = names.get_mut(*node) {
            *names = names.and(NameLoad { patterns: 1, price });
        }
    }
    load.name = check_one_name(&outline.nodes, order, &names)?;
    load.count = seen.len();
    load.together = together;
    Ok(load)
}

/// The patterns that are matched with one property name, as often as they are matched.
#[derive(Debug, Default, Clone, Copy)]
struct NameLoad {
    patterns: usize,
    price: Matching,
}

impl NameLoad {
    fn and(self, other: Self) -> Self {
        Self {
            patterns: self.patterns.saturating_add(other.patterns),
            price: self.price.and(other.price),
        }
    }
}

/// Bounds the number of matches with one property name, whose subschemas have `own` patterns.
/// Returns their maximum price.
///
/// The validator gets each name once for all patterns of a subschema. For `unevaluatedProperties`
/// these include the patterns of all subschemas that it reaches through `allOf` and `$ref`, each as
/// often as it is reached.
fn check_one_name(
    nodes: &[Node],
    order: &[usize],
    own: &[NameLoad],
) -> Result<Matching, SchemaError> {
    let mut most = Matching::default();
    let mut collected = own.to_vec();
    for &index in order {
        let (Some(node), Some(own)) = (nodes.get(index), own.get(index)) else { continue };
        let children = node.steps.iter().filter(|(step, _)| is_collected(step));
        let load = children
            .filter_map(|(_, to)| collected.get(*to))
            .fold(*own, |sum, load| sum.and(*load));
        let matched = if node.collects_members { load } else { *own };
        if matched.patterns > MAX_PATTERNS {
            return Err(SchemaError::TooMuch {
                what: "too many patterns for one name (counted through `$ref` and `allOf`)",
                max: MAX_PATTERNS,
                pointer: node.pointer.clone(),
            });
        }
        most = most.max(matched.price);
        if let Some(slot) = collected.get_mut(index) {
            *slot = load;
        }
    }
    Ok(most)
}

fn is_collected(step: &Step) -> bool {
    matches!(step, Step::Ref | Step::Same("allOf"))
}

impl Matching {
    fn of(pattern: &str, size: usize) -> Self {
        let byte = ((size >> 10) as u64).saturating_mul(slowness(pattern));
        Self { byte, text: (pattern.len() / BYTES_PER_STEP) as u64 }
    }

    fn max(self, other: Self) -> Self {
        Self { byte: self.byte.max(other.byte), text: self.text.max(other.text) }
    }

    fn and(self, other: Self) -> Self {
        Self {
            byte: self.byte.saturating_add(other.byte),
            text: self.text.saturating_add(other.text),
        }
    }
}

/// Returns the steps for each KiB of the compiled pattern and byte of the text. Beside a text that
/// is not ASCII, a word boundary of Unicode makes the engine simulate each state and look up each
/// character in a table: some 350 ns for each KiB and byte, and otherwise up to 120 ns (measured).
fn slowness(pattern: &str) -> u64 {
    const USUAL: u64 = 2;
    const WORD_BOUNDARY: u64 = 8;
    let parsed = translate(pattern)
        .and_then(|translated| regex_automata::util::syntax::parse(&translated).ok());
    match parsed {
        Some(parsed) if !parsed.properties().look_set().contains_word_unicode() => USUAL,
        _ => WORD_BOUNDARY,
    }
}

/// Returns the weight of the text of a pattern, or `None` if it has no translation. The validator
/// translates the patterns of names itself, in a pass for each escape.
fn text_weight(pattern: &str, keyword: &str) -> Option<usize> {
    let translated = translate(pattern)?.len();
    let passes = match keyword {
        "pattern" => 1,
        _ => 1 + prepare(pattern).replaced,
    };
    Some(translated.saturating_mul(passes).saturating_mul(TEXT_WEIGHT))
}

/// Returns whether a pattern switches flags, as in `(?i)`. ECMA-262 has them only since 2025, and
/// folding the case of large classes takes seconds for a pattern of 4 KiB whose compiled size is
/// nothing.
fn has_inline_flags(pattern: &str) -> bool {
    let mut rest = pattern;
    let mut is_in_class = false;
    while let Some(next) = rest.chars().next() {
        match next {
            '\\' => rest = rest.get(1..).unwrap_or_default(),
            '[' => is_in_class = true,
            ']' => is_in_class = false,
            '(' if !is_in_class => {
                let after = rest.strip_prefix("(?").and_then(|after| after.chars().next());
                if after
                    .is_some_and(|first| first == '-' || (first.is_alphabetic() && first != 'P'))
                {
                    return true;
                }
            }
            _ => {}
        }
        let mut left = rest.chars();
        left.next();
        rest = left.as_str();
    }
    false
}

/// Returns the memory that the engine for names takes for a pattern and keeps for a thread, in
/// bytes: for a compact automaton, which it makes for patterns with groups, and for a simulation.
fn working_memory(pattern: &str) -> usize {
    let compiled = || {
        let translated = translate(pattern)?;
        let config = thompson::Config::new().nfa_size_limit(Some(MAX_PATTERN_BYTES));
        let nfa = thompson::Compiler::new().configure(config).build(&translated).ok()?;
        let config = meta::Config::new().nfa_size_limit(Some(MAX_PATTERN_BYTES)).hybrid(false);
        let regex = meta::Regex::builder().configure(config).build(&translated).ok()?;
        Some((nfa, regex.memory_usage()))
    };
    let Some((nfa, kept)) = compiled() else { return usize::MAX };
    // Two lists of states, each with the positions of all groups.
    let state = size_of::<usize>().saturating_mul(1 + nfa.group_info().slot_len());
    nfa.states().len().saturating_mul(2).saturating_mul(state).saturating_add(kept)
}

/// Returns the smallest size class that the compiled pattern fits into.
fn compiled_size(pattern: &str) -> Option<usize> {
    let schema = json!({ "pattern": prepare(pattern).text });
    // Uses `Metered`, because another representation would compile the whole generic validator a
    // second time.
    let validator = |size| {
        jsonschema::options_for::<Metered>().with_pattern_options(options().size_limit(size))
    };
    let compiles = |size: usize| validator(size).build(&schema).is_ok();
    CLASSES.into_iter().find(|size| compiles(*size))
}
