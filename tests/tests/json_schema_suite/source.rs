//! Finds the JSON-Schema-Test-Suite on this machine, or downloads it from the registry.

use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// A crate whose package holds a copy of the suite. It is downloaded and read, never built; cargo
/// checks it against the index.
const CARRIER: &str = "rsonschema";
const CARRIER_VERSION: &str = "0.1.16";
/// The path of the copy inside that package.
const INSIDE: &str = "tests/JSON-Schema-Test-Suite";
/// The environment variable that names a checkout of the suite.
const OVERRIDE: &str = "PALISADE_JSON_SCHEMA_SUITE";

/// Returns the folder of the mandatory cases for 2020-12.
///
/// # Panics
///
/// If the suite is neither on this machine nor available for download. The message says what to do.
pub(crate) fn mandatory_cases() -> PathBuf {
    let suite = env::var_os(OVERRIDE).map(PathBuf::from).or_else(unpacked).or_else(|| {
        download();
        unpacked()
    });
    let folder =
        suite.map(|suite| suite.join("tests/draft2020-12")).filter(|folder| folder.is_dir());
    folder.unwrap_or_else(|| {
        panic!(
            "the JSON-Schema-Test-Suite is not here: run `cargo info {CARRIER}@{CARRIER_VERSION}` once with a registry in reach, \
             or let {OVERRIDE} name a checkout of it"
        )
    })
}

/// Returns the suite inside the package, if cargo has unpacked it already.
fn unpacked() -> Option<PathBuf> {
    let home = env::var_os("CARGO_HOME")
        .map(PathBuf::from)
        .or_else(|| env::home_dir().map(|home| home.join(".cargo")))?;
    let registries = fs::read_dir(home.join("registry/src")).ok()?;
    let package = Path::new(&format!("{CARRIER}-{CARRIER_VERSION}")).join(INSIDE);
    registries.flatten().map(|registry| registry.path().join(&package)).find(|suite| suite.is_dir())
}

/// Downloads the package: `cargo info` unpacks it without its dependencies.
fn download() {
    let cargo = env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let spec = format!("{CARRIER}@{CARRIER_VERSION}");
    // Run outside this workspace, so that its lock file is neither read nor changed. A failure
    // shows as a missing suite.
    let _ =
        Command::new(cargo).args(["info", "--quiet", &spec]).current_dir(env::temp_dir()).output();
}
