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
const HOSTS: [&str; 3] = ["palisade-plugins", "palisade-schema", "palisade"];

/// Packages the published crates and builds each from its package; leaves the checkout as it was.
pub(crate) fn package(place: &Place) -> anyhow::Result<()> {
    let prebuilt = Prebuilt::make(place)?;
    let done = cargo_package(place, &GUESTS, &[]).and_then(|()| hosts(place));
    prebuilt.remove()?;
    done?;
    println!("packaged, and built from the packages: {}, {}", GUESTS.join(", "), HOSTS.join(", "));
    Ok(())
}

/// Cargo verifies packages in the dev profile, with other features of dependencies than the workspace's tests: it would compile the compiler of WebAssembly anew.
/// So the verification is done here, in the release profile, where `cargo build --release` has left the same dependencies with the same features.
fn hosts(place: &Place) -> anyhow::Result<()> {
    cargo_package(place, &HOSTS, &["--no-verify"])?;
    let [plugins, schema, host] = HOSTS.map(|name| unpack(place, name));
    let host = host?;
    let mut cargo = Command::new(env!("CARGO"));
    cargo.args(["build", "--release"]);
    for (name, directory) in HOSTS.into_iter().zip([plugins?, schema?]) {
        let directory = directory.to_str().context("the path of the build directory is not UTF-8")?;
        cargo.arg("--config").arg(format!("patch.crates-io.{name}.path={directory:?}"));
    }
    cargo.args(["--config", "profile.release.strip=true", "--target-dir"]).arg(&place.target).current_dir(host);
    let status = cargo.status().context("building the package")?;
    ensure!(status.success(), "the package does not build");
    Ok(())
}

/// The content of a package that lies in the build directory.
fn unpack(place: &Place, name: &str) -> anyhow::Result<PathBuf> {
    let directory = place.target.join("package");
    let package = format!("{name}-{}", env!("CARGO_PKG_VERSION"));
    let tar = Command::new("tar").arg("-xzf").arg(format!("{package}.crate")).current_dir(&directory).status();
    ensure!(tar.context("running tar")?.success(), "{package} could not be unpacked");
    Ok(directory.join(package))
}

fn cargo_package(place: &Place, crates: &[&str], options: &[&str]) -> anyhow::Result<()> {
    let mut cargo = Command::new(env!("CARGO"));
    // The built plugins are not committed, so cargo calls the checkout dirty.
    cargo.args(["package", "--locked", "--allow-dirty", "--no-metadata"]).args(options);
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
        for plugin in palisade_plugins::all().iter().chain([palisade_plugins::hostile()]) {
            let file = directory.join(plugin.file);
            fs::write(&file, plugin.bytes()).with_context(|| format!("writing {}", file.display()))?;
            files.push(file);
        }
        Ok(Self { directory, files })
    }

    fn remove(self) -> anyhow::Result<()> {
        fs::remove_dir_all(&self.directory).with_context(|| format!("removing {}", self.directory.display()))
    }
}
