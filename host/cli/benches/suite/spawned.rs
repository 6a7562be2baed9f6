//! Spawns one process per call.

use crate::world::World;
use std::ffi::OsStr;
use std::process::{Command, Stdio};

/// Runs a program to its end and returns the length of its output.
pub(crate) fn run<A: AsRef<OsStr>>(program: &str, arguments: impl IntoIterator<Item = A>) -> usize {
    finish(Command::new(program).args(arguments))
}

/// Returns true if a program of this name starts here.
pub(crate) fn is_there(program: &str) -> bool {
    Command::new(program)
        .arg("--version")
        .stdin(Stdio::null())
        .output()
        .is_ok_and(|output| output.status.success())
}

/// Runs the palisade program with warm caches.
pub(crate) fn palisade<A: AsRef<OsStr>>(
    world: &World,
    arguments: impl IntoIterator<Item = A>,
) -> usize {
    let mut command = Command::new(env!("CARGO_BIN_EXE_palisade"));
    command.env("PALISADE_CACHE", world.cache()).arg("--workspace").arg(world.workspace());
    finish(command.args(arguments))
}

pub(crate) fn finish(command: &mut Command) -> usize {
    let output = command.stdin(Stdio::null()).output().expect("a process");
    assert!(
        output.status.success() && !output.stdout.is_empty(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    output.stdout.len()
}
