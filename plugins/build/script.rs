//! What a build script says to cargo, and what cargo says to it.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use super::error::Error;

/// Whatever the guests of this workspace are made of, beside their own sources: relative to the workspace.
const INGREDIENTS: [&str; 6] = ["Cargo.toml", "Cargo.lock", "rust-toolchain.toml", "wit", "guest-sdk", "plugins/build"];

/// The target directory of the build that `out`, a build script's `OUT_DIR`, belongs to: `<target>/<profile>/build/…/out`,
/// with a directory named after `triple`, the platform built for, below the first where cargo was asked for one.
pub(crate) fn target_directory(out: &Path, triple: &str) -> PathBuf {
    let builds = out.ancestors().find(|folder| folder.file_name().is_some_and(|name| name == "build"));
    let found = builds.and_then(|folder| folder.ancestors().nth(2)).unwrap_or(out);
    let outer = found.parent().filter(|_| found.file_name().is_some_and(|name| name == triple));
    outer.unwrap_or(found).to_owned()
}

/// The sources that every guest of `workspace` is made of.
pub(crate) fn ingredients(workspace: &Path) -> Vec<PathBuf> {
    INGREDIENTS.iter().map(|name| workspace.join(name)).collect()
}

/// Asks cargo to run the script again when one of these files, or a file in one of these directories, changes. A path that
/// is not there is left out, since cargo would run the script every time.
pub(crate) fn watch(paths: &[PathBuf]) {
    for path in paths.iter().filter(|path| path.exists()) {
        say(&format!("rerun-if-changed={}", path.display()));
    }
}

/// Notes what takes long: cargo shows it with `-vv`, and when the script fails. A warning would be repeated by every build
/// from then on.
#[allow(clippy::print_stderr, reason = "cargo keeps a build script's standard error")]
pub(crate) fn note(line: &str) {
    eprintln!("{line}");
}

/// Ends the script: a failure is one line, except where cargo has to show the compiler's own words about a guest, which it
/// does for a script that exits with a failure.
pub(crate) fn conclude(result: Result<(), Error>) -> ExitCode {
    let Err(error) = result else { return ExitCode::SUCCESS };
    say(&format!("error={error}"));
    if matches!(error, Error::Guests { .. }) { ExitCode::FAILURE } else { ExitCode::SUCCESS }
}

#[allow(clippy::print_stdout, reason = "cargo reads a build script's directives from its standard output")]
fn say(directive: &str) {
    println!("cargo::{directive}");
}
