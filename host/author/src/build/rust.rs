//! Builds a project in Rust with cargo.

mod project_flags;

use super::toolchain::{Homes, ask, run};
use super::{BuildError, Made};
use palisade::tool::text::visible;
use palisade_wasip2::{TARGET, Target, Toolchain, lock};
use serde::Deserialize;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// How Rust is installed.
const INSTALL: &str = "curl --proto '=https' --tlsv1.2 -sSf https://sh.rustup.rs | sh";

/// The variables whose flags replace those of the project's `.cargo/config.toml`: the size of the
/// stack is one of them.
const FLAGS: [&str; 4] =
    ["RUSTFLAGS", "CARGO_ENCODED_RUSTFLAGS", "CARGO_BUILD_TARGET", TARGET_FLAGS];
/// The variable with the flags for the target.
const TARGET_FLAGS: &str = "CARGO_TARGET_WASM32_WASIP2_RUSTFLAGS";

/// The relevant part of `cargo metadata`.
#[derive(Deserialize)]
struct Metadata {
    packages: Vec<Package>,
    target_directory: PathBuf,
}

#[derive(Deserialize)]
struct Package {
    manifest_path: PathBuf,
    targets: Vec<CargoTarget>,
    dependencies: Vec<Dependency>,
}

#[derive(Deserialize)]
struct Dependency {
    name: String,
    /// The directory of the package, if the manifest names one.
    path: Option<PathBuf>,
}

#[derive(Deserialize)]
struct CargoTarget {
    name: String,
    crate_types: Vec<String>,
}

pub(super) fn build(
    directory: &Path,
    homes: &Homes,
    note: &mut dyn FnMut(&str),
) -> Result<Made, BuildError> {
    let toolchain = Toolchain::of_project(directory).map_err(|error| match error {
        palisade_wasip2::Error::NoProgram { program } => {
            BuildError::missing(format!("the program {program}"), INSTALL)
        }
        other => other.into(),
    })?;
    let metadata = metadata(directory)?;
    let library = library(&metadata, directory)?;
    let target = target(&toolchain, homes, note)?;
    let home = &metadata.target_directory;
    fs::create_dir_all(home).map_err(|source| BuildError::io("create", home, source))?;
    target.forget_artefacts_of_another(home)?;
    let mut build = cargo_build(directory, &target, &metadata.packages);
    run(&mut build, "cargo", INSTALL)?;
    let file = home.join(TARGET).join("release").join(format!("{library}.wasm"));
    let bytes = fs::read(&file).map_err(|source| BuildError::io("read", &file, source))?;
    Ok(Made { name: library, bytes })
}

fn cargo(directory: &Path) -> Command {
    let mut cargo = Command::new("cargo");
    cargo.current_dir(directory);
    for name in FLAGS {
        cargo.env_remove(name);
    }
    cargo
}

/// Returns the build. Its flags are joined with those that the project's configuration has for the
/// target, and with those for all targets, which cargo would leave out beside them.
fn cargo_build(directory: &Path, target: &Target, packages: &[Package]) -> Command {
    let mut command = cargo(directory);
    command.args(["build", "--release", "--target", TARGET]);
    let variable = |name: &str| std::env::var(name).ok();
    let mut flags = project_flags::for_all_targets(directory, variable);
    flags.extend(target.flags());
    flags.extend(remapped(variable, packages));
    if flags.is_empty() {
        return command;
    }
    // The variable is joined with a text and with a list, and an option with a list only. But the
    // variable is split at spaces.
    if flags.iter().any(|flag| flag.contains(char::is_whitespace)) {
        let list = serde_json::Value::from(flags);
        command.arg("--config").arg(format!("target.{TARGET}.rustflags={list}"));
    } else {
        command.env(TARGET_FLAGS, flags.join(" "));
    }
    command
}

/// Returns the flags that shorten the paths of this machine, which the texts of panics contain.
/// Without them, a component would contain the name of the author's home directory.
fn remapped(variable: impl Fn(&str) -> Option<String>, packages: &[Package]) -> Vec<String> {
    let homes = [("HOME", "~"), ("CARGO_HOME", "~/.cargo")];
    let homes = homes.into_iter().filter_map(|(name, short)| {
        let place = variable(name).filter(|path| Path::new(path).is_absolute())?;
        Some((place.trim_end_matches('/').to_owned(), short.to_owned()))
    });
    // The SDK may be anywhere. The last flag that fits counts.
    let dependencies = packages.iter().flat_map(|package| &package.dependencies);
    let directories = dependencies.filter_map(|dependency| {
        Some((dependency.path.as_ref()?.to_str()?.to_owned(), dependency.name.clone()))
    });
    let places = homes.chain(directories).filter(|(place, _)| !place.is_empty());
    places.map(|(place, short)| format!("--remap-path-prefix={place}={short}")).collect()
}

fn metadata(directory: &Path) -> Result<Metadata, BuildError> {
    let mut command = cargo(directory);
    command.args(["metadata", "--no-deps", "--format-version", "1"]);
    let said = ask(&mut command, "cargo", INSTALL)?;
    serde_json::from_slice(&said).map_err(|error| BuildError::Manifest {
        reason: format!("`cargo metadata` cannot be understood: {error}"),
    })
}

/// Returns the name of the library that becomes the plugin.
fn library(metadata: &Metadata, directory: &Path) -> Result<String, BuildError> {
    let shown = || visible(&directory.join("Cargo.toml").display().to_string());
    let manifest = directory.join("Cargo.toml").canonicalize();
    let manifest = manifest.map_err(|source| BuildError::io("read", directory, source))?;
    let mut packages = metadata.packages.iter();
    let Some(package) = packages.find(|it| it.manifest_path == manifest) else {
        let reason = format!(
            "`{}` has no package; build the directory of the package that is the plugin",
            shown()
        );
        return Err(BuildError::Manifest { reason });
    };
    let mut targets = package.targets.iter();
    let library = targets.find(|it| it.crate_types.iter().any(|kind| kind == "cdylib"));
    library.map(|it| it.name.replace('-', "_")).ok_or_else(|| BuildError::Manifest {
        reason: format!(
            "`{}` makes no component: a plugin is a library with `crate-type = [\"cdylib\"]` under [lib]",
            shown()
        ),
    })
}

/// Finds the target's standard library, or makes it.
fn target(
    toolchain: &Toolchain,
    homes: &Homes,
    note: &mut dyn FnMut(&str),
) -> Result<Target, BuildError> {
    let places = homes.others.iter().chain(&homes.own);
    for home in places {
        if let Some(found) = Target::found(toolchain, home) {
            return Ok(found);
        }
    }
    let Some(home) = &homes.own else {
        return Err(BuildError::missing(
            format!("the target {TARGET}"),
            format!("rustup target add {TARGET}"),
        ));
    };
    fs::create_dir_all(home).map_err(|source| BuildError::io("create", home, source))?;
    let _lock = lock(&home.join("lock"))?;
    Ok(Target::find(toolchain, home, note)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_of_the_machine_are_shortened() {
        let of = |home: &'static str, cargo: Option<&'static str>| {
            let variable = move |name: &str| match name {
                "HOME" => Some(home.to_owned()),
                _ => cargo.map(str::to_owned),
            };
            remapped(variable, &[])
        };
        let home = "--remap-path-prefix=/home/ada=~";
        assert_eq!(of("/home/ada/", None), [home]);
        let cargo = "--remap-path-prefix=/opt/cargo=~/.cargo";
        assert_eq!(of("/home/ada", Some("/opt/cargo")), [home, cargo]);
        assert!(of("/", Some("relative")).is_empty());
        let sdk = Dependency { name: "palisade-guest".to_owned(), path: Some("/sdk".into()) };
        let package = Package {
            manifest_path: "/p/Cargo.toml".into(),
            targets: Vec::new(),
            dependencies: vec![sdk],
        };
        assert_eq!(remapped(|_| None, &[package]), ["--remap-path-prefix=/sdk=palisade-guest"]);
    }
}
