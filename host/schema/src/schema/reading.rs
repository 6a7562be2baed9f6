//! A pattern as every part reads it: tokenized once, with its size before it is compiled.

use regex_automata::meta;
use regex_automata::nfa::thompson;
use regex_syntax::hir::Hir;

use super::MAX_PATTERN_BYTES;
use super::size::{self, Size};

/// A pattern that the engine compiles within its counted size.
pub(super) struct Reading {
    parsed: Hir,
    pub(super) size: Size,
}

impl Reading {
    /// Reads a text that the tokenizer has written.
    pub(super) fn new(translated: &str) -> Result<Self, &'static str> {
        let parsed = regex_syntax::parse(translated)
            .map_err(|_| "it names an unknown property, or is nested too deeply")?;
        let size = size::of(&parsed).ok_or("it would compile to more than 1 MiB")?;
        Ok(Self { parsed, size })
    }

    /// Returns whether it contains `\b` or `\B`.
    pub(super) fn has_word_boundary(&self) -> bool {
        self.parsed.properties().look_set().contains_word()
    }

    /// Compiles the pattern, with its counted size as the limit.
    pub(super) fn compile(&self, config: meta::Config) -> Option<meta::Regex> {
        let config = config.nfa_size_limit(Some(self.size.limit()));
        meta::Regex::builder().configure(config).build_from_hir(&self.parsed).ok()
    }

    /// Returns the memory that the engine for names takes for the pattern and keeps for a thread,
    /// in bytes: for a compact automaton, which it makes for patterns with groups, and for a
    /// simulation.
    pub(super) fn memory_for_names(&self) -> usize {
        let config = thompson::Config::new().nfa_size_limit(Some(MAX_PATTERN_BYTES));
        let compiled = thompson::Compiler::new().configure(config).build_from_hir(&self.parsed);
        let kept = self.compile(meta::Config::new().hybrid(false));
        let (Ok(automaton), Some(kept)) = (compiled, kept) else { return usize::MAX };
        // Two lists of states, each with the positions of all groups.
        let state = size_of::<usize>().saturating_mul(1 + automaton.group_info().slot_len());
        let lists = automaton.states().len().saturating_mul(2).saturating_mul(state);
        lists.saturating_add(kept.memory_usage())
    }
}
