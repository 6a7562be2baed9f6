//! Sets of patterns as automata that are built whole when the rules are read. A comparison takes a
//! fixed time for each byte of a path and no memory, whatever the patterns and the path are: rules
//! come from a project's own file too, and a guest chooses the paths.

use globset::Glob;
use regex_automata::dfa::{Automaton as _, StartKind, dense};
use regex_automata::nfa::thompson;
use regex_automata::util::syntax;
use regex_automata::{Anchored, Input, MatchError};

/// The most bytes of one automaton. A list of 128 ordinary patterns takes less.
const MOST_BYTES: usize = 1 << 20;
/// The most bytes that building one automaton takes beside it.
const MOST_BYTES_TO_BUILD: usize = 4 << 20;
/// The most automata of one list: a comparison runs through all of them.
const MOST_AUTOMATA: usize = 4;

/// The automata take more memory than is accepted.
#[derive(Debug)]
pub(super) struct TooLarge;

/// The part of a path that a pattern has to match.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Extent {
    /// The whole path.
    Whole,
    /// The path, or a directory above it. One expression says so: two, with one for everything
    /// below the directory, would have a state for each set of patterns that have matched so far.
    SelfOrAbove,
}

/// The patterns of a list.
pub(super) struct PathSet {
    automata: Vec<dense::DFA<Vec<u32>>>,
    patterns: usize,
}

impl PathSet {
    /// Builds the automata of some patterns: one, or several if one would be too large.
    pub(super) fn new(globs: &[Glob], extent: Extent) -> Result<Self, TooLarge> {
        let expression = |glob: &Glob| match (extent, glob.regex().strip_suffix('$')) {
            (Extent::SelfOrAbove, Some(whole)) => format!("{whole}(?:/|$)"),
            _ => glob.regex().to_owned(),
        };
        let expressions: Vec<String> = globs.iter().map(expression).collect();
        let mut automata = Vec::new();
        build(&expressions, &mut automata)?;
        Ok(Self { automata, patterns: globs.len() })
    }

    /// Returns the number of patterns.
    pub(super) fn len(&self) -> usize {
        self.patterns
    }

    /// Returns true if there is no pattern.
    pub(super) fn is_empty(&self) -> bool {
        self.patterns == 0
    }

    /// Returns true if a pattern matches the path.
    ///
    /// # Errors
    ///
    /// None in fact: these automata search for all bytes.
    pub(super) fn is_match(&self, path: &str) -> Result<bool, MatchError> {
        for automaton in &self.automata {
            let input = Input::new(path).anchored(Anchored::Yes).earliest(true);
            if automaton.try_search_fwd(&input)?.is_some() {
                return Ok(true);
            }
        }
        Ok(false)
    }
}

fn build(expressions: &[String], automata: &mut Vec<dense::DFA<Vec<u32>>>) -> Result<(), TooLarge> {
    if expressions.is_empty() {
        return Ok(());
    }
    if automata.len() == MOST_AUTOMATA {
        return Err(TooLarge);
    }
    let config = dense::Config::new()
        .start_kind(StartKind::Anchored)
        .dfa_size_limit(Some(MOST_BYTES))
        .determinize_size_limit(Some(MOST_BYTES_TO_BUILD));
    let built = dense::Builder::new()
        .configure(config)
        // As the library of the patterns reads its expressions.
        .syntax(syntax::Config::new().utf8(false).dot_matches_new_line(true))
        .thompson(thompson::Config::new().utf8(false).nfa_size_limit(Some(MOST_BYTES_TO_BUILD)))
        .build_many(expressions);
    match (built, expressions.len()) {
        (Ok(automaton), _) => {
            automata.push(automaton);
            Ok(())
        }
        (Err(_), 1) => Err(TooLarge),
        (Err(_), count) => {
            let (first, rest) = expressions.split_at(count / 2);
            build(first, automata)?;
            build(rest, automata)
        }
    }
}
