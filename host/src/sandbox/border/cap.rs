//! The caps of the border, each with its reason. They bound what a compiler may be asked for; none is near to what real plugins have.

use super::BorderRefused;
use crate::sandbox::limits;

/// Components inside each other. Composed plugins have two or three levels.
pub(crate) const NESTING: u64 = 16;
/// Instantiations of core modules and components, multiplied out: what a call can hold. A Python component has some 60, bundles of exports not counted.
pub(crate) const INSTANCES: u64 = limits::INSTANCES as u64;
/// Parts (imports, exports, aliases, canonical functions, instances and their arguments), multiplied out as instances are: the engine takes a step for each. A
/// Python component has some ten thousand.
pub(crate) const PARTS: u64 = 1_000_000;
/// Core modules. A Python component has 14.
pub(crate) const MODULES: u64 = 128;
/// Components, at every level. A composition has one for each of its parts.
pub(crate) const COMPONENTS: u64 = 128;
/// Types, of core modules and of components, with the declarations inside of them. A Python component has some thousand.
pub(crate) const TYPES: u64 = 100_000;
/// Types that contain each other, as far as one component writes them down. The engine itself goes to 100, and recurses.
pub(crate) const TYPE_NESTING: u64 = 64;
/// Fields of a record, elements of a tuple, cases of a variant or names of flags. Each is a value of its own wherever the type is passed.
pub(crate) const TYPE_WIDTH: u64 = 1_000;
/// Imports. A module that is linked dynamically imports each symbol that it uses: some thousand.
pub(crate) const IMPORTS: u64 = 100_000;
/// Exports. Python's library exports all of its symbols: some ten thousand.
pub(crate) const EXPORTS: u64 = 200_000;
/// Aliases of components: one for each symbol that is passed from one instance to another.
pub(crate) const ALIASES: u64 = 200_000;
/// Functions. A JavaScript component has some 25,000.
pub(crate) const FUNCTIONS: u64 = 200_000;
/// Bytes of one function: compilation of one function can take time in the square of its size, and nothing interrupts it. The loop of an interpreter has some
/// hundred thousand.
pub(crate) const FUNCTION: u64 = 1 << 20;
/// Locals of one function: each may live across all of it. The largest of an interpreter have some thousand.
pub(crate) const LOCALS: u64 = 20_000;
/// Globals, tables and memories. A module that is linked dynamically has a global for each symbol that it takes the address of.
/// Each takes 16 bytes of what the engine keeps for the instances of a call, and the imports and functions of its module take more.
pub(crate) const GLOBALS: u64 = limits::INSTANCE_DATA as u64 / 16 - 4_096;
/// Memories of one module, as many as the pool has for one; each has its own reservation. Compilers make one.
pub(crate) const MEMORIES: u64 = 1;
/// Tables of one module, as many as the pool has for one. Compilers make one, and two where they link dynamically.
pub(crate) const TABLES: u64 = limits::MODULE_TABLES as u64;
/// Elements with which a table begins, as many as the pool has for one.
pub(crate) const ELEMENTS: u64 = limits::ELEMENTS_PER_TABLE as u64;
/// Pages of 64 KiB with which a memory begins, as many as the pool has for one.
pub(crate) const PAGES: u64 = limits::MAX_MEMORY >> 16;
/// Segments of data and of elements. A component that was initialised before it was stored has a segment for each run of memory that is not zero.
pub(crate) const SEGMENTS: u64 = 200_000;
/// Bytes of custom sections: names and debug information, of which nothing is compiled. A debug build has some ten megabytes.
pub(crate) const CUSTOM: u64 = 48 << 20;

/// What is counted at the border.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Cap {
    /// Levels of components inside each other.
    Nesting,
    /// Instantiations, multiplied out.
    Instances,
    /// Parts of components, multiplied out.
    Parts,
    /// Core modules.
    Modules,
    /// Components.
    Components,
    /// Types.
    Types,
    /// Levels of types inside each other.
    TypeNesting,
    /// Fields of a record and the like.
    TypeWidth,
    /// Imports.
    Imports,
    /// Exports.
    Exports,
    /// Aliases.
    Aliases,
    /// Functions.
    Functions,
    /// Bytes of one function.
    Function,
    /// Locals of one function.
    Locals,
    /// Globals, tables and memories.
    Globals,
    /// Memories of one module.
    Memories,
    /// Tables of one module.
    Tables,
    /// Elements with which a table begins.
    Elements,
    /// Pages with which a memory begins.
    Pages,
    /// Segments of data and elements.
    Segments,
    /// Bytes of custom sections.
    CustomSections,
}

impl Cap {
    const ALL: usize = Self::CustomSections as usize + 1;

    /// The most that is accepted.
    #[must_use]
    pub fn max(self) -> u64 {
        self.row().0
    }

    /// What is counted, for a sentence.
    #[must_use]
    pub fn what(self) -> &'static str {
        self.row().1
    }

    fn row(self) -> (u64, &'static str) {
        match self {
            Self::Nesting => (NESTING, "levels of components inside each other"),
            Self::Instances => (INSTANCES, "instances, those inside of instantiated components multiplied out"),
            Self::Parts => (PARTS, "parts, those inside of instantiated components multiplied out"),
            Self::Modules => (MODULES, "core modules"),
            Self::Components => (COMPONENTS, "components inside it"),
            Self::Types => (TYPES, "types"),
            Self::TypeNesting => (TYPE_NESTING, "levels of types inside each other"),
            Self::TypeWidth => (TYPE_WIDTH, "fields, elements, cases or names in one type"),
            Self::Imports => (IMPORTS, "imports"),
            Self::Exports => (EXPORTS, "exports"),
            Self::Aliases => (ALIASES, "aliases"),
            Self::Functions => (FUNCTIONS, "functions"),
            Self::Function => (FUNCTION, "bytes in one function"),
            Self::Locals => (LOCALS, "locals in one function"),
            Self::Globals => (GLOBALS, "globals, tables and memories"),
            Self::Memories => (MEMORIES, "memories in one module"),
            Self::Tables => (TABLES, "tables in one module"),
            Self::Elements => (ELEMENTS, "elements with which a table begins"),
            Self::Pages => (PAGES, "pages with which a memory begins"),
            Self::Segments => (SEGMENTS, "segments of data and elements"),
            Self::CustomSections => (CUSTOM, "bytes of custom sections (`wasm-tools strip` removes them)"),
        }
    }

    /// Refuses a number beyond the cap.
    pub(super) fn holds(self, found: impl Number) -> Result<(), BorderRefused> {
        let found = found.number();
        if found <= self.max() { Ok(()) } else { Err(BorderRefused::Cap { cap: self, found }) }
    }
}

/// A count, of whatever width.
pub(super) trait Number {
    fn number(self) -> u64;
}

impl Number for u64 {
    fn number(self) -> u64 {
        self
    }
}

impl Number for u32 {
    fn number(self) -> u64 {
        self.into()
    }
}

impl Number for usize {
    fn number(self) -> u64 {
        self as u64
    }
}

/// What has been counted so far, over all modules and components.
#[derive(Default)]
pub(super) struct Tally([u64; Cap::ALL]);

impl Tally {
    /// Counts, before anything of it is looked at: a claim beyond the cap is refused as such.
    pub(super) fn add(&mut self, cap: Cap, more: impl Number) -> Result<(), BorderRefused> {
        let Some(sum) = self.0.get_mut(cap as usize) else { return Ok(()) };
        *sum = sum.saturating_add(more.number());
        cap.holds(*sum)
    }
}
