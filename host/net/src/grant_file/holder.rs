//! The files that an entry of the grants is for.

use super::PluginEntry;
use palisade::tool::Digest;
use std::fmt;

/// The files that an entry is for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Holder {
    /// The file with these bytes, under any name.
    Digest(Digest),
    /// Each approved file of the plugin's name that this key has signed: its public key in base64.
    Signer(String),
    /// The plugin of this name that is part of the program, in each version of it.
    Shipped,
}

impl Holder {
    /// Returns true if an entry is that of this holder.
    pub(super) fn is_of(&self, plugin: &str, entry: &PluginEntry) -> bool {
        let is_named = matches!(self, Self::Digest(_)) || entry.plugin == plugin;
        is_named && entry.holder == *self
    }
}

impl fmt::Display for Holder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Digest(digest) => write!(f, "{digest}"),
            Self::Signer(key) => write!(f, "signed by {key}"),
            Self::Shipped => f.write_str("shipped"),
        }
    }
}
