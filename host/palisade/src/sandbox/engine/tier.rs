//! The kinds of compiled code: the tiers, quickly compiled for a first answer soon or optimised,
//! and the allocation that it is made for.

use super::allocation::Allocation;
use crate::sandbox::limits;

/// The kind of code that a compilation makes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct CodeKind {
    pub(crate) allocation: Allocation,
    pub(crate) tier: CodeTier,
}

impl CodeKind {
    /// Returns the size of the large stack that a call of this code has and reserves, in bytes.
    ///
    /// Quickly compiled code for the pool is made with single-pass register allocation: each value
    /// has a place of its own on the stack, so that a function takes up to fifty times the stack of
    /// optimised code. Without the pool the address space is too short for such stacks.
    pub(crate) fn counted_stack(self) -> Option<u64> {
        match (self.tier, self.allocation) {
            (CodeTier::Baseline, Allocation::Pooled) => Some(limits::BASELINE_STACK),
            (CodeTier::Baseline, Allocation::OnDemand | Allocation::Scarce)
            | (CodeTier::Optimized, _) => None,
        }
    }
}

/// The effort that the compiler spends on code. A higher tier runs faster. Each tier has an engine
/// of its own, and all of them have the same limits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum CodeTier {
    /// No optimisation.
    Baseline,
    /// Optimised code.
    Optimized,
}

/// The order in which the tiers of a plugin's code are compiled.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum CompileStrategy {
    /// A plugin is ready after a quick compilation, and its first calls run more slowly. Its
    /// optimised code is compiled in the background and serves the calls from then on. A process
    /// that ends within a second of loading leaves that to a later one.
    #[default]
    BaselineFirst,
    /// A plugin is ready once its optimised code is compiled.
    OptimizedOnly,
}

impl CompileStrategy {
    /// Returns the tier that a plugin needs before it is called.
    pub(crate) fn first(self) -> CodeTier {
        match self {
            Self::BaselineFirst => CodeTier::Baseline,
            Self::OptimizedOnly => CodeTier::Optimized,
        }
    }
}

impl CodeTier {
    /// Every tier, the fastest code first.
    pub(crate) const FASTEST_FIRST: [Self; 2] = [Self::Optimized, Self::Baseline];

    /// Returns the tiers from this one up, the fastest code first.
    pub(crate) fn and_above(self) -> impl Iterator<Item = Self> {
        Self::FASTEST_FIRST.into_iter().filter(move |tier| *tier >= self)
    }

    /// Returns the name on the command line of a compiling child.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Baseline => "baseline",
            Self::Optimized => "optimized",
        }
    }

    /// Returns the tier of this name.
    pub(crate) fn from_name(name: &str) -> Option<Self> {
        Self::FASTEST_FIRST.into_iter().find(|tier| tier.name() == name)
    }
}
