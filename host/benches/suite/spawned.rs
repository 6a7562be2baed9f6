//! A process for each call.

use std::path::Path;
use std::process::{Command, Stdio};

/// What most agents do: run a program that reads the file.
pub(crate) fn cat(workspace: &Path) {
    run(Command::new("cat").arg(workspace.join("floor.txt")));
}

/// The program itself, its caches warm.
pub(crate) fn palisade(workspace: &Path) {
    run(Command::new(env!("CARGO_BIN_EXE_palisade"))
        .args(["call", "read_file", r#"{"path":"floor.txt"}"#, "--workspace"])
        .arg(workspace));
}

fn run(command: &mut Command) {
    let output = command.stdin(Stdio::null()).output().expect("a process");
    assert!(output.status.success() && !output.stdout.is_empty(), "{}", String::from_utf8_lossy(&output.stderr));
}
