//! The reason why a plugin is rejected.

use crate::sandbox::compile::CompileError;
use crate::sandbox::engine::EngineError;
use crate::sandbox::error_text::error_line;
use crate::sandbox::precheck::PrecheckError;
use crate::tool::DefinitionError;
use crate::tool::offer::OfferError;

/// The reason why a plugin is rejected.
#[derive(Debug, Clone, thiserror::Error)]
#[non_exhaustive]
pub enum PluginRefused {
    /// The plugin fails the pre-compilation check: it is not a component, or it exceeds a cap.
    #[error(transparent)]
    Precheck(#[from] PrecheckError),
    /// The plugin does not compile, or not within the limits.
    #[error(transparent)]
    Compile(#[from] CompileError),
    /// This machine cannot run code of the tier that the plugin was compiled to.
    #[error(transparent)]
    Engine(#[from] EngineError),
    /// The plugin has an import that the host does not provide.
    #[error("it imports `{import}`: {reason}")]
    Import {
        /// The name of the import.
        import: String,
        /// The reason why the import is not provided.
        reason: &'static str,
    },
    /// The plugin does not match the world `palisade:tool/plugin`.
    #[error("it is not a palisade:tool@0.1.0 plugin: {0}")]
    World(String),
    /// The plugin has the world of the contract, and was to be adapted as one of another world.
    #[error(
        "it is a plugin of palisade:tool, with tools and classes of its own; load it as a plugin, from a directory that `--plugins` names"
    )]
    Contract,
    /// No function of a component of another world can be a tool.
    #[error("none of its functions can be a tool: {reasons}")]
    NoFunctions {
        /// The reasons, for the first functions.
        reasons: String,
    },
    /// `definitions` failed.
    #[error("asking it for its tools failed: {0}")]
    Describe(String),
    /// `definitions` returned another answer when it was called again.
    #[error(
        "it described its tools in two ways when asked twice; `definitions` must always give the same answer"
    )]
    Unstable,
    /// The plugin has no tools, or too many.
    #[error("it has {0} tools; a plugin has 1 to 256")]
    Count(usize),
    /// The definition of a tool is invalid.
    #[error("its tool `{tool}` is refused: {source}")]
    Tool {
        /// The name of the tool, made printable.
        tool: String,
        /// The fault of the definition.
        source: DefinitionError,
    },
    /// The metadata of a tool is not a JSON object.
    #[error("its tool `{tool}` is refused: the metadata is not a JSON object: {reason}")]
    Metadata {
        /// The name of the tool, made printable.
        tool: String,
        /// The fault of the metadata.
        reason: String,
    },
    /// The metadata of a tool has a hidden character.
    #[error(
        "its tool `{tool}` is refused: its metadata hold the hidden character U+{character:04X} at `{at}`; only visible characters are accepted"
    )]
    HiddenMetadata {
        /// The name of the tool, made printable.
        tool: String,
        /// The position of the character, as a JSON pointer.
        at: String,
        /// The code point of the character.
        character: u32,
    },
    /// The schemas of all tools together are too large.
    #[error("the schemas of its tools are too large; {bytes} bytes of JSON are accepted in all")]
    Schemas {
        /// The accepted size, in bytes.
        bytes: usize,
    },
    /// The parsed schemas and metadata of all tools together take too much memory.
    #[error(
        "the schemas and metadata of its tools take too much memory; {bytes} bytes are accepted in all"
    )]
    Memory {
        /// The accepted memory, in bytes.
        bytes: u64,
    },
    /// The descriptions of all plugins together take too much memory.
    #[error(
        "its description takes {bytes} bytes, with the copies for clients and the validators of its schemas; beside the other plugins {accepted} bytes are accepted, half of what is left for plugins with the same state of approval within half of `limits.total_memory`"
    )]
    NoRoom {
        /// The memory of the description, its copies and its validators, in bytes.
        bytes: u64,
        /// The accepted memory, in bytes.
        accepted: u64,
    },
    /// The schemas of a tool do not fit in the limited address space of the process.
    #[error(
        "the schemas of one of its tools may take {bytes} bytes, which the process does not have; let it use more memory (`ulimit -v` and `-d`)"
    )]
    NoAddressSpace {
        /// The memory that the schemas may take, in bytes.
        bytes: u64,
    },
    /// The schemas of all tools together have too many patterns.
    #[error(
        "the schemas of its tools have too many patterns, with `{keyword}` at `{pointer}` of the {schema} schema of `{tool}`; at most {count} patterns, {bytes} bytes when compiled, in total"
    )]
    Patterns {
        /// The name of the tool with the first pattern beyond the limit, made printable.
        tool: String,
        /// Which of its schemas: `input` or `output`.
        schema: &'static str,
        /// The keyword of the pattern: `pattern` or `patternProperties`.
        keyword: &'static str,
        /// The position of the pattern, as a JSON pointer.
        pointer: String,
        /// The accepted number of patterns.
        count: usize,
        /// The accepted size of the compiled patterns, in bytes.
        bytes: usize,
    },
    /// The resources or prompts of the plugin are invalid.
    #[error(transparent)]
    Offer(#[from] OfferError),
    /// Two tools have the same name.
    #[error("it has two tools named `{0}`")]
    TwiceNamed(String),
}

impl PluginRefused {
    /// Returns true if a grant of an operator may remove the reason.
    pub(crate) fn lacks_grant(&self) -> bool {
        matches!(self, Self::Import { import, .. } if import.starts_with("wasi:http/"))
    }
}

/// Returns the error of a plugin that does not match the world of the contract.
pub(crate) fn world_mismatch(error: &wasmtime::Error) -> PluginRefused {
    PluginRefused::World(format!(
        "{}; its world must match wit/world.wit, unless it is adapted as a component of another world",
        error_line(error)
    ))
}
