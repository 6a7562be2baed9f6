//! Starts the server under test in an isolated environment.

use super::stage::Stage;
use crate::served::{self, Served};
use anyhow::{Context as _, ensure};
use std::path::Path;
use std::process::{Command, Stdio};

/// Any port, with notifications of plugin changes. No classes are allowed: the tools of the fixture
/// are of the classes `none` and `read`.
const SERVE: [&str; 6] = ["serve", "--http", "127.0.0.1:0", "--token", "none", "--watch"];

/// Compiles both plugins, so that no scenario waits for the compiler, checks that the fixture is
/// accepted, and removes the visitor.
pub(super) fn warm(program: &Path, stage: &Stage) -> anyhow::Result<()> {
    let output = palisade(program, stage, &["list"]).output().context("running the program")?;
    let (listed, said) =
        (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    let is_there = output.status.success() && listed.contains("test_simple_text");
    ensure!(is_there, "`palisade list` does not accept the fixture:\n{listed}{said}");
    stage.move_visitor()
}

/// Starts the server and waits until it prints its URL.
pub(super) fn start(program: &Path, stage: &Stage) -> anyhow::Result<Served> {
    let mut command = palisade(program, stage, &SERVE);
    command.arg("--events").arg(stage.events());
    Served::start(command, stage.log("server"))
}

/// Returns the program with the options of every subcommand.
fn palisade(program: &Path, stage: &Stage, words: &[&str]) -> Command {
    let mut command = served::bare(program);
    command
        .env("HOME", stage.home())
        .env("PALISADE_CACHE", stage.cache())
        .args(words)
        .arg("--no-builtin");
    command.arg("--plugins").arg(stage.plugins()).arg("--workspace").arg(stage.workspace());
    command.current_dir(stage.workspace()).stdin(Stdio::null());
    command
}
