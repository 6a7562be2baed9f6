//! A plugin that an earlier run has compiled and described: known at once, its code loaded when it is first called.

use super::describe::checked;
use super::interest::{Interest, Wanted};
use super::linked::Linked;
use super::prepare::{Freshness, PluginRefused, Prepared, Trust};
use super::{Sandbox, border, imports};
use crate::execution::Owner;
use crate::tool::Digest;
use crate::tool::schema::Building;
use std::sync::{Arc, OnceLock};
use tokio::sync::{Mutex, OwnedMutexGuard};
use tokio_util::sync::CancellationToken;

/// Gives the bytes of a plugin once more, or says why it cannot.
type Bytes = dyn Fn() -> Result<Vec<u8>, String> + Send + Sync;

/// Where the bytes of a plugin can be had again, should its compiled code be gone when it is called.
pub(crate) struct Origin {
    /// The bytes.
    pub(crate) bytes: Box<Bytes>,
    /// Whose word there is for them.
    pub(crate) trust: Trust,
}

/// The code of a plugin.
pub(super) struct Code {
    linked: OnceLock<Linked>,
    stored: Option<Stored>,
    /// One call loads it, and the others wait for that without holding a thread.
    turn: Arc<Mutex<()>>,
    interest: Arc<Interest>,
}

/// Code that lies in the cache.
struct Stored {
    sandbox: Sandbox,
    origin: Origin,
}

/// Leave to load the code of a plugin. It goes with the work: whoever began it may be gone before it is done.
pub(super) struct Turn(#[allow(dead_code, reason = "held, and nothing else")] OwnedMutexGuard<()>);

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
    /// It takes longer than a call waits; whoever calls later may find it loaded.
    #[error(
        "its compiled code is gone from the cache, and compiling it again takes longer than a call waits; try again later"
    )]
    Slow,
    /// It was loaded, and is not there.
    #[error("the host has mislaid it")]
    Gone,
    /// A dependency failed on it.
    #[error("loading it failed inside the host; the log has the details")]
    Panicked(#[source] tokio::task::JoinError),
    /// The system gives no thread to load it on.
    #[error("the system gives no thread to load it on: {0}; try again later")]
    NoThread(std::io::Error),
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
        let described = about.described();
        let definitions = checked(&described, Building::AtFirstUse).ok()?;
        let offer = described.1;
        let stored = Some(Stored { sandbox: self.clone(), origin });
        let code = Code { linked: OnceLock::new(), stored, turn: Arc::default(), interest: Arc::default() };
        let freshness = Freshness::Cached;
        let owner = Owner::of(digest);
        Some(Arc::new(Prepared { code, digest, imports, definitions, offer, freshness, owner }))
    }
}

impl Prepared {
    /// Loads its code, unless that has been done: from then on it needs neither its file nor the cache. Blocks, and must not be called where futures run.
    pub(crate) fn hold(&self) -> Result<(), String> {
        let wanted = self.code.want();
        let turn = Turn(self.code.turn.clone().blocking_lock_owned());
        self.code.load(self.digest, turn, wanted.given_up()).map_err(|lost| lost.to_string())
    }
}

impl Code {
    pub(super) fn linked(pre: Linked) -> Self {
        Self { linked: OnceLock::from(pre), stored: None, turn: Arc::default(), interest: Arc::default() }
    }

    /// The code, if it has been loaded.
    pub(super) fn get(&self) -> Option<&Linked> {
        self.linked.get()
    }

    /// One more call wants it.
    pub(super) fn want(&self) -> Wanted {
        self.interest.want()
    }

    /// Waits until nobody else loads it.
    pub(super) async fn turn(&self) -> Turn {
        Turn(self.turn.clone().lock_owned().await)
    }

    /// Loads the code of the plugin of this digest, unless somebody has done so. Blocks: for milliseconds, or for as long as compiling takes where the cache has
    /// lost it, and the call that began it is not the last that has given it up.
    pub(super) fn load(&self, digest: Digest, _turn: Turn, given_up: &CancellationToken) -> Result<(), CodeLost> {
        if let (None, Some(stored)) = (self.linked.get(), &self.stored) {
            // Whoever has the turn is alone here.
            let _ = self.linked.set(stored.load(digest, given_up)?);
        }
        Ok(())
    }
}

impl Stored {
    fn load(&self, digest: Digest, given_up: &CancellationToken) -> Result<Linked, CodeLost> {
        let component = match self.sandbox.cache.code(&self.sandbox.runtime.engine, digest) {
            Some(component) => component,
            None => {
                let bytes = (self.origin.bytes)().map_err(CodeLost::Unreadable)?;
                if Digest::of(&bytes) != digest {
                    return Err(CodeLost::Replaced);
                }
                border::check(&bytes).map_err(PluginRefused::from)?;
                self.sandbox.compile(&bytes, digest, self.origin.trust, given_up)?.0
            }
        };
        self.sandbox.link(&component).map_err(CodeLost::from)
    }
}
