//! Builds and runs the soak tests of `tests/src/bin/soak.rs` in release mode.

use crate::place::Place;
use anyhow::{Context as _, ensure};
use std::process::Command;

/// Passes the remaining arguments, which select runs and their duration.
pub(crate) fn run(place: &Place) -> anyhow::Result<()> {
    // All programs, because one of the runs kills another program.
    cargo(place, &["build", "--bins"], std::iter::empty())?;
    cargo(place, &["run", "--bin", "soak"], std::env::args().skip(2))
        .context("a bound does not hold; see above")
}

fn cargo(
    place: &Place,
    words: &[&str],
    arguments: impl Iterator<Item = String>,
) -> anyhow::Result<()> {
    let mut cargo = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    cargo.args(words).args(["--release", "--package", "palisade-tests"]).current_dir(&place.root);
    let arguments: Vec<String> = arguments.collect();
    if !arguments.is_empty() {
        cargo.arg("--").args(arguments);
    }
    let status = cargo.status()?;
    ensure!(status.success(), "cargo {} ended with {status}", words.join(" "));
    Ok(())
}
