//! The names of a release: of its packages in the registries, and of its files.
//!
//! All packages of the program and the SDKs are of the family `palisade-…`, because others own
//! `palisade` in every registry; docs/dist.md has the state of each name.

use super::platform::Platform;

/// The program.
pub(super) const PROGRAM: &str = "palisade";
/// The package that carries the program, on crates.io, PyPI and npm.
pub(super) const PACKAGE: &str = "palisade-cli";
/// The SDKs for Rust, Python and JavaScript, on the same registries.
pub(super) const SDK: &str = "palisade-guest";
/// The version of everything.
pub(super) const VERSION: &str = env!("CARGO_PKG_VERSION");

/// Returns the name of the archive with the program, without its ending: also the directory in it.
pub(super) fn archive(platform: Platform) -> String {
    format!("{PROGRAM}-{VERSION}-{}", platform.triple)
}

/// Returns the name of a package in the names of wheels.
pub(super) fn wheel_stem(package: &str) -> String {
    format!("{}-{VERSION}", package.replace('-', "_"))
}

/// Returns the npm package with the program of a system.
pub(super) fn npm_program(platform: Platform) -> String {
    format!("{PACKAGE}-{}-{}", platform.npm_os, platform.npm_cpu)
}

/// Returns the file of an npm package.
pub(super) fn npm_file(package: &str) -> String {
    format!("{package}-{VERSION}.tgz")
}

/// Returns the name of the archive with the SDK for C, without its ending.
pub(super) fn c_sdk() -> String {
    format!("{SDK}-c-{VERSION}")
}
