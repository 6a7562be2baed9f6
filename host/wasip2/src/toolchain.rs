//! A Rust compiler with its cargo, and its properties.

use std::env;
use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::command;
use crate::error::Error;

/// The compiler and cargo of this build.
#[derive(Debug)]
pub struct Toolchain {
    /// The compiler, as cargo names it to build scripts.
    pub rustc: OsString,
    /// Cargo itself.
    pub cargo: OsString,
    /// The version of the compiler.
    pub version: Version,
    /// The directory whose choice of a compiler holds, if it is not that of this process.
    project: Option<PathBuf>,
}

/// The relevant parts of `rustc -vV`.
#[derive(Debug, PartialEq, Eq)]
pub struct Version {
    /// The release, such as `1.95.0` or `1.97.0-nightly`.
    pub release: String,
    /// The host platform, such as `x86_64-unknown-linux-gnu`.
    pub host: String,
    /// A key for this exact compiler, usable as a directory name.
    pub key: String,
}

impl Toolchain {
    /// Queries the compiler of this build, or the one on the `PATH` outside of a build.
    ///
    /// # Errors
    /// If it cannot be run or its output lacks a field.
    pub fn of_this_build() -> Result<Self, Error> {
        let named =
            |variable: &str, default: &str| env::var_os(variable).unwrap_or_else(|| default.into());
        Self::asked(named("RUSTC", "rustc"), named("CARGO", "cargo"), None)
    }

    /// Queries the compiler on the `PATH` that a build in this directory uses: rustup reads the
    /// choice of a project there.
    ///
    /// # Errors
    /// If it cannot be run or its output lacks a field.
    pub fn of_project(directory: &Path) -> Result<Self, Error> {
        Self::asked("rustc".into(), "cargo".into(), Some(directory.to_owned()))
    }

    fn asked(rustc: OsString, cargo: OsString, project: Option<PathBuf>) -> Result<Self, Error> {
        let mut command = command::scrubbed(&rustc);
        if let Some(project) = &project {
            command.current_dir(project);
        }
        let said = command::run(command.arg("-vV"), "asking rustc for its version")?;
        Ok(Self { version: Version::parse(&said)?, rustc, cargo, project })
    }

    /// Returns a command of this toolchain without the environment of an outer cargo.
    #[must_use]
    pub fn command(&self, program: &OsStr) -> Command {
        let mut command = command::scrubbed(program);
        if let Some(project) = &self.project {
            command.current_dir(project);
        }
        command
    }

    /// Returns the installation directory of the toolchain.
    ///
    /// # Errors
    /// If the compiler cannot be run.
    pub fn sysroot(&self) -> Result<PathBuf, Error> {
        self.ask(&["--print", "sysroot"])
    }

    /// Returns the directory of the toolchain's standard library for `target`, whether or not it
    /// exists.
    ///
    /// # Errors
    /// If the compiler does not know the target.
    pub fn libraries(&self, target: &str) -> Result<PathBuf, Error> {
        self.ask(&["--print", "target-libdir", "--target", target])
    }

    fn ask(&self, question: &[&str]) -> Result<PathBuf, Error> {
        let answer = command::run(
            self.command(&self.rustc).args(question),
            "asking rustc for its directories",
        )?;
        Ok(Path::new(answer.trim()).to_owned())
    }
}

impl Version {
    /// Parses the output of `rustc -vV`.
    ///
    /// # Errors
    /// [`Error::Compiler`] with the name of the missing field.
    pub fn parse(said: &str) -> Result<Self, Error> {
        let value = |name: &'static str| {
            let line = said.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(": "));
            line.map(|value| value.trim().to_owned()).ok_or(Error::Compiler { missing: name })
        };
        let (release, host) = (value("release")?, value("host")?);
        let key = format!("{release}-{:016x}", fingerprint(said.as_bytes()));
        Ok(Self { release, host, key })
    }
}

/// 64-bit FNV-1a: needs no security, and unlike the standard library's hash it never changes.
fn fingerprint(bytes: &[u8]) -> u64 {
    let step = |hash: u64, byte: &u8| (hash ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01b3);
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, step)
}
