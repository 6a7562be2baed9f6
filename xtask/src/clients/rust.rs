//! Builds the Rust client. Its crate is outside of the workspace, so that it affects neither the
//! lock file nor the features of the shipped crates.

use crate::place::Place;
use crate::reach::Reach;
use anyhow::{Context as _, ensure};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// The sources and the lock file of the client.
const SOURCES: &str = "tests/clients/rust";
/// The name of the client's program.
const PROGRAM: &str = "palisade-client-in-rust";

/// The result of building the client.
pub(super) enum Built {
    /// The path of the program.
    At(PathBuf),
    /// Its packages are not available, for this reason.
    OutOfReach(String),
}

/// Builds the client into `directory`, from the exact versions of its lock file.
pub(super) fn build(place: &Place, directory: &Path) -> anyhow::Result<Built> {
    let fetched =
        cargo(place, "fetch").stdin(Stdio::null()).output().context("running cargo fetch")?;
    if !fetched.status.success() {
        return REACH.reason(&String::from_utf8_lossy(&fetched.stderr)).map(Built::OutOfReach);
    }
    let mut build = cargo(place, "build");
    // All packages are downloaded by now, so that the registry is not queried again.
    build.args(["--offline", "--target-dir"]).arg(directory);
    ensure!(
        build.status().context("running cargo build")?.success(),
        "the client in Rust does not compile"
    );
    let program = directory.join("debug").join(PROGRAM);
    ensure!(program.is_file(), "cargo has built no {}", program.display());
    Ok(Built::At(program))
}

fn cargo(place: &Place, verb: &str) -> Command {
    let mut cargo = Command::new(env!("CARGO"));
    cargo.current_dir(&place.root).args([verb, "--locked", "--manifest-path"]);
    cargo.arg(place.root.join(SOURCES).join("Cargo.toml"));
    cargo
}

/// The messages of cargo about an unreachable registry.
const REACH: Reach = Reach {
    signs: &[
        "Could not resolve",
        "Couldn't resolve",
        "Could not connect",
        "Couldn't connect",
        "Failed to connect",
        "SSL connect error",
        "Timeout was reached",
        "Connection reset",
        "--offline was specified",
    ],
    out_of_reach: "its packages cannot be had from cargo's registry",
    no_good: "cargo cannot fetch what the client in Rust is made of",
};

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unreachable_registry_differs_from_an_outdated_lock_file() {
        let said = "error: download of config.json failed\n\nCaused by:\n  [7] Could not connect to server (Failed to connect)\n";
        assert!(REACH.reason(said).is_ok_and(|why| why.ends_with("(Failed to connect)")));
        assert!(
            REACH
                .reason(
                    "error: cannot update the lock file because --locked was passed to prevent this"
                )
                .is_err()
        );
        assert!(REACH.reason("error: failed to verify the checksum of `rmcp v3.9.0`").is_err());
    }
}
