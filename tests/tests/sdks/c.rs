//! The SDK for C, with clang and wasi-libc: `palisade build` compiles and makes the component.

use std::fs;
use std::path::PathBuf;
use std::process::Command;

use palisade_tests::program::Program;
use palisade_tests::{World, skip, toolchain};

use super::promises::{self, Crash};

const HEADERS: &str = "guest-sdk/c/include";
/// The end of the message about a part of the toolchain that is missing.
const MISSING: &str = "is missing; get it with `sudo apt install ";

#[test]
fn c_specimen_keeps_the_promises() {
    let world = World::new();
    let Some(plugin) = built(&world, "specimen", "tests/sdks/c") else { return };
    let crash = Crash { logged: "unreachable", shown: "the plugin crashed" };
    promises::are_kept(&plugin, &crash);
    missing_files_of_class_none_are_explained(&world);
}

/// Checks that the host sees an operation on files of a tool that has none: wasi-libc asks for the
/// preopened directory at every start.
fn missing_files_of_class_none_are_explained(world: &World) {
    let source = world.outer().join("specimen/src/specimen.c");
    let text = fs::read_to_string(&source).unwrap();
    fs::write(&source, text.replace("PALISADE_READ", "PALISADE_NONE")).unwrap();
    let _ = Program::new(world).args(["build", "specimen"]).run().exits_with(0);
    let ran = Program::new(world)
        .args(["call", "words", r#"{"path": "a.txt"}"#, "--plugins", "specimen/dist"])
        .run();
    ran.exits_with(4).stderr_contains(&["a.txt", "looked for files", "class none"]);
}

/// Builds a project of these sources. Returns nothing, with a message, without a toolchain.
fn built(world: &World, name: &str, sources: &str) -> Option<PathBuf> {
    if !toolchain::has("clang", (14, 0)) {
        return None;
    }
    let project = world.outer().join(name);
    fs::create_dir_all(project.join("src")).unwrap();
    for source in fs::read_dir(toolchain::repository(sources)).unwrap() {
        let source = source.unwrap();
        fs::copy(source.path(), project.join("src").join(source.file_name())).unwrap();
    }
    let include = format!("-I{}", toolchain::repository(HEADERS).display());
    let flags = ["-std=c11", "-Wall", "-Wextra", "-Werror", &include].join("\n");
    fs::write(project.join("compile_flags.txt"), flags).unwrap();
    let ran = Program::new(world).args(["build", name]).run();
    if ran.code == 2 && ran.stderr.contains(MISSING) {
        skip(ran.stderr.trim());
        return None;
    }
    let _ = ran.exits_with(0);
    Some(project.join("dist").join(name).with_extension("wasm"))
}

#[test]
fn c_sdk_passes_its_own_tests() {
    if !toolchain::has("cc", (0, 0)) {
        return;
    }
    let made = tempfile::tempdir().unwrap();
    let program = made.path().join("tests");
    let mut cc = Command::new("cc");
    cc.args(["-std=c11", "-Wall", "-Wextra", "-Werror", "-g", "-o"]).arg(&program);
    cc.arg("-I").arg(toolchain::repository(HEADERS));
    toolchain::run(cc.arg(toolchain::repository("guest-sdk/c/tests/tests.c")));
    toolchain::run(Command::new(program).current_dir(made.path()));
}
