//! The trust in the bytes of a plugin, and the origin of its code.

/// The origin of a plugin's compiled code.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Freshness {
    /// The plugin is compiled in this run.
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
    Untrusted,
}
