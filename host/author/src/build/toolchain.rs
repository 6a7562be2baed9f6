//! Runs the programs of a toolchain, and keeps what is made for them.

use super::BuildError;
use crate::language::Language;
use crate::sdk::Sdk;
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// The variable that names the directory of made standard libraries.
pub const VARIABLE: &str = "PALISADE_TOOLCHAIN";

/// The directories of standard libraries that were made on this machine.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Homes {
    /// Where one is made if there is none yet; `None` without a home directory.
    pub own: Option<PathBuf>,
    /// Where one may be already: in the checkout that the program was built in.
    pub others: Vec<PathBuf>,
}

impl Homes {
    /// Returns the directories of this machine. `named` is the value of [`VARIABLE`], and `program`
    /// the path of this one.
    #[must_use]
    pub fn of_this_machine(named: Option<PathBuf>, program: Option<&Path>) -> Self {
        let cache = palisade::internal::default_cache();
        let usual = cache.and_then(|cache| Some(cache.parent()?.join("toolchain")));
        let sdk = Sdk::find(Language::Rust, None, program).ok();
        let checkout = sdk.and_then(|sdk| Some(sdk.path().parent()?.to_owned()));
        let others = checkout.map(|it| it.join("target/wasm32-wasip2-sysroot"));
        Self { own: named.or(usual), others: others.into_iter().collect() }
    }
}

/// Runs a program of the toolchain, which prints its errors to standard error. Its standard output
/// is dropped, because that of this program belongs to the report.
pub(super) fn run(command: &mut Command, name: &str, install: &str) -> Result<(), BuildError> {
    let status = command.stdin(Stdio::null()).stdout(Stdio::null()).status();
    match status {
        Ok(status) if status.success() => Ok(()),
        Ok(_) => Err(BuildError::failed(name)),
        Err(error) => Err(not_run(error, name, install)),
    }
}

/// Runs a program for its standard output.
pub(super) fn ask(command: &mut Command, name: &str, install: &str) -> Result<Vec<u8>, BuildError> {
    let output = command.stdin(Stdio::null()).stderr(Stdio::inherit()).output();
    match output {
        Ok(output) if output.status.success() => Ok(output.stdout),
        Ok(_) => Err(BuildError::failed(name)),
        Err(error) => Err(not_run(error, name, install)),
    }
}

/// Returns the name of a package or a source as that of a plugin's file, if it has only characters
/// that both accept.
pub(super) fn plain_name(name: &str) -> Option<String> {
    let is_plain = name.chars().all(|c| c.is_ascii_alphanumeric() || "-_.".contains(c));
    let has_word = name.chars().any(|c| c.is_ascii_alphanumeric());
    (is_plain && has_word).then(|| name.to_lowercase().replace(['-', '.'], "_"))
}

fn not_run(error: io::Error, name: &str, install: &str) -> BuildError {
    match error.kind() {
        io::ErrorKind::NotFound => BuildError::missing(format!("the program {name}"), install),
        _ => BuildError::io("run", Path::new(name), error),
    }
}
