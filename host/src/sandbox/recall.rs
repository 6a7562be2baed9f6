//! A plugin that an earlier run has compiled and described: known at once, its code loaded when it is first called.

use super::bindings::PluginPre;
use super::describe::checked;
use super::prepare::{Freshness, PluginRefused, Prepared, Trust};
use super::state::State;
use super::{Sandbox, border, imports};
use crate::tool::Digest;
use std::borrow::Cow;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

/// Gives the bytes of a plugin once more, or says why it cannot.
type Bytes = dyn Fn() -> Result<Cow<'static, [u8]>, String> + Send + Sync;

/// Where the bytes of a plugin can be had again, should its compiled code be gone when it is called.
pub(crate) struct Origin {
    /// The bytes.
    pub(crate) bytes: Box<Bytes>,
    /// Whose word there is for them.
    pub(crate) trust: Trust,
}

/// The code of a plugin.
pub(super) struct Code {
    linked: OnceLock<PluginPre<State>>,
    stored: Option<Stored>,
}

/// Code that lies in the cache.
struct Stored {
    sandbox: Sandbox,
    origin: Origin,
    /// One thread loads it, and the others wait for that.
    loading: Mutex<()>,
}

/// Why the code of a plugin that was known cannot be had.
#[derive(Debug, thiserror::Error)]
pub(super) enum CodeLost {
    /// The file is not there or cannot be read.
    #[error("its compiled code is gone from the cache, and {0}")]
    Unreadable(String),
    /// The file holds another plugin by now.
    #[error(
        "its compiled code is gone from the cache, and its file holds another plugin by now; start again to load that"
    )]
    Replaced,
    /// It cannot be compiled or linked any more.
    #[error(transparent)]
    Refused(#[from] PluginRefused),
    /// It was loaded, and is not there.
    #[error("the host has mislaid it")]
    Gone,
    /// A dependency failed on it.
    #[error("loading it failed inside the host; the log has the details")]
    Panicked(#[source] tokio::task::JoinError),
}

impl Sandbox {
    /// A plugin of this digest, if the cache knows what it says of itself and has its code. Whatever is not in order there counts as absent.
    pub(crate) fn recall(&self, digest: Digest, origin: Origin) -> Option<Arc<Prepared>> {
        let engine = &self.runtime.engine;
        let about = self.cache.about(engine, digest)?;
        if !self.cache.has_code(engine, digest) {
            return None;
        }
        let imports = imports::check(about.imports.clone()).ok()?;
        let definitions = checked(&about.described()).ok()?;
        let stored = Stored { sandbox: self.clone(), origin, loading: Mutex::new(()) };
        let code = Code { linked: OnceLock::new(), stored: Some(stored) };
        Some(Arc::new(Prepared { code, digest, imports, definitions, freshness: Freshness::Cached }))
    }
}

impl Code {
    pub(super) fn linked(pre: PluginPre<State>) -> Self {
        Self { linked: OnceLock::from(pre), stored: None }
    }

    /// The code, if it has been loaded.
    pub(super) fn get(&self) -> Option<&PluginPre<State>> {
        self.linked.get()
    }

    /// Loads the code of the plugin of this digest. Blocks: for milliseconds, or for as long as compiling takes where the cache has lost it.
    pub(super) fn load(&self, digest: Digest) -> Result<(), CodeLost> {
        let Some(stored) = &self.stored else { return Ok(()) };
        let _turn = stored.loading.lock().unwrap_or_else(PoisonError::into_inner);
        if self.linked.get().is_none() {
            let pre = stored.load(digest)?;
            // Only one thread comes here.
            let _ = self.linked.set(pre);
        }
        Ok(())
    }
}

impl Stored {
    fn load(&self, digest: Digest) -> Result<PluginPre<State>, CodeLost> {
        let component = match self.sandbox.cache.code(&self.sandbox.runtime.engine, digest) {
            Some(component) => component,
            None => {
                let bytes = (self.origin.bytes)().map_err(CodeLost::Unreadable)?;
                if Digest::of(&bytes) != digest {
                    return Err(CodeLost::Replaced);
                }
                border::check(&bytes).map_err(PluginRefused::from)?;
                self.sandbox.compile(&bytes, digest, self.origin.trust)?.0
            }
        };
        Ok(self.sandbox.link(&component)?)
    }
}
