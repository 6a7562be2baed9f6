//! The kinds of compiled code: the tiers, quickly compiled for a first answer soon or optimised,
//! and the allocation that it is made for.

use super::allocation::Allocation;

/// The kind of code that a compilation makes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct CodeKind {
    pub(crate) allocation: Allocation,
    pub(crate) tier: CodeTier,
}

/// The effort that the compiler spends on code. A higher tier runs faster. All tiers run on the
/// same engine, under the same limits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum CodeTier {
    /// No optimisation. A function takes no more stack than with optimised code, so that a plugin
    /// which recurses deeply has the same room.
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
