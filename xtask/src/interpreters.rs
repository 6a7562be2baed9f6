//! Builds the benchmark's guests in Python and JavaScript: components of 12 to 18 MB with an
//! interpreter each. Not part of the build script, because the build tools come from pip and npm.
//!
//! Downloads go into a directory below the target directory; nothing else on the machine changes.
//! Without Python, Node or their packages a guest is skipped with a message, which the benchmark
//! repeats. A guest that was built must load.

use crate::documents::Profile;
use crate::pip::{self, INSTALL};
use crate::place::Place;
use crate::providers;
use anyhow::{Context as _, bail, ensure};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::time::Instant;

const SOURCES: &str = "host/cli/benches/guests";
const INPUT: &str = r#"{"text":"hello"}"#;

/// A language whose interpreter is compiled into the guest.
struct Language {
    name: &'static str,
    tool: &'static str,
    /// The source files, relative to [`SOURCES`]: a change triggers a rebuild.
    parts: &'static [&'static str],
    /// Installs the build tools into this directory.
    fetch: fn(&Place, &Path) -> anyhow::Result<Output>,
    /// Returns the build command, with the tools in this directory.
    build: fn(&Place, &Path, &Path) -> Command,
}

const LANGUAGES: [Language; 2] = [
    Language {
        name: "python",
        tool: "python_echo",
        parts: &["python_echo.py", "requirements.txt"],
        fetch: python_packages,
        build: componentize_py,
    },
    Language {
        name: "javascript",
        tool: "javascript_echo",
        parts: &["javascript_echo.js", "componentize.mjs", "package.json"],
        fetch: npm_packages,
        build: componentize_js,
    },
];

/// Builds the guests, and loads and calls each of them with the program.
pub(crate) fn run(place: &Place) -> anyhow::Result<()> {
    let directory = place.target.join("interpreters");
    fs::create_dir_all(&directory).with_context(|| format!("creating {}", directory.display()))?;
    let program = providers::build(place, Profile::Release)?;
    for language in &LANGUAGES {
        let told = directory.join(format!("{}.skipped", language.name));
        match language.make(place, &directory)? {
            Made::At(guest) => {
                // Remove the reason of an earlier skip.
                let _ = fs::remove_file(told);
                language.load(&program, &guest)?;
            }
            Made::OutOfReach(reason) => {
                println!("skipped: the guest in {}: {reason}", language.name);
                fs::write(&told, reason).with_context(|| format!("writing {}", told.display()))?;
            }
        }
    }
    Ok(())
}

/// The result of building a guest.
enum Made {
    /// The path of the guest.
    At(PathBuf),
    /// The build tools are not available, for this reason.
    OutOfReach(String),
}

impl Language {
    fn make(&self, place: &Place, directory: &Path) -> anyhow::Result<Made> {
        let (guest, stamp) = (
            directory.join(format!("{}.wasm", self.name)),
            directory.join(format!("{}.stamp", self.name)),
        );
        let wanted = self.ingredients(place)?;
        if guest.is_file() && fs::read_to_string(&stamp).is_ok_and(|built| built == wanted) {
            return Ok(Made::At(guest));
        }
        let packages = directory.join(self.name);
        if packages.exists() {
            fs::remove_dir_all(&packages)
                .with_context(|| format!("removing {}", packages.display()))?;
        }
        fs::create_dir_all(&packages)
            .with_context(|| format!("creating {}", packages.display()))?;
        let fetched = match (self.fetch)(place, &packages) {
            Ok(fetched) => fetched,
            Err(error) => return Ok(Made::OutOfReach(format!("{error:#}"))),
        };
        if !fetched.status.success() {
            return out_of_reach(&String::from_utf8_lossy(&fetched.stderr)).map(Made::OutOfReach);
        }
        let built = (self.build)(place, &packages, &guest).output().context("building a guest")?;
        ensure!(
            built.status.success() && guest.is_file(),
            "the guest in {} does not build:\n{}",
            self.name,
            String::from_utf8_lossy(&built.stderr)
        );
        fs::write(&stamp, wanted).with_context(|| format!("writing {}", stamp.display()))?;
        Ok(Made::At(guest))
    }

    /// Returns everything that the guest depends on, as one text.
    fn ingredients(&self, place: &Place) -> anyhow::Result<String> {
        let parts = self.parts.iter().map(|part| Path::new(SOURCES).join(part));
        let contract =
            ["types", "host", "tool", "world"].map(|name| PathBuf::from(format!("wit/{name}.wit")));
        let read = |path: PathBuf| {
            fs::read_to_string(place.root.join(&path))
                .with_context(|| format!("reading {}", path.display()))
        };
        parts.chain(contract).map(read).collect()
    }

    /// Loads the guest as a user would, with an empty and with a filled cache, and calls its tool.
    fn load(&self, program: &Path, guest: &Path) -> anyhow::Result<()> {
        let (cache, plugins) = (tempfile::tempdir()?, tempfile::tempdir()?);
        fs::copy(guest, plugins.path().join("guest.wasm")).context("copying the guest")?;
        let call = || -> anyhow::Result<f64> {
            let mut call = Command::new(program);
            // Does not exist yet: the cache creates it with private permissions.
            call.env("PALISADE_CACHE", cache.path().join("cache")).args([
                "call",
                self.tool,
                INPUT,
                "--no-builtin",
                "--plugins",
            ]);
            let start = Instant::now();
            let output =
                call.arg(plugins.path()).arg("--workspace").arg(plugins.path()).output()?;
            let (said, complaint) =
                (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
            ensure!(
                output.status.success() && said.trim() == INPUT,
                "`{}` fails: {said}{complaint}",
                self.tool
            );
            Ok(start.elapsed().as_secs_f64())
        };
        let (compiled, cached) = (call()?, call()?);
        let bytes = fs::metadata(guest)?.len() as f64;
        println!(
            "{}: {:.1} MB; compiled and called in {compiled:.1} s, from the cache in {cached:.2} s",
            self.name,
            bytes / 1e6
        );
        Ok(())
    }
}

/// Wheels only, so that the installation runs no third-party code.
fn python_packages(place: &Place, packages: &Path) -> anyhow::Result<Output> {
    let mut pip = pip::python();
    pip.args(INSTALL).arg("--target").arg(packages);
    pip.arg("--requirement").arg(place.root.join(SOURCES).join("requirements.txt"));
    pip.output().context("python3 cannot be started")
}

fn componentize_py(place: &Place, packages: &Path, out: &Path) -> Command {
    // The source directory is on the Python path; no bytecode is written there.
    let mut command = pip::python_with(packages);
    command.arg(packages.join("bin").join("componentize-py"));
    command.arg("--wit-path").arg(place.root.join("wit")).args([
        "--world",
        "plugin",
        "componentize",
        "--python-path",
    ]);
    command.arg(place.root.join(SOURCES)).args(["python_echo", "--output"]).arg(out);
    command
}

/// Without install scripts, as for pip.
fn npm_packages(place: &Place, packages: &Path) -> anyhow::Result<Output> {
    for part in ["package.json", "componentize.mjs"] {
        let from = place.root.join(SOURCES).join(part);
        fs::copy(&from, packages.join(part))
            .with_context(|| format!("copying {}", from.display()))?;
    }
    let mut npm = Command::new("npm");
    npm.args([
        "install",
        "--ignore-scripts",
        "--no-audit",
        "--no-fund",
        "--no-package-lock",
        "--loglevel=error",
    ]);
    npm.current_dir(packages).output().context("npm cannot be started")
}

fn componentize_js(place: &Place, packages: &Path, out: &Path) -> Command {
    let mut command = Command::new("node");
    command.arg("componentize.mjs").arg(place.root.join(SOURCES).join("javascript_echo.js"));
    command.arg(place.root.join("wit")).arg(out).current_dir(packages);
    command
}

/// Distinguishes unreachable packages from a list that cannot be installed, which is an error of
/// the repository.
fn out_of_reach(said: &str) -> anyhow::Result<String> {
    let of_npm =
        ["ENOTFOUND", "EAI_AGAIN", "ECONNREFUSED", "ECONNRESET", "ETIMEDOUT", "ENETUNREACH"];
    match said.lines().find(|line| of_npm.iter().any(|sign| line.contains(sign))) {
        Some(line) => Ok(format!("npm's registry is out of reach: {}", line.trim())),
        None if said.contains("npm ") => {
            bail!("npm cannot install the packages of {SOURCES}/package.json:\n{said}")
        }
        None => pip::out_of_reach(said),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unreachable_packages_differ_from_an_invalid_list() {
        assert!(
            out_of_reach("npm error code ENOTFOUND\nnpm error network")
                .is_ok_and(|why| why.ends_with("ENOTFOUND"))
        );
        assert!(
            out_of_reach("npm error code ETARGET\nnpm error notarget No matching version").is_err()
        );
        assert!(out_of_reach("/usr/bin/python3: No module named pip").is_ok());
        assert!(out_of_reach("ERROR: No matching distribution (from versions: 1.0, 1.1)").is_err());
    }
}
