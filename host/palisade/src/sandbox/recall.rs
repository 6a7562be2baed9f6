//! A plugin that an earlier run has compiled and described: it is known at once, and its code is
//! loaded at the first call.

use super::describe::checked;
use super::guest_files::GuestFiles;
use super::linked::Linked;
use super::prepare::{Freshness, PluginRefused, Prepared, Trust};
use super::{Sandbox, border, imports};
use crate::execution::Owner;
use crate::tool::Digest;
use crate::tool::schema::Building;
use std::sync::{Arc, OnceLock};
use tokio::sync::{Mutex, OwnedMutexGuard};
use tokio_util::sync::CancellationToken;

/// A function that returns the bytes of a plugin again, or the reason why it cannot.
type Bytes = dyn Fn() -> Result<Vec<u8>, String> + Send + Sync;

/// The source of a plugin's bytes, for the case that its compiled code is gone at the first call.
pub(crate) struct Origin {
    /// The function that returns the bytes.
    pub(crate) bytes: Box<Bytes>,
    /// The trust in the bytes.
    pub(crate) trust: Trust,
}

/// The code of a plugin.
pub(super) struct Code {
    linked: OnceLock<Linked>,
    stored: Option<Stored>,
    /// The loading lock. One call holds it and loads the code; the others wait without holding a
    /// thread.
    turn: Arc<Mutex<()>>,
}

/// Code that is in the cache.
struct Stored {
    sandbox: Sandbox,
    origin: Origin,
}

/// The loading lock, held. It moves with the work, because the call that began the work may end
/// first.
pub(super) struct Turn(#[allow(dead_code, reason = "held, and nothing else")] OwnedMutexGuard<()>);

/// The reason why the code of a known plugin cannot be loaded.
#[derive(Debug, thiserror::Error)]
pub(super) enum CodeLost {
    /// The file is missing or cannot be read.
    #[error("its compiled code is gone from the cache, and {0}")]
    Unreadable(String),
    /// The file holds another plugin now.
    #[error(
        "its compiled code is gone from the cache, and its file holds another plugin by now; start again to load that"
    )]
    Replaced,
    /// The plugin no longer compiles or links.
    #[error(transparent)]
    Refused(#[from] PluginRefused),
    /// The compilation takes longer than a call waits. A later call may find the code loaded.
    #[error(
        "its compiled code is gone from the cache, and compiling it again takes longer than a call waits; try again later"
    )]
    Slow,
    /// Internal error: the code is missing after it was loaded.
    #[error("internal error: its compiled code is missing after loading")]
    Gone,
    /// A dependency panicked.
    #[error("loading it failed inside the host; the log has the details")]
    Panicked(#[source] tokio::task::JoinError),
    /// The system has no thread to load the code on.
    #[error("the system gives no thread to load it on: {0}; try again later")]
    NoThread(std::io::Error),
}

impl Sandbox {
    /// Returns the plugin with this digest, if the cache has its description and its code. A faulty
    /// entry counts as absent.
    pub(crate) fn recall(&self, digest: Digest, origin: Origin) -> Option<Arc<Prepared>> {
        let engine = &self.runtime.engine;
        let about = self.cache.about(engine, digest)?;
        if !self.cache.has_code(engine, digest) {
            return None;
        }
        let imports = imports::check(about.imports.clone()).ok()?;
        let described = about.described();
        let definitions = checked(&described, Building::AtFirstUse).ok()?;
        let offer = described.1;
        let stored = Some(Stored { sandbox: self.clone(), origin });
        let code = Code { linked: OnceLock::new(), stored, turn: Arc::default() };
        let freshness = Freshness::Cached;
        let owner = Owner::of(digest);
        let files = GuestFiles::new(&owner);
        Some(Arc::new(Prepared {
            code,
            digest,
            imports,
            definitions,
            offer,
            freshness,
            owner,
            files,
        }))
    }
}

impl Prepared {
    /// Loads the code, unless it is loaded. From then on neither the file nor the cache is needed.
    /// Blocks; must not be called in an async context.
    pub(crate) fn hold(&self) -> Result<(), String> {
        let turn = Turn(self.code.turn.clone().blocking_lock_owned());
        self.code.load(self.digest, turn).map_err(|lost| lost.to_string())
    }
}

impl Code {
    pub(super) fn linked(pre: Linked) -> Self {
        Self { linked: OnceLock::from(pre), stored: None, turn: Arc::default() }
    }

    /// Returns the code, if it is loaded.
    pub(super) fn get(&self) -> Option<&Linked> {
        self.linked.get()
    }

    /// Waits for the loading lock.
    pub(super) async fn turn(&self) -> Turn {
        Turn(self.turn.clone().lock_owned().await)
    }

    /// Loads the code of the plugin with this digest, unless it is loaded. Blocks for milliseconds,
    /// or for a whole compilation if the code is gone from the cache.
    pub(super) fn load(&self, digest: Digest, _turn: Turn) -> Result<(), CodeLost> {
        if let (None, Some(stored)) = (self.linked.get(), &self.stored) {
            // Cannot fail: the caller holds the loading lock.
            let _ = self.linked.set(stored.load(digest)?);
        }
        Ok(())
    }
}

impl Stored {
    fn load(&self, digest: Digest) -> Result<Linked, CodeLost> {
        let component = match self.sandbox.cache.code(&self.sandbox.runtime.engine, digest) {
            Some(component) => component,
            None => {
                let bytes = (self.origin.bytes)().map_err(CodeLost::Unreadable)?;
                if Digest::of(&bytes) != digest {
                    return Err(CodeLost::Replaced);
                }
                border::check(&bytes).map_err(PluginRefused::from)?;
                // Not cancelled with the call: the compiler has limits of its own, and later calls
                // use the result.
                let uncancelled = CancellationToken::new();
                self.sandbox.compile(&bytes, digest, self.origin.trust, &uncancelled)?.0
            }
        };
        self.sandbox.link(&component).map_err(CodeLost::from)
    }
}
