//! Packages the published crates together and builds each from its package.
//!
//! The crates depend on each other and may not be on a registry yet. cargo therefore packages each
//! side in one run, where the crates find each other. `palisade-plugins` includes the built
//! plugins, which are not in a checkout, so that dependents of `palisade` compile no guest.

use crate::place::Place;
use anyhow::{Context as _, ensure};
use std::fs;
use std::path::PathBuf;
use std::process::Command;

/// The crates for guests, dependencies first.
const GUESTS: [&str; 2] = ["palisade-guest-macros", "palisade-guest"];

/// The crates for hosts, dependencies first.
const HOSTS: [&str; 16] = [
    "palisade-wasip2",
    "palisade-declarations",
    "palisade-plugins",
    "palisade-schema",
    "palisade-formats",
    "palisade-wasi-fs",
    "palisade",
    "palisade-shell",
    "palisade-trust",
    "palisade-mcp",
    "palisade-net",
    "palisade-mcp-client",
    "palisade-store",
    "palisade-server",
    "palisade-author",
    "palisade-cli",
];

/// The directory of cargo's packages, below the target directory.
const PACKAGES: &str = "package";
/// The option by which cargo builds nothing from a package.
const UNVERIFIED: [&str; 1] = ["--no-verify"];

/// Whether the packages are built.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Verification {
    /// Each crate is built from its package.
    Built,
    /// Their content alone is made.
    Skipped,
}

/// Packages the published crates and builds each from its package.
pub(crate) fn package(place: &Place) -> anyhow::Result<()> {
    crates(place, Verification::Built)?;
    println!("packaged, and built from the packages: {}, {}", GUESTS.join(", "), HOSTS.join(", "));
    Ok(())
}

/// Returns the names of the published crates, dependencies first.
pub(crate) fn names() -> impl Iterator<Item = &'static str> {
    GUESTS.into_iter().chain(HOSTS)
}

/// Packages the published crates and returns their packages. The checkout is unchanged afterwards.
pub(crate) fn crates(place: &Place, verification: Verification) -> anyhow::Result<Vec<PathBuf>> {
    let prebuilt = Prebuilt::make(place)?;
    let done = match verification {
        Verification::Built => cargo_package(place, &GUESTS, &[]).and_then(|()| hosts(place)),
        Verification::Skipped => cargo_package(place, &GUESTS, &UNVERIFIED)
            .and_then(|()| cargo_package(place, &HOSTS, &UNVERIFIED)),
    };
    prebuilt.remove()?;
    done?;
    let file = |name| place.target.join(PACKAGES).join(format!("{}.crate", versioned(name)));
    Ok(names().map(file).collect())
}

/// Packages and verifies the host crates. cargo would verify in the dev profile with other features
/// of the dependencies, and so compile the WebAssembly compiler again. The verification here uses
/// the release profile, whose artefacts `cargo build --release` has left.
fn hosts(place: &Place) -> anyhow::Result<()> {
    cargo_package(place, &HOSTS, &UNVERIFIED)?;
    let directories: Vec<PathBuf> =
        HOSTS.iter().map(|name| unpack(place, name)).collect::<anyhow::Result<_>>()?;
    // The program depends on all others, so that one build verifies each.
    let (program, others) = directories.split_last().context("there is no crate")?;
    let mut cargo = Command::new(env!("CARGO"));
    cargo.args(["build", "--release"]);
    for (name, directory) in HOSTS.into_iter().zip(others) {
        let directory =
            directory.to_str().context("the path of the build directory is not UTF-8")?;
        cargo.arg("--config").arg(format!("patch.crates-io.{name}.path={directory:?}"));
    }
    cargo.arg("--config").arg(profiles(place)?).arg("--target-dir").arg(&place.target);
    cargo.current_dir(program);
    let status = cargo.status().context("building the package")?;
    ensure!(status.success(), "the package does not build");
    Ok(())
}

/// Writes the profiles of the workspace as a configuration of cargo and returns its path: without
/// them, all dependencies would be built again.
fn profiles(place: &Place) -> anyhow::Result<PathBuf> {
    let manifest = place.root.join("Cargo.toml");
    let text =
        fs::read_to_string(&manifest).with_context(|| format!("reading {}", manifest.display()))?;
    let mut manifest: toml::Table = text.parse().context("reading the profiles")?;
    let profiles = manifest.remove("profile").context("the workspace has no profiles")?;
    let file = place.target.join(PACKAGES).join("profiles.toml");
    let text = toml::to_string(&toml::Table::from_iter([("profile".to_owned(), profiles)]))?;
    fs::write(&file, text).with_context(|| format!("writing {}", file.display()))?;
    Ok(file)
}

fn versioned(name: &str) -> String {
    format!("{name}-{}", env!("CARGO_PKG_VERSION"))
}

/// Unpacks a package in the build directory and returns its directory.
fn unpack(place: &Place, name: &str) -> anyhow::Result<PathBuf> {
    let directory = place.target.join(PACKAGES);
    let package = versioned(name);
    let tar = Command::new("tar")
        .arg("-xzf")
        .arg(format!("{package}.crate"))
        .current_dir(&directory)
        .status();
    ensure!(tar.context("running tar")?.success(), "{package} could not be unpacked");
    Ok(directory.join(package))
}

fn cargo_package(place: &Place, crates: &[&str], options: &[&str]) -> anyhow::Result<()> {
    let mut cargo = Command::new(env!("CARGO"));
    // The built plugins are not committed, so that cargo considers the checkout dirty.
    cargo.args(["package", "--locked", "--allow-dirty", "--no-metadata"]).args(options);
    cargo
        .args(crates.iter().flat_map(|name| ["--package", name]))
        .arg("--target-dir")
        .arg(&place.target);
    let status = cargo.current_dir(&place.root).status().context("running cargo package")?;
    ensure!(status.success(), "cargo package failed");
    Ok(())
}

/// Prepares the checkout for `cargo publish`.
pub(crate) fn prebuild(place: &Place) -> anyhow::Result<()> {
    let Prebuilt { files, .. } = Prebuilt::make(place)?;
    files.iter().for_each(|file| println!("{}", file.display()));
    Ok(())
}

/// The built plugins, in the place where the package of `palisade-plugins` includes them.
struct Prebuilt {
    directory: PathBuf,
    files: Vec<PathBuf>,
}

impl Prebuilt {
    /// Writes the plugins that are embedded in this program, as they are in `palisade`.
    fn make(place: &Place) -> anyhow::Result<Self> {
        let directory = place.root.join("plugins/prebuilt");
        fs::create_dir_all(&directory)
            .with_context(|| format!("creating {}", directory.display()))?;
        let mut files = Vec::new();
        for plugin in palisade_plugins::all().iter().chain([palisade_plugins::hostile()]) {
            let file = directory.join(plugin.file);
            fs::write(&file, plugin.bytes())
                .with_context(|| format!("writing {}", file.display()))?;
            files.push(file);
        }
        Ok(Self { directory, files })
    }

    fn remove(self) -> anyhow::Result<()> {
        fs::remove_dir_all(&self.directory)
            .with_context(|| format!("removing {}", self.directory.display()))
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]
    use super::*;

    #[test]
    fn documented_order_of_publishing_is_this_one() {
        let document = concat!(env!("CARGO_MANIFEST_DIR"), "/../CONTRIBUTING.md");
        let text = fs::read_to_string(document).unwrap();
        let (_, after) = text.split_once("cargo publish --allow-dirty`").unwrap();
        let (list, _) = after.split_once("in this order").unwrap();
        let documented: Vec<&str> = list.split('`').skip(1).step_by(2).collect();
        assert_eq!(documented, names().collect::<Vec<_>>());
    }
}
