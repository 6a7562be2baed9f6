//! Makes the target `wasm32-wasip2` usable by a Rust compiler, also where rustup cannot reach its
//! server.
//!
//! If the toolchain has the target's standard library, nothing is done. If it has not, the library
//! is built once from Debian's packages, without a change to the toolchain: see [`target::Target`].
//! The build scripts of this repository use this crate, and so does `palisade build`.

pub mod apt;
pub mod command;
pub mod error;
pub mod sources;
pub mod sysroot;
pub mod target;
pub mod toolchain;

pub use error::Error;
pub use target::{TARGET, Target, lock};
pub use toolchain::Toolchain;
