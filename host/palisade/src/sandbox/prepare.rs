//! Preparation of a plugin: the pre-compilation check, compilation, linking and description.

use super::Sandbox;
use super::border::{self, BorderRefused};
use super::cache::About;
use super::compile::{self, CompileError, Compiled, Compiler};
use super::engine::Allocation;
use super::guest_files::GuestFiles;
use super::imports::{self, Import};
use super::linked::Linked;
use super::recall::Code;
use crate::execution::Owner;
use crate::tool::offer::{Offer, OfferError};
use crate::tool::text::{cut, visible};
use crate::tool::{Definition, DefinitionError, Digest};
use std::fmt;
use std::sync::Arc;
use tokio_util::sync::CancellationToken;
use wasmtime::component::Component;

/// A plugin that is compiled and described. Its code is linked, or remains on disk until the first
/// call.
pub struct Prepared {
    pub(super) code: Code,
    pub(super) digest: Digest,
    pub(super) imports: Vec<Import>,
    pub(super) definitions: Vec<Definition>,
    pub(super) offer: Offer,
    pub(super) freshness: Freshness,
    /// The shares that all calls of the plugin use.
    pub(super) owner: Owner,
    /// The resources that the file systems of all calls of the plugin share.
    pub(super) files: Arc<GuestFiles>,
}

impl fmt::Debug for Prepared {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Prepared")
            .field("digest", &self.digest)
            .field("freshness", &self.freshness)
            .finish_non_exhaustive()
    }
}

/// The origin of a plugin's compiled code.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Freshness {
    /// The plugin was compiled just now.
    Compiled,
    /// The code was in the cache.
    Cached,
}

/// The trust in the bytes of a plugin.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Trust {
    /// The bytes are part of this program, so changing them means changing the program.
    Embedded,
    /// The bytes are not trusted.
    Nobody,
}

/// The reason why a plugin is rejected.
#[derive(Debug, Clone, thiserror::Error)]
#[non_exhaustive]
pub enum PluginRefused {
    /// The plugin fails the pre-compilation check: it is not a component, or it exceeds a cap.
    #[error(transparent)]
    Border(#[from] BorderRefused),
    /// The plugin does not compile, or not within the limits.
    #[error(transparent)]
    Compile(#[from] CompileError),
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
    /// The schemas of all tools together have too many patterns.
    #[error(
        "the schemas of its tools have too many patterns; {count} of {bytes} bytes compiled are accepted in all"
    )]
    Patterns {
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

impl Sandbox {
    /// Compiles, links and describes a plugin. Blocks meanwhile: for seconds where a large plugin
    /// is not in the cache. Must not be called on a thread of a running tokio runtime.
    ///
    /// # Errors
    ///
    /// Returns [`PluginRefused`] with the reason. Compiled code may remain in the cache.
    pub fn prepare(&self, bytes: &[u8], trust: Trust) -> Result<Arc<Prepared>, PluginRefused> {
        self.prepare_hashed(bytes, Digest::of(bytes), trust, &CancellationToken::new())
    }

    /// Prepares a plugin as [`prepare`](Self::prepare) does, from bytes that have just been hashed,
    /// until `given_up` is cancelled.
    pub(crate) fn prepare_hashed(
        &self,
        bytes: &[u8],
        digest: Digest,
        trust: Trust,
        given_up: &CancellationToken,
    ) -> Result<Arc<Prepared>, PluginRefused> {
        border::check(bytes)?;
        let (component, freshness) = self.compile(bytes, digest, trust, given_up)?;
        let imports = imports::of(&self.runtime.engine, &component);
        let checked = imports::check(imports.clone())?;
        let pre = self.link(&component)?;
        let (described, definitions) = self.describe(&pre, digest)?;
        self.cache.keep_about(
            &self.runtime.engine,
            digest,
            &About::new(imports, &described.0, &described.1),
        );
        let owner = Owner::of(digest);
        Ok(Arc::new(Prepared {
            code: Code::linked(pre),
            digest,
            imports: checked,
            definitions,
            offer: described.1,
            freshness,
            files: GuestFiles::new(&owner),
            owner,
        }))
    }

    /// Runs the pre-compilation check.
    pub(crate) fn check(&self, bytes: &[u8]) -> Result<(), PluginRefused> {
        Ok(border::check(bytes)?)
    }

    pub(super) fn link(&self, component: &Component) -> Result<Linked, PluginRefused> {
        let pre = self.runtime.linker.instantiate_pre(component).map_err(|error| world(&error))?;
        Linked::new(pre).map_err(|error| world(&error))
    }

    pub(super) fn compile(
        &self,
        bytes: &[u8],
        digest: Digest,
        trust: Trust,
        given_up: &CancellationToken,
    ) -> Result<(Component, Freshness), PluginRefused> {
        let engine = &self.runtime.engine;
        if let Some(component) = self.cache.code(engine, digest) {
            return Ok((component, Freshness::Cached));
        }
        // An embedded plugin is part of the host, so a failed attempt says nothing about the next
        // one.
        let keeps_verdicts = trust == Trust::Nobody;
        if keeps_verdicts {
            if let Some(refusal) = self.cache.refusal(engine, digest, self.compiler.limits()) {
                return Err(refusal.into());
            }
            self.cache.begin_compilation(engine, digest);
        }
        let compiled = match (&self.compiler, trust, self.runtime.allocation) {
            // Where the address space is short, a compiler that runs out of it aborts its process,
            // so a child compiles embedded plugins as well.
            (Compiler::Child(child), Trust::Nobody, _)
            | (Compiler::Child(child), _, Allocation::OnDemand | Allocation::Scarce) => {
                compile::in_child(&self.runtime, child, bytes, given_up)
            }
            (Compiler::InProcess(limits), Trust::Nobody, _) => {
                compile::on_a_thread(&self.runtime, *limits, bytes, given_up)
            }
            (_, Trust::Embedded, _) => compile::in_place(&self.runtime, bytes),
        };
        if keeps_verdicts {
            self.cache.end_compilation(engine, digest, compiled.as_ref().map(|_| ()));
        }
        let Compiled { component, code } = compiled?;
        self.cache.keep_code(engine, digest, &code);
        Ok((component, Freshness::Compiled))
    }
}

/// The outcome of earlier compilations of a plugin that has no code in the cache.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Tried {
    /// No compilation, as far as this cache knows.
    Never,
    /// A compilation that was begun and did not finish.
    Before,
}

impl Sandbox {
    /// Returns whether an earlier run has begun to compile the plugin.
    ///
    /// # Errors
    ///
    /// Returns [`PluginRefused`] if an earlier run found that the plugin does not compile within
    /// the limits.
    pub(crate) fn tried(&self, digest: Digest, trust: Trust) -> Result<Tried, PluginRefused> {
        let engine = &self.runtime.engine;
        if trust == Trust::Embedded || self.cache.has_code(engine, digest) {
            return Ok(Tried::Never);
        }
        match self.cache.refusal(engine, digest, self.compiler.limits()) {
            Some(refusal) => Err(refusal.into()),
            None if self.cache.was_tried(engine, digest) => Ok(Tried::Before),
            None => Ok(Tried::Never),
        }
    }
}

impl Prepared {
    /// Returns the tools, in the plugin's order.
    #[must_use]
    pub fn definitions(&self) -> &[Definition] {
        &self.definitions
    }

    /// Returns the resources and prompts.
    #[must_use]
    pub fn offer(&self) -> &Offer {
        &self.offer
    }

    /// Returns the imports.
    #[must_use]
    pub fn imports(&self) -> &[Import] {
        &self.imports
    }

    /// Returns the SHA-256 digest of the plugin's bytes.
    #[must_use]
    pub fn digest(&self) -> Digest {
        self.digest
    }

    /// Returns whether the code was compiled or taken from the cache.
    #[must_use]
    pub fn freshness(&self) -> Freshness {
        self.freshness
    }
}

pub(super) fn world(error: &wasmtime::Error) -> PluginRefused {
    PluginRefused::World(format!("{}; its world must match wit/world.wit", brief(error)))
}

/// Returns an engine error on one line, without its backtrace, cut and made printable.
pub(super) fn brief(error: &wasmtime::Error) -> String {
    shown(&format!("{error:#}"))
}

/// Makes text of a plugin, or of a child that it may have compromised, printable on one line.
pub(super) fn shown(text: &str) -> String {
    visible(cut(text, 1024)).replace('\n', " ")
}
