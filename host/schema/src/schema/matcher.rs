//! The keyword `pattern`, with an engine whose memory belongs to the validation that uses it.
//!
//! The validator's own engine keeps the states of its automata for each pattern and thread until the
//! schema is dropped, and no account counts them.

use std::cell::RefCell;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use jsonschema::json::Node;
use jsonschema::{Keyword, ValidationError};
use regex_automata::Input;
use regex_automata::meta::{Cache, Config, Regex};
use regex_automata::nfa::thompson::WhichCaptures;
use serde_json::Value;

use super::meter::{Metered, Reserved, Seen};
use super::reading::Reading;
use super::translation::translate;
use crate::text::elided;

/// The name of the keyword.
pub(super) const KEYWORD: &str = "pattern";

/// The states that an automaton keeps, in bytes. With less the engine falls back to a simulation
/// that is a thousand times slower.
const STATES: usize = 512 << 10;
/// The automata of one match: the pattern forwards and backwards.
const AUTOMATA: usize = 2;
/// The maximum memory of one match besides the states, in multiples of the compiled size.
const SIMULATION: usize = 3;
/// The states that a thread keeps for later matches: of at most this many patterns, each with at
/// most this many bytes.
const KEPT: (usize, usize) = (8, 64 << 10);
/// The length of a pattern in a message, in characters.
const QUOTED: usize = 160;

/// The compiled patterns of one schema. The document that the validator reads has their numbers in
/// place of their texts, so that no other parser sees a pattern of a value.
pub(super) struct Matchers(Vec<Option<Arc<Matcher>>>);

impl Matchers {
    /// Compiles patterns that have been checked before.
    pub(super) fn new(patterns: &[&str]) -> Self {
        Self(patterns.iter().map(|pattern| Matcher::new(pattern).map(Arc::new)).collect())
    }

    /// Returns the keyword of a subschema.
    pub(super) fn keyword(&self, number: &Value) -> Option<PatternKeyword> {
        let number: usize = number.as_str()?.parse().ok()?;
        Some(Box::new(Pattern(self.0.get(number)?.clone()?)))
    }
}

/// Returns the keyword of a subschema that has the text of the pattern.
pub(super) fn of_text(pattern: &Value) -> Option<PatternKeyword> {
    Some(Box::new(Pattern(Arc::new(Matcher::new(pattern.as_str()?)?))))
}

/// The keyword as the validator takes it.
pub(super) type PatternKeyword = Box<dyn for<'i> Keyword<'i, Metered>>;

struct Pattern(Arc<Matcher>);

impl<'i> Keyword<'i, Metered> for Pattern {
    fn validate(&self, instance: Seen<'i>) -> Result<(), ValidationError<'i>> {
        if self.is_valid(instance) {
            Ok(())
        } else {
            Err(ValidationError::custom(self.0.wanted.clone()))
        }
    }

    fn is_valid(&self, instance: Seen<'i>) -> bool {
        instance.as_string().is_none_or(|text| self.0.matches(&text))
    }
}

/// A compiled pattern.
pub(super) struct Matcher {
    regex: Regex,
    /// Identifies the pattern among all of the process, since states of one do not fit another.
    id: u64,
    /// The maximum memory of one match, in bytes.
    memory: u64,
    wanted: String,
}

thread_local! {
    static STATES_KEPT: RefCell<Vec<(u64, Box<Cache>)>> = const { RefCell::new(Vec::new()) };
}

impl Matcher {
    pub(super) fn new(pattern: &str) -> Option<Self> {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        let reading = Reading::new(&translate(pattern).ok()?).ok()?;
        let config = Config::new()
            .hybrid_cache_capacity(STATES)
            .which_captures(WhichCaptures::Implicit)
            // These need memory that is not in proportion to the compiled size.
            .onepass(false)
            .backtrack(false)
            .dfa(false)
            .auto_prefilter(false);
        let regex = reading.compile(config)?;
        let simulation = regex.memory_usage().saturating_mul(SIMULATION);
        let memory = simulation.saturating_add(AUTOMATA * STATES) as u64;
        let wanted = format!("want a text that matches the pattern {}", elided(pattern, QUOTED));
        Some(Self { regex, id: NEXT.fetch_add(1, Ordering::Relaxed), memory, wanted })
    }

    /// Returns the memory of the compiled pattern, in bytes.
    #[cfg(test)]
    pub(super) fn size(&self) -> usize {
        self.regex.memory_usage()
    }

    /// Returns whether a text matches. False if the call has no memory for it, which ends the run.
    pub(super) fn matches(&self, text: &str) -> bool {
        let Some(_reserved) = Reserved::new(self.memory) else { return false };
        let mut cache = self.take_states();
        let input = Input::new(text).earliest(true);
        // The engine panics for some patterns (rust-lang/regex#1344).
        let search = || self.regex.search_half_with(&mut cache, &input).is_some();
        let Ok(found) = catch_unwind(AssertUnwindSafe(search)) else { return false };
        self.keep_states(cache);
        found
    }

    fn take_states(&self) -> Box<Cache> {
        let kept = STATES_KEPT.with_borrow_mut(|kept| {
            let at = kept.iter().position(|(id, _)| *id == self.id)?;
            Some(kept.remove(at).1)
        });
        kept.unwrap_or_else(|| Box::new(self.regex.create_cache()))
    }

    /// Keeps small states, since making them takes longer than a short match.
    fn keep_states(&self, cache: Box<Cache>) {
        let (count, bytes) = KEPT;
        if cache.memory_usage() > bytes {
            return;
        }
        STATES_KEPT.with_borrow_mut(|kept| {
            if kept.len() >= count {
                kept.remove(0);
            }
            kept.push((self.id, cache));
        });
    }
}
