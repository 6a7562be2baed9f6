//! The published crates: packaged together, and each built again from its own package.
//!
//! They depend on each other and need not be on a registry yet, so cargo packages each side in one run, where one crate finds the other. `palisade-plugins` carries
//! what a checkout does not, the plugins, built, so that nobody who depends on `palisade` compiles a guest.

use crate::place::Place;
use anyhow::{Context as _, ensure};
use std::fs;
use std::path::PathBuf;
use std::process::Command;

/// The crates of the guests' side, dependencies first.
const GUESTS: [&str; 2] = ["palisade-guest-macros", "palisade-guest"];

/// The crates of the host's side, dependencies first.
const HOSTS: [&str; 2] = ["palisade-plugins", "palisade"];

/// The workspace's dev profile, which a package does not carry: with it the verification finds most of what the tests were built with, the compiler of
/// WebAssembly above all. The guests' side is small, and built soonest as it is.
const PROFILE: [&str; 6] = [
    "--config",
    "profile.dev.debug='line-tables-only'",
    "--config",
    "profile.dev.package.'*'.opt-level=2",
    "--config",
    "profile.dev.package.'*'.debug=false",
];

/// Packages the published crates and builds each from its package; leaves the checkout as it was.
pub(crate) fn package(place: &Place) -> anyhow::Result<()> {
    let prebuilt = Prebuilt::make(place)?;
    let done = cargo_package(place, &GUESTS, &[]).and_then(|()| cargo_package(place, &HOSTS, &PROFILE));
    prebuilt.remove()?;
    done?;
    println!("packaged, and built from the packages: {}, {}", GUESTS.join(", "), HOSTS.join(", "));
    Ok(())
}

fn cargo_package(place: &Place, crates: &[&str], profile: &[&str]) -> anyhow::Result<()> {
    let mut cargo = Command::new(env!("CARGO"));
    // The built plugins are not committed, so cargo calls the checkout dirty.
    cargo.args(["package", "--locked", "--allow-dirty", "--no-metadata"]).args(profile);
    cargo.args(crates.iter().flat_map(|name| ["--package", name])).arg("--target-dir").arg(&place.target);
    let status = cargo.current_dir(&place.root).status().context("running cargo package")?;
    ensure!(status.success(), "cargo package failed");
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
