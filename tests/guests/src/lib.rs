//! Guests for the suites: each file in `examples/` is a plugin, named after the suite that runs it.
//!
//! The build script of `palisade-tests` builds them as components, with the feature `guests`.
//! Without the feature this package is empty, so that `cargo test --workspace` does not build them
//! for the native target.
