//! Caps of the pre-compilation check, each with its reason. They bound the work that a compiler can
//! be asked for, with a wide margin over real plugins.

use crate::sandbox::limits;

/// Nesting depth of components. Composed plugins have two or three levels.
pub(crate) const NESTING: u64 = 16;
/// Instantiations of core modules and components in one call, with nested components multiplied
/// out. A Python component has about 60, without bundles of exports.
pub(crate) const INSTANCES: u64 = limits::INSTANCES as u64;
/// Parts (imports, exports, aliases, canonical functions, instances and their arguments),
/// multiplied out as instances are. The engine takes one step for each. A Python component has on
/// the order of ten thousand.
pub(crate) const PARTS: u64 = 1_000_000;
/// Core modules. A Python component has 14.
pub(crate) const MODULES: u64 = 128;
/// Components at every level. A composition has one for each of its parts.
pub(crate) const COMPONENTS: u64 = 128;
/// Types of core modules and components, including the declarations inside them. A Python component
/// has on the order of a thousand.
pub(crate) const TYPES: u64 = 100_000;
/// Nesting depth of types within one component. The engine's own limit is 100, and the engine
/// recurses.
pub(crate) const TYPE_NESTING: u64 = 64;
/// Fields of a record, elements of a tuple, cases of a variant or names of flags. Each becomes a
/// separate value wherever the type is passed.
pub(crate) const TYPE_WIDTH: u64 = 1_000;
/// Imports. A dynamically linked module imports each symbol that it uses: on the order of a
/// thousand.
pub(crate) const IMPORTS: u64 = 100_000;
/// Exports. The Python library exports all of its symbols: on the order of ten thousand.
pub(crate) const EXPORTS: u64 = 200_000;
/// Aliases of components: one for each symbol that is passed from one instance to another.
pub(crate) const ALIASES: u64 = 200_000;
/// Functions. A JavaScript component has about 25,000.
pub(crate) const FUNCTIONS: u64 = 200_000;
/// Bytes of one function. Compilation time can be quadratic in the size of a function, and the
/// compilation of a function cannot be interrupted. An interpreter loop has on the order of a
/// hundred thousand bytes.
pub(crate) const FUNCTION: u64 = 1 << 20;
/// Locals of one function. Each may be live across the whole function. The largest functions of an
/// interpreter have on the order of a thousand.
pub(crate) const LOCALS: u64 = 20_000;
/// Globals, tables and memories. A dynamically linked module has a global for each symbol whose
/// address it takes. Each occupies 16 bytes of the engine's instance data of a call; the subtracted
/// 4,096 leave 64 KiB for the imports and functions of the module.
pub(crate) const GLOBALS: u64 = limits::INSTANCE_DATA as u64 / 16 - 4_096;
/// Memories of one module, as many as the pool provides for one. Each has its own reservation.
/// Compilers emit one.
pub(crate) const MEMORIES: u64 = 1;
/// Tables of one module, as many as the pool provides for one. Compilers emit one, or two with
/// dynamic linking.
pub(crate) const TABLES: u64 = limits::MODULE_TABLES as u64;
/// Initial elements of a table, as many as a table of the pool holds.
pub(crate) const ELEMENTS: u64 = limits::ELEMENTS_PER_TABLE as u64;
/// Initial pages (64 KiB) of a memory, as many as a memory of the pool holds.
pub(crate) const PAGES: u64 = limits::MAX_MEMORY >> 16;
/// Data and element segments. A component that was initialised before it was stored has a segment
/// for each run of non-zero memory.
pub(crate) const SEGMENTS: u64 = 200_000;
/// Elements of passive segments, with two more for each such segment. The engine holds 16 bytes for
/// each of them in each instance, which no account counts: 2 MiB with as many instances as a call
/// may have. Compilers emit active segments.
pub(crate) const PASSIVE_ELEMENTS: u64 = 1_024;
/// Bytes of custom sections: names and debug information, which are not compiled. A debug build has
/// on the order of ten megabytes.
pub(crate) const CUSTOM: u64 = 48 << 20;

/// Bytes of the name of a function or module. The engine copies the names of 16 frames at each trap
/// and each deadline. The longest names of C++ templates have a few thousand.
pub(crate) const NAME: u64 = 64 << 10;

/// Bytes of the engine's data of all core instances of a call, with 16 for each global and import
/// of each instance. The pool refuses more, and instances without the pool are judged alike.
pub(crate) const INSTANCE_DATA: u64 = limits::INSTANCE_DATA as u64;

/// Memories and tables of all core instances of a call, as many as the pool provides for one.
/// Instances without the pool are judged alike.
pub(crate) const ALL_MEMORIES: u64 = limits::MEMORIES as u64;
pub(crate) const ALL_TABLES: u64 = limits::TABLES as u64;

/// A quantity that the pre-compilation check counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Cap {
    /// Nesting depth of components.
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
    /// Nesting depth of types.
    TypeNesting,
    /// Fields of a record, or the equivalent in another type.
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
    /// Initial elements of a table.
    Elements,
    /// Initial pages of a memory.
    Pages,
    /// Data and element segments.
    Segments,
    /// Elements of passive segments, with two more for each of these segments.
    PassiveElements,
    /// Bytes of custom sections.
    CustomSections,
    /// Bytes of the name of a function or module.
    Name,
    /// Bytes of the data of all core instances.
    InstanceData,
    /// Memories of all core instances.
    AllMemories,
    /// Tables of all core instances.
    AllTables,
}

impl Cap {
    pub(super) const COUNT: usize = Self::AllTables as usize + 1;

    /// Returns the largest accepted number.
    #[must_use]
    pub fn max(self) -> u64 {
        self.row().0
    }

    /// Returns a description of the counted quantity, for use in a sentence.
    #[must_use]
    pub fn what(self) -> &'static str {
        self.row().1
    }

    fn row(self) -> (u64, &'static str) {
        match self {
            Self::Nesting => (NESTING, "levels of components inside each other"),
            Self::Instances => {
                (INSTANCES, "instances, those inside of instantiated components multiplied out")
            }
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
            Self::PassiveElements => (
                PASSIVE_ELEMENTS,
                "elements in passive segments, and two more for each of these segments",
            ),
            Self::Name => {
                (NAME, "bytes in the name of a function or module (`wasm-tools strip` removes it)")
            }
            Self::InstanceData => (
                INSTANCE_DATA,
                "bytes of globals and imports, those inside of instantiated components multiplied out",
            ),
            Self::AllMemories => {
                (ALL_MEMORIES, "memories, those inside of instantiated components multiplied out")
            }
            Self::AllTables => {
                (ALL_TABLES, "tables, those inside of instantiated components multiplied out")
            }
            Self::CustomSections => {
                (CUSTOM, "bytes of custom sections (`wasm-tools strip` removes them)")
            }
        }
    }
}
