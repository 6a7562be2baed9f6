//! A private apt with its own sources, lists and cache in one directory, so that the machine's are
//! neither read nor written; its proxy settings still apply. Needs no privileges.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::command;
use crate::error::Error;

/// The suite with both a recent `rust-src` and a `wasi-libc` for `wasm32-wasip2`.
const SUITE: &str = "trixie-backports";

/// Debian's archive keyring, under its current name and its future one.
const KEYRINGS: [&str; 2] = [
    "/usr/share/keyrings/debian-archive-keyring.gpg",
    "/usr/share/keyrings/debian-archive-keyring.pgp",
];

/// An apt with one suite of one mirror.
#[derive(Debug)]
pub struct Apt {
    home: PathBuf,
}

impl Apt {
    /// Sets up an apt in `home` and downloads the suite's index, whose signature apt verifies with
    /// Debian's archive keyring.
    ///
    /// # Errors
    /// If there is no apt or no keyring, the mirror cannot be reached, or the signature is invalid.
    pub fn open(home: &Path, mirror: &str) -> Result<Self, Error> {
        let keyring =
            KEYRINGS.iter().find(|path| Path::new(path).is_file()).ok_or(Error::NoKeyring)?;
        let apt = Self { home: home.to_owned() };
        for folder in ["state/lists/partial", "cache/archives/partial", "parts", "log"] {
            let path = home.join(folder);
            fs::create_dir_all(&path).map_err(|source| Error::io("create", &path, source))?;
        }
        apt.write("state/status", "")?;
        apt.write("sources.list", &format!("deb [signed-by={keyring}] {mirror} {SUITE} main\n"))?;
        apt.write("apt.conf", &configuration(home))?;
        command::run(
            apt.command("apt-get").arg("update"),
            &format!("apt-get update from {mirror}"),
        )?;
        Ok(apt)
    }

    /// Returns the versions of `package` in the suite, newest first.
    ///
    /// # Errors
    /// If apt fails.
    pub fn versions(&self, package: &str) -> Result<Vec<String>, Error> {
        let table = command::run(
            self.command("apt-cache").args(["madison", package]),
            "apt-cache madison",
        )?;
        let version = |line: &str| line.split('|').nth(1).map(|column| column.trim().to_owned());
        Ok(table.lines().filter_map(version).collect())
    }

    /// Downloads the packages, each given as `package` or `package=version`, and unpacks them into
    /// `into`.
    ///
    /// # Errors
    /// If a package is missing, its checksum differs from the index, or it cannot be unpacked.
    pub fn unpack(&self, packages: &[&str], into: &Path) -> Result<(), Error> {
        let folder = self.home.join("packages");
        for path in [&folder, into] {
            fs::create_dir_all(path).map_err(|source| Error::io("create", path, source))?;
        }
        let mut download = self.command("apt-get");
        command::run(
            download.arg("download").args(packages).current_dir(&folder),
            "apt-get download",
        )?;
        for file in
            fs::read_dir(&folder).map_err(|source| Error::io("list", &folder, source))?.flatten()
        {
            command::run(
                command::scrubbed("dpkg").arg("-x").arg(file.path()).arg(into),
                "dpkg -x",
            )?;
        }
        Ok(())
    }

    fn command(&self, program: &str) -> Command {
        let mut command = command::scrubbed(program);
        command.arg("-q").arg("-c").arg(self.home.join("apt.conf"));
        command
    }

    fn write(&self, name: &str, text: &str) -> Result<(), Error> {
        let path = self.home.join(name);
        fs::write(&path, text).map_err(|source| Error::io("write", &path, source))
    }
}

/// Returns the newest of `versions` that is exactly `release`: `1.95.0+dfsg1-1~bpo13+1` is 1.95.0,
/// `1.95.0~beta.2` is a pre-release.
pub fn matching<'a>(versions: &'a [String], release: &str) -> Option<&'a str> {
    let is_release = |version: &&String| {
        let upstream = version.split_once(':').map_or(version.as_str(), |(_epoch, rest)| rest);
        upstream
            .strip_prefix(release)
            .is_some_and(|rest| rest.is_empty() || rest.starts_with(['+', '-']))
    };
    versions.iter().find(is_release).map(String::as_str)
}

/// Returns a configuration that is read after that of the machine: all writes go to `home`, hooks
/// of the machine (which clean its caches and refresh its catalogues) are cleared, and a failed
/// index download is an error.
fn configuration(home: &Path) -> String {
    let home = home.display();
    format!(
        r##"#clear APT::Update::Pre-Invoke;
#clear APT::Update::Post-Invoke;
#clear APT::Update::Post-Invoke-Success;
#clear Acquire::IndexTargets::deb::DEP-11;
#clear Acquire::IndexTargets::deb::DEP-11-icons;
Dir::State "{home}/state";
Dir::State::status "{home}/state/status";
Dir::Cache "{home}/cache";
Dir::Log "{home}/log";
Dir::Etc::sourcelist "{home}/sources.list";
Dir::Etc::sourceparts "{home}/parts";
Dir::Etc::preferences "{home}/preferences";
Dir::Etc::preferencesparts "{home}/parts";
Acquire::Languages "none";
Acquire::Retries "2";
Acquire::http::Timeout "30";
Acquire::https::Timeout "30";
APT::Update::Error-Mode "any";
APT::Sandbox::User "root";
"##
    )
}
