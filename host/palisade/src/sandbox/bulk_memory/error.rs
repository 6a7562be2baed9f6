//! The reason why bulk memory instructions cannot be split.

/// The reason why bulk memory instructions cannot be split. The engine would reject most of these
/// components as well.
#[derive(Debug, Clone, thiserror::Error)]
pub(in crate::sandbox) enum SliceError {
    /// The component cannot be parsed.
    #[error(transparent)]
    Malformed(#[from] wasmparser::Error),
    /// A component or core module has the header of another format.
    #[error("it is not a component in binary form, or a part of it is not what its section says")]
    Header,
    /// The components are nested more deeply than the pre-compilation check accepts.
    #[error("components are nested too deeply")]
    Nesting,
    /// A section occurs twice in a core module.
    #[error("a core module has two sections of one kind")]
    TwoSections,
    /// A function has no type, or a type that is no function type.
    #[error("a core module has a function without a type")]
    NoType,
    /// A module uses bulk memory instructions on too many memories and data segments.
    #[error(
        "a core module copies or fills memory in more than {max} combinations of memories and large data segments"
    )]
    SlowPaths {
        /// The most combinations.
        max: usize,
    },
    /// A module uses imported functions with too many parameters.
    #[error(
        "a core module uses imported functions with too many parameters: at most {max} in all, with two more for each function"
    )]
    Imports {
        /// The most parameters of all used imports, with two more for each.
        max: u32,
    },
    /// A reference to a function cannot be written again.
    #[error("the tables, globals or element segments of a core module cannot be prepared: {0}")]
    References(String),
    /// A number in the rewritten component does not fit its format.
    #[error("it is too large to be prepared for compilation")]
    TooLarge,
}
