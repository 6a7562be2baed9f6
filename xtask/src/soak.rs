//! The long runs of `tests/src/bin/soak.rs`, built for release.

use crate::place::Place;
use anyhow::{Context as _, ensure};
use std::process::Command;

/// Makes them, or those that the further arguments say, in the time that they say.
pub(crate) fn run(place: &Place) -> anyhow::Result<()> {
    // All programs, since one of the runs kills another program than its own.
    cargo(place, &["build", "--bins"], std::iter::empty())?;
    cargo(place, &["run", "--bin", "soak"], std::env::args().skip(2)).context("a bound does not hold; see above")
}

fn cargo(place: &Place, words: &[&str], arguments: impl Iterator<Item = String>) -> anyhow::Result<()> {
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
