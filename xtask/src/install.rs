//! Installs the program with the SDKs, and compiles its shipped plugins, so that no first call
//! waits for the compiler.

use crate::dist;
use crate::place::Place;
use anyhow::{Context as _, ensure};
use std::env;
use std::ffi::OsString;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::Instant;

/// Runs `cargo install`, with `--root DIR` if that is given.
pub(crate) fn run(place: &Place) -> anyhow::Result<()> {
    let given: Vec<_> = env::args_os().skip(2).collect();
    ensure!(
        matches!(given.as_slice(), [] | [_, _])
            && given.first().is_none_or(|word| word == "--root"),
        "`--root DIR` is the only accepted option: others would make cargo install another build"
    );
    let mut cargo = Command::new(env!("CARGO"));
    cargo.args(["install", "--locked", "--path", "host/cli"]).args(&given).current_dir(&place.root);
    ensure!(cargo.status().context("running cargo install")?.success(), "cargo install failed");
    let root = installation(place, given.get(1))?;
    dist::install_sdks(&place.root, &root)?;
    let begun = Instant::now();
    // The cache key consists of the plugin and the engine, so that the build in the target
    // directory fills the cache for the installed program.
    let mut list = Command::new(place.target.join("release").join("palisade"));
    let listed = list.arg("list").current_dir(&place.root).stdout(Stdio::null()).status();
    if !listed.context("running palisade")?.success() {
        println!("The program is installed, but cannot list its tools; see `palisade doctor`.");
        return Ok(());
    }
    println!(
        "Its plugins are compiled, in {:.1} s: `palisade list` shows their tools.",
        begun.elapsed().as_secs_f64()
    );
    Ok(())
}

/// Returns the root of the installation, as cargo finds it.
fn installation(place: &Place, given: Option<&OsString>) -> anyhow::Result<PathBuf> {
    let variable = |name| env::var_os(name).map(PathBuf::from);
    let root = given.map(PathBuf::from).or_else(|| variable("CARGO_INSTALL_ROOT"));
    let root = root.or_else(|| variable("CARGO_HOME"));
    let root = root.or_else(|| Some(env::home_dir()?.join(".cargo")));
    Ok(place.root.join(root.context("there is neither --root nor a home directory")?))
}
