//! The npm packages with the program: installed without the network, and run by name and by `npx`.

use super::super::{Release, names};
use super::root::Root;
use super::signal;
use anyhow::{Context as _, ensure};
use palisade_wasip2::command::run as output;
use std::path::Path;
use std::process::Command;

/// Options of an installation from local files alone.
pub(super) const QUIETLY: [&str; 4] =
    ["--ignore-scripts", "--no-audit", "--no-fund", "--loglevel=error"];

pub(super) fn run(release: &Release<'_>) -> anyhow::Result<()> {
    if let Some(reason) = missing() {
        return release.skip("the trial of the npm packages", &reason);
    }
    let file = |package: &str| release.file(&names::npm_file(package));
    let launcher = file(names::PACKAGE).context("there is no npm package")?;
    let program = file(&names::npm_program(release.platform)).context("there is no program")?;
    installed(&launcher, &program)?;
    without_the_program(&launcher)?;
    npx(&launcher, &program)
}

/// Returns the reason why there is no npm.
pub(super) fn missing() -> Option<String> {
    let cannot = |name: &str| {
        let error = Command::new(name).arg("--version").output().err()?;
        Some(format!("{name} cannot be started: {error}"))
    };
    cannot("node").or_else(|| cannot("npm"))
}

fn installed(launcher: &Path, program: &Path) -> anyhow::Result<()> {
    let root = Root::new()?;
    let mut npm = root.installer("npm");
    npm.args(["install", "--offline"]).args(QUIETLY).args([launcher, program]);
    output(&mut npm, "installing the npm packages")?;
    let start = root.join("node_modules/.bin").join(names::PROGRAM);
    root.check(|| root.command(&start))?;
    root.check_sdks(|| root.command(&start))?;
    signal::ends(root.command(&start))
}

/// Checks that the launcher says what is missing.
fn without_the_program(launcher: &Path) -> anyhow::Result<()> {
    let root = Root::new()?;
    let mut npm = root.installer("npm");
    npm.args(["install", "--offline", "--omit=optional"]).args(QUIETLY).arg(launcher);
    output(&mut npm, "installing one npm package")?;
    let mut start = root.command(root.join("node_modules/.bin").join(names::PROGRAM));
    let refused = start.arg("--version").output().context("running the launcher")?;
    let said = String::from_utf8_lossy(&refused.stderr);
    ensure!(
        refused.status.code() == Some(1) && said.contains("leaves it out with --omit=optional"),
        "{said}"
    );
    Ok(())
}

fn npx(launcher: &Path, program: &Path) -> anyhow::Result<()> {
    let root = Root::new()?;
    root.check(|| {
        let mut npx = root.installer("npx");
        npx.args(["--yes", "--offline"]);
        npx.arg("--package").arg(launcher).arg("--package").arg(program);
        npx.args(["--", names::PROGRAM]);
        npx
    })
}
