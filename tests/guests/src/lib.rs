//! Guests for the suites: each file in `examples/` is a plugin of its own, named after the suite that runs it.
//!
//! They are built by the build script of `palisade-tests`, as components, with the feature `guests`. Without it there is nothing here, so that
//! `cargo test --workspace` does not build them for the machine it runs on.
