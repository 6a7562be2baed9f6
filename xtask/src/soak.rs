//! The long runs of `tests/src/bin/soak.rs`, built for release.

use crate::place::Place;
use anyhow::ensure;
use std::process::Command;

/// Makes the calls, or that part of them that the second argument says.
pub(crate) fn run(place: &Place) -> anyhow::Result<()> {
    let mut cargo = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    cargo
        .args(["run", "--release", "--package", "palisade-tests", "--bin", "soak", "--"])
        .args(std::env::args().skip(2));
    let status = cargo.current_dir(&place.root).status()?;
    ensure!(status.success(), "a bound does not hold; see above");
    Ok(())
}
