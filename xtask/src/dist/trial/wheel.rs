//! The wheel with the program: installed by pip into an empty environment, and run by `uvx`.

use super::super::{Release, names};
use super::root::Root;
use crate::pip::{self, Packages};
use anyhow::Context as _;
use palisade_wasip2::command::run as output;
use std::ffi::OsString;
use std::path::{Path, PathBuf};

/// The tools of the trial, from PyPI.
pub(super) const TOOLS: &str = "tests/dist/requirements.txt";
/// Their place below the target directory.
const TOOLS_HERE: &str = "dist-tools";

pub(super) fn run(release: &Release<'_>) -> anyhow::Result<()> {
    let system = format!("{}-py3-none-", names::wheel_stem(names::PACKAGE));
    let wheel = find(&release.directory, &system)?;
    let root = Root::new()?;
    let Some(environment) = environment(release, &root)? else { return Ok(()) };
    install(&root, &environment, &wheel)?;
    let program = environment.join("bin").join(names::PROGRAM);
    root.check(|| root.command(&program))?;
    root.check_sdks(|| root.command(&program))?;
    uvx(release, &wheel)
}

/// Makes an empty environment without pip, which takes seconds to install itself. Returns nothing,
/// with a message, without Python.
pub(super) fn environment(release: &Release<'_>, root: &Root) -> anyhow::Result<Option<PathBuf>> {
    if let Err(error) = pip::python().arg("--version").output() {
        release.skip("the trial of a wheel", &format!("python3 cannot be started: {error}"))?;
        return Ok(None);
    }
    let environment = root.join("environment");
    let mut python = root.installer("python3");
    python.args(["-m", "venv", "--without-pip"]).arg(&environment);
    output(&mut python, "making an environment")?;
    Ok(Some(environment))
}

/// Installs a wheel into an environment, with nothing but this file.
pub(super) fn install(root: &Root, environment: &Path, wheel: &Path) -> anyhow::Result<()> {
    let mut pip = root.installer("python3");
    pip.args(["-m", "pip", "--python"]).arg(environment.join("bin/python"));
    pip.args(["install", "--quiet", "--disable-pip-version-check", "--no-input"]);
    pip.args(["--no-index", "--no-deps"]).arg(wheel);
    output(&mut pip, "installing a wheel")?;
    Ok(())
}

/// Returns the file whose name begins with a text.
fn find(directory: &Path, beginning: &str) -> anyhow::Result<PathBuf> {
    let mut entries = directory.read_dir()?.filter_map(Result::ok).map(|entry| entry.path());
    let begins = |path: &PathBuf| {
        path.file_name().is_some_and(|name| name.to_string_lossy().starts_with(beginning))
    };
    entries.find(begins).with_context(|| format!("there is no file `{beginning}…`"))
}

fn uvx(release: &Release<'_>, wheel: &Path) -> anyhow::Result<()> {
    let tools = match tools(release)? {
        Packages::At(tools) => tools,
        Packages::OutOfReach(reason) => return release.skip("the trial of uvx", &reason),
    };
    let root = Root::new()?;
    let from: OsString = wheel.into();
    root.check(|| {
        let mut uvx = root.installer(tools.join("bin/uvx"));
        uvx.args(["--offline", "--quiet", "--no-config", "--from"]).arg(&from).arg(names::PROGRAM);
        uvx
    })
}

/// Returns the directory of the tools.
pub(super) fn tools(release: &Release<'_>) -> anyhow::Result<Packages> {
    Packages::install(release.place, TOOLS, &release.place.target.join(TOOLS_HERE))
}
