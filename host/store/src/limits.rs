//! The limits of transfers, each with its reason.

/// The largest plugin, in bytes: that of a host.
pub const PLUGIN: u64 = palisade::sandbox::limits::COMPONENT;
/// The longest signature, in bytes. Those of minisign have some 300.
pub const SIGNATURE: u64 = 4 << 10;
/// The largest manifest, in bytes. One of this layout has some 500.
pub const MANIFEST: u64 = 256 << 10;
/// The largest answer of a server of tokens, in bytes. A token has up to some 10,000.
pub const TOKEN: u64 = 64 << 10;
/// The largest file of credentials, in bytes.
pub const CREDENTIALS: u64 = 1 << 20;
/// Redirects in a row. Downloads of releases take one or two.
pub const REDIRECTS: usize = 5;
/// The longest source, in bytes.
pub const SOURCE: usize = 2 << 10;
