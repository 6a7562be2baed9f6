//! The compiled size of a pattern, known before it is compiled.
//!
//! The size is counted from the parsed pattern, in the engine's own units. It is an upper bound:
//! the engine compiles with it as its limit. Only classes beyond ASCII are compiled to be counted,
//! each once for every occurrence, because the engine shares parts of them.

use regex_automata::nfa::thompson::{Compiler, Config, State, WhichCaptures};
use regex_syntax::hir::{Class, ClassUnicode, Hir, HirKind, Look};

use super::MAX_PATTERN_BYTES;

/// The size of one state while an automaton is built, in bytes.
const STATE: usize = 32;
/// The size of a transition for a range of bytes, in bytes.
const TRANSITION: usize = 8;
/// The size of an alternative of a fork, in bytes.
const ALTERNATIVE: usize = 4;
/// The states around each pattern: its beginning, its end, and the search for a match.
const FRAME: usize = 8 * STATE;

/// The size of the automata of a pattern, in bytes.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub(super) struct Size {
    /// Of the one that reads a text forwards.
    pub(super) forwards: usize,
    /// Of the one that reads a text backwards.
    pub(super) backwards: usize,
}

/// Returns the size, or `None` if it is more than a pattern may have.
pub(super) fn of(pattern: &Hir) -> Option<Size> {
    Size::of(pattern)?.plus(Size::both(FRAME))
}

impl Size {
    /// Returns the greater one, which the engine needs as its limit.
    pub(super) fn limit(self) -> usize {
        self.forwards.max(self.backwards)
    }

    /// Returns the size of both automata.
    pub(super) fn together(self) -> usize {
        self.forwards.saturating_add(self.backwards)
    }

    fn both(bytes: usize) -> Self {
        Self { forwards: bytes, backwards: bytes }
    }

    /// Adds within the maximum of a pattern, so that counting ends early for a large one.
    fn plus(self, other: Self) -> Option<Self> {
        let sum = Self {
            forwards: self.forwards.saturating_add(other.forwards),
            backwards: self.backwards.saturating_add(other.backwards),
        };
        (sum.limit() <= MAX_PATTERN_BYTES).then_some(sum)
    }

    fn times(self, count: u32) -> Self {
        let count = count as usize;
        Self {
            forwards: self.forwards.saturating_mul(count),
            backwards: self.backwards.saturating_mul(count),
        }
    }

    fn of(pattern: &Hir) -> Option<Self> {
        match pattern.kind() {
            HirKind::Empty | HirKind::Look(_) => Some(Self::both(STATE)),
            HirKind::Literal(literal) => Self::default().plus(Self::of_literal(literal.0.len())),
            HirKind::Class(class) => Self::default().plus(Self::of_class(class)),
            HirKind::Capture(group) => Self::of(&group.sub)?.plus(Self::both(2 * STATE)),
            HirKind::Concat(parts) => Self::sum(parts),
            HirKind::Alternation(parts) => Self::of_alternatives(parts),
            HirKind::Repetition(repetition) => {
                Self::of_repetition(Self::of(&repetition.sub)?, repetition.min, repetition.max)
            }
        }
    }

    fn sum(parts: &[Hir]) -> Option<Self> {
        parts.iter().try_fold(Self::default(), |sum, part| sum.plus(Self::of(part)?))
    }

    /// One state for each byte.
    fn of_literal(bytes: usize) -> Self {
        Self::both(STATE.saturating_mul(bytes))
    }

    /// The engine may merge alternatives into a tree, which has a fork for each byte at most.
    fn of_alternatives(parts: &[Hir]) -> Option<Self> {
        let of_fork = |part: &Hir| match part.kind() {
            HirKind::Literal(literal) => {
                literal.0.len().saturating_add(1).saturating_mul(STATE + TRANSITION + ALTERNATIVE)
            }
            _ => ALTERNATIVE,
        };
        let forks = parts.iter().map(of_fork).fold(2 * STATE, usize::saturating_add);
        Self::sum(parts)?.plus(Self::both(forks))
    }

    /// Each copy that may be missing has a fork before it.
    fn of_repetition(part: Self, min: u32, max: Option<u32>) -> Option<Self> {
        const FORK: usize = STATE + 2 * ALTERNATIVE;
        let always = part.times(if max.is_none() { min.max(1) } else { min });
        let maybe = max.map_or(0, |max| max.saturating_sub(min));
        let maybe = Self::both(FORK).plus(part)?.times(maybe);
        Self::default().plus(always)?.plus(maybe)?.plus(Self::both(2 * FORK + 2 * STATE))
    }

    fn of_class(class: &Class) -> Self {
        match class {
            Class::Bytes(class) => Self::of_ranges(class.ranges().len()),
            Class::Unicode(class) if class.is_ascii() => Self::of_ranges(class.ranges().len()),
            Class::Unicode(class) => Self {
                forwards: compiled(class, Direction::Forwards),
                backwards: compiled(class, Direction::Backwards),
            },
        }
    }

    fn of_ranges(count: usize) -> Self {
        Self::both(count.saturating_mul(TRANSITION).saturating_add(2 * STATE))
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Direction {
    Forwards,
    Backwards,
}

/// Returns the size of a class alone, while it is built.
fn compiled(class: &ClassUnicode, direction: Direction) -> usize {
    let config = Config::new()
        .reverse(direction == Direction::Backwards)
        .which_captures(WhichCaptures::None)
        .nfa_size_limit(Some(MAX_PATTERN_BYTES));
    // Anchored, so that no search for a match is compiled with it.
    let class = Hir::class(Class::Unicode(class.clone()));
    let class = Hir::concat(vec![Hir::look(Look::Start), class, Hir::look(Look::End)]);
    let Ok(automaton) = Compiler::new().configure(config).build_from_hir(&class) else {
        return usize::MAX;
    };
    let of_state = |state: &State| match state {
        State::Sparse(sparse) => sparse.transitions.len().saturating_mul(TRANSITION),
        State::Union { alternates } => alternates.len().saturating_mul(ALTERNATIVE),
        State::BinaryUnion { .. } => 2 * ALTERNATIVE,
        // Forwards, it is built as a list of transitions.
        State::ByteRange { .. } if direction == Direction::Forwards => TRANSITION,
        _ => 0,
    };
    let states = automaton.states().iter().map(|state| STATE.saturating_add(of_state(state)));
    states.fold(0, usize::saturating_add)
}
