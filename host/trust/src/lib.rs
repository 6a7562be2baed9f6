//! Approvals of plugins: which files of other people a person has looked at and allowed.
//!
//! A [`Lock`] records for each approved plugin the digest of its bytes and one hash over all of its
//! words: definitions, resources and prompts. [`Lock::judge`] compares a plugin with it, and says
//! [`State::Approved`] only if both are equal. [`Difference`] describes to a person how a plugin
//! differs from the one that was approved. [`Keys`] verifies minisign signatures when a plugin is
//! approved. [`LockedPlugins`] makes a host of `palisade` obey a lock.
//!
//! ```no_run
//! use palisade::Host;
//! use palisade_trust::LockedPlugins;
//! use std::sync::Arc;
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let locked = LockedPlugins::open("palisade.lock")?;
//! let host = Host::builder().plugins("plugins").approvals(Arc::new(locked)).build()?;
//! for plugin in host.unapproved() {
//!     eprintln!("{} is not approved", plugin.name());
//! }
//! # Ok(())
//! # }
//! ```
//!
//! Each module uses only modules before it in this order: `canonical`, `words`, `fit`, `version`,
//! `shell_word`, `signature`, `lock`, `difference`, `locked`, `review`.

mod canonical;
mod difference;
mod fit;
mod lock;
mod locked;
mod review;
mod shell_word;
mod signature;
mod version;
mod words;

pub use difference::{Difference, Present};
pub use fit::Fit;
pub use lock::{Change, Entry, Locator, Lock, LockError, RevokedBytes, State, ToolEntry};
pub use lock::{installed_file, installed_folder};
pub use locked::{LockedPlugins, Strictness};
pub use review::{Obstacle, Review, ReviewError};
pub use shell_word::shell_word;
pub use signature::{
    Keys, SignatureError, Signer, TrustedKey, Verified, check_form, signature_file,
};
pub use words::{ToolWords, Words, WordsHash};
