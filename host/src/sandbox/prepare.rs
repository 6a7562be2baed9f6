//! From bytes to a plugin that can be called: the border that every plugin has to pass.

use super::Sandbox;
use super::border::{self, BorderRefused};
use super::cache::About;
use super::compile::{self, CompileError, Compiled, Compiler};
use super::engine::Allocation;
use super::imports::{self, Import};
use super::linked::Linked;
use super::recall::Code;
use crate::execution::Owner;
use crate::tool::offer::{Offer, OfferError};
use crate::tool::text::{cut, visible};
use crate::tool::{Definition, DefinitionError, Digest};
use std::sync::Arc;
use tokio_util::sync::CancellationToken;
use wasmtime::component::Component;

/// A plugin that is compiled and described. Its code is linked, or still on disk until its first call.
pub struct Prepared {
    pub(super) code: Code,
    pub(super) digest: Digest,
    pub(super) imports: Vec<Import>,
    pub(super) definitions: Vec<Definition>,
    pub(super) offer: Offer,
    pub(super) freshness: Freshness,
    /// What all calls of it share.
    pub(super) owner: Owner,
}

/// Where the compiled code of a plugin came from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Freshness {
    /// It was compiled just now.
    Compiled,
    /// It was in the cache.
    Cached,
}

/// Whose word there is for the bytes of a plugin.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Trust {
    /// They are part of this program: whoever could change them could change it.
    Embedded,
    /// Nobody's.
    Nobody,
}

/// Why a plugin is refused.
#[derive(Debug, Clone, thiserror::Error)]
#[non_exhaustive]
pub enum PluginRefused {
    /// It does not pass the border: no component, or more than a compiler should be asked for.
    #[error(transparent)]
    Border(#[from] BorderRefused),
    /// It does not compile, or not within the limits.
    #[error(transparent)]
    Compile(#[from] CompileError),
    /// It imports what nothing answers.
    #[error("it imports `{import}`: {reason}")]
    Import {
        /// The import.
        import: String,
        /// Why it cannot be had.
        reason: &'static str,
    },
    /// It does not have the shape of `palisade:tool/plugin`.
    #[error("it is not a palisade:tool@0.1.0 plugin: {0}")]
    World(String),
    /// `definitions` failed.
    #[error("asking it for its tools failed: {0}")]
    Describe(String),
    /// `definitions` answered differently when asked again.
    #[error("it described its tools in two ways when asked twice; `definitions` must always give the same answer")]
    Unstable,
    /// It has no tools, or too many.
    #[error("it has {0} tools; a plugin has 1 to 256")]
    Count(usize),
    /// One of its tools is not acceptable.
    #[error("its tool `{tool}` is refused: {source}")]
    Tool {
        /// The name that the tool goes by, made fit to print.
        tool: String,
        /// What is wrong.
        source: DefinitionError,
    },
    /// One of its tools has metadata that is not a JSON object.
    #[error("its tool `{tool}` is refused: the metadata is not a JSON object: {reason}")]
    Metadata {
        /// The tool.
        tool: String,
        /// What is wrong.
        reason: String,
    },
    /// The metadata of one of its tools hide something from a reader.
    #[error(
        "its tool `{tool}` is refused: its metadata hold the hidden character U+{character:04X} at `{at}`; only visible characters are accepted"
    )]
    HiddenMetadata {
        /// The tool.
        tool: String,
        /// Where it stands, as a JSON pointer.
        at: String,
        /// The character's number.
        character: u32,
    },
    /// The schemas of its tools are too large together.
    #[error("the schemas of its tools are too large; {bytes} bytes of JSON are accepted in all")]
    Schemas {
        /// How large they may be, in bytes.
        bytes: usize,
    },
    /// The schemas of its tools have too many patterns.
    #[error("the schemas of its tools have too many patterns; {count} of {bytes} bytes compiled are accepted in all")]
    Patterns {
        /// How many are accepted.
        count: usize,
        /// How large they may be, in bytes.
        bytes: usize,
    },
    /// What it offers besides tools is not acceptable.
    #[error(transparent)]
    Offer(#[from] OfferError),
    /// Two of its tools have one name.
    #[error("it has two tools named `{0}`")]
    TwiceNamed(String),
}

impl Sandbox {
    /// Compiles, links and describes a plugin. Blocks for as long as that takes: up to seconds for a large plugin that is not in the cache.
    ///
    /// # Errors
    ///
    /// [`PluginRefused`] with the reason; nothing of the plugin is kept then.
    pub fn prepare(&self, bytes: &[u8], trust: Trust) -> Result<Arc<Prepared>, PluginRefused> {
        self.prepare_hashed(bytes, Digest::of(bytes), trust, &CancellationToken::new())
    }

    /// As [`prepare`](Self::prepare), with bytes that have just been hashed, until it is given up.
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
        self.cache.keep_about(&self.runtime.engine, digest, &About::new(imports, &described.0, &described.1));
        Ok(Arc::new(Prepared {
            code: Code::linked(pre),
            digest,
            imports: checked,
            definitions,
            offer: described.1,
            freshness,
            owner: Owner::of(digest),
        }))
    }

    /// Whether these bytes may be compiled at all.
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
        // What comes with the host is part of it: an attempt that fails says nothing of another.
        let keeps_verdicts = trust == Trust::Nobody;
        if keeps_verdicts {
            if let Some(refusal) = self.cache.refusal(engine, digest, self.compiler.limits()) {
                return Err(refusal.into());
            }
            self.cache.begin_compilation(engine, digest);
        }
        let compiled = match (&self.compiler, trust, self.runtime.allocation) {
            // Where the address space is short, a compiler that finds none ends its process: better that of a child.
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

/// What earlier runs know of a plugin that has no code in the cache.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Tried {
    /// Nothing, as far as this cache knows.
    Never,
    /// Compiling it was begun, and did not come to an end.
    Before,
}

impl Sandbox {
    /// Whether compiling a plugin was tried before.
    ///
    /// # Errors
    ///
    /// [`PluginRefused`] where an earlier run has found that it does not compile within the limits.
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
    /// Its tools, in its own order.
    #[must_use]
    pub fn definitions(&self) -> &[Definition] {
        &self.definitions
    }

    /// What it offers besides tools.
    #[must_use]
    pub fn offer(&self) -> &Offer {
        &self.offer
    }

    /// What it imports.
    #[must_use]
    pub fn imports(&self) -> &[Import] {
        &self.imports
    }

    /// The SHA-256 of its bytes.
    #[must_use]
    pub fn digest(&self) -> Digest {
        self.digest
    }

    /// Whether it had to be compiled.
    #[must_use]
    pub fn freshness(&self) -> Freshness {
        self.freshness
    }
}

pub(super) fn world(error: &wasmtime::Error) -> PluginRefused {
    PluginRefused::World(format!("{}; its world must match wit/world.wit", brief(error)))
}

/// An error of the engine on one line, without what only its developers can use.
pub(super) fn brief(error: &wasmtime::Error) -> String {
    shown(&format!("{error:#}"))
}

pub(super) fn shown(text: &str) -> String {
    visible(cut(text, 1024)).replace('\n', " ")
}
