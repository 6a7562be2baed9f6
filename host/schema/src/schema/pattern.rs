//! Bounds the patterns of a schema, and of several schemas together, before any is compiled, and
//! determines the cost of running them.

use std::collections::HashMap;

use jsonschema::PatternOptions;

use super::allowance::PatternAllowance;
use super::error::SchemaError;
use super::outline::{Node, Outline, PatternPlace, Step};
use super::reading::Reading;
use super::translation::translate;
use super::{MAX_PATTERN, MAX_PATTERN_BYTES, MAX_PATTERNS, MAX_PATTERNS_TOGETHER};

/// The size classes of compiled patterns, in bytes.
const CLASSES: [usize; 5] = [4 << 10, 16 << 10, 64 << 10, 256 << 10, MAX_PATTERN_BYTES];

/// The number of bytes of a pattern's own text that one step compares: alternatives of plain words
/// are tried one by one.
const BYTES_PER_STEP: usize = 32;

/// The least weight of a pattern among all of a schema, in bytes: the engine needs some memory for
/// any.
const LEAST_WEIGHT: usize = 4 << 10;

/// The least weight of a pattern among all of a schema, for each byte of its translated text:
/// parsing takes up to 5 µs for a byte (measured), also if nothing remains of it, as of
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
    /// The compiled size of all patterns in both directions, and the working memory of those for
    /// names, in bytes.
    pub(super) together: usize,
    /// The length of the names that the validator reads in a translation, in bytes.
    pub(super) translated: u64,
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

/// Checks every pattern of a schema, and charges all of them to `allowance`. The order of its
/// subschemas is that of `children_first`.
pub(super) fn check(
    outline: &Outline<'_>,
    order: &[usize],
    allowance: &mut PatternAllowance,
) -> Result<PatternLoad, SchemaError> {
    let mut account = Account { allowance, seen: HashMap::new(), together: 0, translated: 0 };
    let mut load = PatternLoad::default();
    let mut names = vec![NameLoad::default(); outline.nodes.len()];
    for place in &outline.patterns {
        let price = account.charge(place)?;
        if place.keyword == "pattern" {
            load.value = load.value.max(price);
        } else if let Some(names) = names.get_mut(place.node) {
            *names = names.and(NameLoad { patterns: 1, price });
        }
    }
    load.name = check_one_name(&outline.nodes, order, &names)?;
    load.count = account.seen.len();
    load.together = account.together;
    load.translated = account.translated;
    Ok(load)
}

/// The patterns of a schema that have been charged.
struct Account<'a, 'v> {
    allowance: &'a mut PatternAllowance,
    /// The different patterns, by text and keyword.
    seen: HashMap<(&'v str, &'static str), Seen>,
    together: usize,
    translated: u64,
}

/// A pattern that occurred before.
#[derive(Clone, Copy)]
struct Seen {
    price: Matching,
    /// The memory of each further place, in bytes.
    place: usize,
}

impl<'v> Account<'_, 'v> {
    /// Charges the pattern at one place, and returns its price.
    fn charge(&mut self, place: &PatternPlace<'v>) -> Result<Matching, SchemaError> {
        let kind = (place.pattern, place.keyword);
        if let Some(Seen { price, place: bytes }) = self.seen.get(&kind).copied() {
            self.take(0, bytes, place)?;
            return Ok(price);
        }
        let refuse = |why| place.refused(why);
        if place.pattern.len() > MAX_PATTERN {
            return Err(refuse("it is longer than 4 KiB"));
        }
        let translated = translate(place.pattern).map_err(refuse)?;
        // Reading a text takes long, so it is charged before.
        let text = translated.len().saturating_mul(TEXT_WEIGHT).max(LEAST_WEIGHT);
        self.take(1, text, place)?;
        let reading = Reading::new(&translated).map_err(refuse)?;
        self.take(0, reading.size.together().saturating_sub(text), place)?;
        let price = Matching::of(place.pattern, &reading);
        let mut bytes = 0;
        if place.keyword != "pattern" {
            bytes = reading.memory_for_names();
            self.translated = self.translated.saturating_add(translated.len() as u64);
        }
        self.take(0, bytes, place)?;
        self.seen.insert(kind, Seen { price, place: bytes });
        Ok(price)
    }

    /// Takes from the bounds of the schema and from the allowance.
    fn take(
        &mut self,
        count: usize,
        bytes: usize,
        place: &PatternPlace<'_>,
    ) -> Result<(), SchemaError> {
        self.together = self.together.saturating_add(bytes);
        if self.seen.len().saturating_add(count) > MAX_PATTERNS
            || self.together > MAX_PATTERNS_TOGETHER
        {
            return Err(place.refused(
                "with it the schema's patterns are more than 128, have more than 64 KiB of text (with \
                 classes such as `\\d` written out), or take more than 4 MiB",
            ));
        }
        if self.allowance.take(count, bytes) {
            return Ok(());
        }
        let (keyword, pointer) = (place.keyword, place.pointer.clone());
        Err(SchemaError::PatternAllowance { keyword, pointer })
    }
}

impl PatternPlace<'_> {
    pub(super) fn refused(&self, why: &'static str) -> SchemaError {
        SchemaError::Pattern { keyword: self.keyword, pointer: self.pointer.clone(), why }
    }
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
    fn of(pattern: &str, reading: &Reading) -> Self {
        let size = reading.size.limit();
        let class = CLASSES.into_iter().find(|class| size <= *class).unwrap_or(MAX_PATTERN_BYTES);
        let byte = ((class >> 10) as u64).saturating_mul(slowness(reading));
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
/// is not ASCII, a word boundary may make the engine simulate each state: some 350 ns for each KiB
/// and byte, and otherwise up to 120 ns (measured).
fn slowness(reading: &Reading) -> u64 {
    const USUAL: u64 = 2;
    const WORD_BOUNDARY: u64 = 8;
    if reading.has_word_boundary() { WORD_BOUNDARY } else { USUAL }
}
