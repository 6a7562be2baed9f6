//! The published crates: packaged together, and each built again from its own package.
//!
//! They depend on each other and need not be on a registry yet, so cargo packages them in one run, where each finds the others. `palisade-plugins` carries
//! what a checkout does not, the plugins, built, so that nobody who depends on `palisade` compiles a guest.

use crate::place::Place;
use anyhow::{Context as _, ensure};
use std::fs;
use std::path::PathBuf;
use std::process::Command;

/// The published crates, dependencies first.
const PUBLISHED: [&str; 4] = ["palisade-guest-macros", "palisade-guest", "palisade-plugins", "palisade"];

/// The workspace's dev profile, which a package does not carry: with it the verification finds the dependencies that the tests were built with, in place
/// of compiling the engine once more.
const PROFILE: [&str; 3] = [
    "profile.dev.debug='line-tables-only'",
    "profile.dev.package.'*'.opt-level=2",
    "profile.dev.package.'*'.debug=false",
];

/// Packages the published crates and builds each from its package; leaves the checkout as it was.
pub(crate) fn package(place: &Place) -> anyhow::Result<()> {
    let prebuilt = Prebuilt::make(place)?;
    let mut cargo = Command::new(env!("CARGO"));
    // The built plugins are not committed, so cargo calls the checkout dirty.
    cargo.current_dir(&place.root).args(["package", "--locked", "--allow-dirty", "--target-dir"]).arg(&place.target);
    cargo.args(PROFILE.iter().flat_map(|setting| ["--config", setting]));
    cargo.args(PUBLISHED.iter().flat_map(|name| ["--package", name]));
    let status = cargo.status();
    prebuilt.remove()?;
    ensure!(status.context("running cargo package")?.success(), "cargo package failed");
    println!("packaged and built from the packages: {}", PUBLISHED.join(", "));
    Ok(())
}

/// Leaves the checkout ready for `cargo publish`.
pub(crate) fn prebuild(place: &Place) -> anyhow::Result<()> {
    let Prebuilt { files, .. } = Prebuilt::make(place)?;
    files.iter().for_each(|file| println!("{}", file.display()));
    Ok(())
}

/// The built plugins, where the package of `palisade-plugins` takes them from.
struct Prebuilt {
    directory: PathBuf,
    files: Vec<PathBuf>,
}

impl Prebuilt {
    /// This program has the plugins embedded, as `palisade` has.
    fn make(place: &Place) -> anyhow::Result<Self> {
        let directory = place.root.join("plugins/prebuilt");
        fs::create_dir_all(&directory).with_context(|| format!("creating {}", directory.display()))?;
        let mut files = Vec::new();
        for plugin in palisade_plugins::all() {
            let file = directory.join(plugin.file);
            fs::write(&file, plugin.bytes).with_context(|| format!("writing {}", file.display()))?;
            files.push(file);
        }
        Ok(Self { directory, files })
    }

    fn remove(self) -> anyhow::Result<()> {
        fs::remove_dir_all(&self.directory).with_context(|| format!("removing {}", self.directory.display()))
    }
}
