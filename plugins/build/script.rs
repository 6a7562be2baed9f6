//! The interface between a build script and cargo.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use super::error::Error;

/// The sources that all guests of this workspace share, relative to the workspace.
const INGREDIENTS: [&str; 9] = [
    "Cargo.toml",
    "Cargo.lock",
    "rust-toolchain.toml",
    "wit",
    "guest-sdk/Cargo.toml",
    "guest-sdk/src",
    "guest-sdk/wit",
    "guest-sdk/macros",
    "plugins/build",
];

/// Returns the target directory of the build with `out`, a build script's `OUT_DIR`:
/// `<target>/<profile>/build/…/out`, with a directory named `triple` below the first if cargo was
/// given a target platform.
pub(crate) fn target_directory(out: &Path, triple: &str) -> PathBuf {
    let builds =
        out.ancestors().find(|folder| folder.file_name().is_some_and(|name| name == "build"));
    let found = builds.and_then(|folder| folder.ancestors().nth(2)).unwrap_or(out);
    let outer = found.parent().filter(|_| found.file_name().is_some_and(|name| name == triple));
    outer.unwrap_or(found).to_owned()
}

/// Returns the sources that all guests of `workspace` share.
pub(crate) fn ingredients(workspace: &Path) -> Vec<PathBuf> {
    INGREDIENTS.iter().map(|name| workspace.join(name)).collect()
}

/// Makes cargo run the script again when one of these files or directories changes. A missing path
/// is skipped, because cargo would run the script every time.
pub(crate) fn watch(paths: &[PathBuf]) {
    for path in paths.iter().filter(|path| path.exists()) {
        say(&format!("rerun-if-changed={}", path.display()));
    }
}

/// Logs a slow step: cargo shows it with `-vv`, and when the script fails. A warning would be
/// repeated by every later build.
#[allow(clippy::print_stderr, reason = "cargo keeps a build script's standard error")]
pub(crate) fn note(line: &str) {
    eprintln!("{line}");
}

/// Ends the script. A failure is one line, except for compiler errors in a guest: cargo shows those
/// only for a script that exits with a failure.
pub(crate) fn conclude(result: Result<(), Error>) -> ExitCode {
    let Err(error) = result else { return ExitCode::SUCCESS };
    say(&format!("error={error}"));
    if matches!(error, Error::Guests { .. }) { ExitCode::FAILURE } else { ExitCode::SUCCESS }
}

#[allow(
    clippy::print_stdout,
    reason = "cargo reads a build script's directives from its standard output"
)]
fn say(directive: &str) {
    println!("cargo::{directive}");
}
