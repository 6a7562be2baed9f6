//! The compiler that builds the guests: which it is, and what it says of itself.

use std::env;
use std::ffi::OsString;
use std::path::{Path, PathBuf};

use super::command;
use super::error::Error;

/// The compiler and cargo that run this build.
#[derive(Debug)]
pub(crate) struct Toolchain {
    /// The compiler, as cargo names it to build scripts.
    pub(crate) rustc: OsString,
    /// Cargo itself.
    pub(crate) cargo: OsString,
    /// What the compiler says of itself.
    pub(crate) version: Version,
}

/// The parts of `rustc -vV` that matter here.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Version {
    /// The release, such as `1.95.0` or `1.97.0-nightly`.
    pub(crate) release: String,
    /// The platform it runs on, such as `x86_64-unknown-linux-gnu`.
    pub(crate) host: String,
    /// A name for exactly this compiler, fit for a directory.
    pub(crate) key: String,
}

impl Toolchain {
    /// Asks the compiler of this build, or the one on the `PATH` outside of a build.
    ///
    /// # Errors
    /// When it cannot be run or its answer lacks a part.
    pub(crate) fn of_this_build() -> Result<Self, Error> {
        let named = |variable: &str, default: &str| env::var_os(variable).unwrap_or_else(|| default.into());
        let (rustc, cargo) = (named("RUSTC", "rustc"), named("CARGO", "cargo"));
        let said = command::run(command::scrubbed(&rustc).arg("-vV"), "asking rustc for its version")?;
        Ok(Self { version: Version::parse(&said)?, rustc, cargo })
    }

    /// The directory the toolchain is installed in.
    ///
    /// # Errors
    /// When the compiler cannot be run.
    pub(crate) fn sysroot(&self) -> Result<PathBuf, Error> {
        self.ask(&["--print", "sysroot"])
    }

    /// The directory where the toolchain would keep the standard library for `target`, there or not.
    ///
    /// # Errors
    /// When the compiler does not know the target.
    pub(crate) fn libraries(&self, target: &str) -> Result<PathBuf, Error> {
        self.ask(&["--print", "target-libdir", "--target", target])
    }

    fn ask(&self, question: &[&str]) -> Result<PathBuf, Error> {
        let answer = command::run(command::scrubbed(&self.rustc).args(question), "asking rustc for its directories")?;
        Ok(Path::new(answer.trim()).to_owned())
    }
}

impl Version {
    /// Reads the answer of `rustc -vV`.
    ///
    /// # Errors
    /// [`Error::Compiler`] naming the line that is missing.
    pub(crate) fn parse(said: &str) -> Result<Self, Error> {
        let value = |name: &'static str| {
            let line = said.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(": "));
            line.map(|value| value.trim().to_owned()).ok_or(Error::Compiler { missing: name })
        };
        let (release, host) = (value("release")?, value("host")?);
        let key = format!("{release}-{:016x}", fingerprint(said.as_bytes()));
        Ok(Self { release, host, key })
    }
}

/// FNV-1a in 64 bits: no secret is at stake, and unlike the standard library's hash it never changes.
fn fingerprint(bytes: &[u8]) -> u64 {
    let step = |hash: u64, byte: &u8| (hash ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01b3);
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, step)
}
