//! Checks the provider formats against the types of the providers' own published libraries.
//!
//! The libraries are Python packages, installed below the target directory; nothing else on the
//! machine changes. Without Python or its package index the check is skipped with a message.

use crate::documents::Profile;
use crate::pip::{self, Packages};
use crate::place::Place;
use anyhow::{Context as _, ensure};
use std::path::PathBuf;
use std::process::Command;

const REQUIREMENTS: &str = "tests/providers/requirements.txt";
const SCRIPT: &str = "tests/providers/check.py";

/// Checks replies, definitions and messages against the types of each provider.
pub(crate) fn check(place: &Place, profile: Profile) -> anyhow::Result<()> {
    let packages = match Packages::install(place, REQUIREMENTS, &place.target.join("providers"))? {
        Packages::At(directory) => directory,
        Packages::OutOfReach(reason) => {
            println!("skipped: {reason}");
            return Ok(());
        }
    };
    let program = build(place, profile)?;
    let mut script = pip::python_with(&packages);
    script.arg(place.root.join(SCRIPT)).arg(program);
    let status = script.current_dir(&place.root).status().context("running the check")?;
    ensure!(status.success(), "the providers' types do not accept what Palisade reads or writes");
    Ok(())
}

/// Returns the current program; builds it in release mode.
pub(crate) fn build(place: &Place, profile: Profile) -> anyhow::Result<PathBuf> {
    if profile == Profile::Debug {
        let program = place.target.join("debug").join("palisade");
        ensure!(
            program.is_file(),
            "there is no {}; `cargo build --workspace --bins` builds it",
            program.display()
        );
        return Ok(program);
    }
    let mut cargo = Command::new(env!("CARGO"));
    cargo
        .args([
            "build",
            "--locked",
            "--release",
            "--package",
            "palisade-cli",
            "--bin",
            "palisade",
            "--target-dir",
        ])
        .arg(&place.target);
    let status = cargo.current_dir(&place.root).status().context("building palisade")?;
    ensure!(status.success(), "palisade does not build");
    Ok(place.target.join("release").join("palisade"))
}
