//! The SDK for C, with clang and wasi-libc. A program of this repository makes the component, of
//! the module and of the adapter for WASI preview 1, which Debian's wasi-libc needs.

use std::path::{Path, PathBuf};
use std::process::Command;

use palisade_tests::skip;

use super::promises::{self, Crash};
use super::toolchain;

const HEADERS: &str = "guest-sdk/c/include";
const COMPONENTIZE: &str = "tests/sdks/c/componentize";
/// Messages of cargo about a registry that cannot be reached.
const UNREACHABLE: [&str; 3] = ["failed to download", "failed to fetch", "Could not resolve host"];

#[test]
fn c_specimen_keeps_the_promises() {
    let made = tempfile::tempdir().unwrap();
    let (module, plugin) = (made.path().join("module.wasm"), made.path().join("specimen.wasm"));
    if !toolchain::has("clang", (14, 0)) || !compile(&module) {
        return;
    }
    let Some(componentize) = componentize() else { return };
    let mut make = Command::new(componentize);
    toolchain::run(make.arg(toolchain::repository("wit")).arg(module).arg(&plugin));
    let crash = Crash { logged: "unreachable", shown: "the plugin crashed" };
    promises::are_kept(&plugin, &crash);
}

#[test]
fn c_sdk_and_example_pass_their_own_tests() {
    if !toolchain::has("cc", (0, 0)) {
        return;
    }
    for tests in ["guest-sdk/c/tests/tests.c", "examples/image-info/tests.c"] {
        let made = tempfile::tempdir().unwrap();
        let program = made.path().join("tests");
        let mut cc = Command::new("cc");
        cc.args(["-std=c11", "-Wall", "-Wextra", "-Werror", "-g", "-o"]).arg(&program);
        cc.arg("-I").arg(toolchain::repository(HEADERS)).arg(toolchain::repository(tests));
        toolchain::run(&mut cc);
        toolchain::run(Command::new(program).current_dir(made.path()));
    }
}

/// Compiles the specimen. Returns false, with a message, without a linker or a library for wasm32.
fn compile(module: &Path) -> bool {
    let mut clang = Command::new("clang");
    clang.args(["--target=wasm32-wasi", "-mexec-model=reactor", "-std=c11", "-Os", "-flto"]);
    clang.args(["-Wall", "-Wextra", "-Werror", "-Wl,--strip-all", "-Wl,-z,stack-size=131072"]);
    clang.arg("-I").arg(toolchain::repository(HEADERS)).arg("-o").arg(module);
    clang.arg(toolchain::repository("tests/sdks/c/specimen.c"));
    let output = clang.output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    let missing =
        ["file not found", "wasm-ld", "cannot open", "unable to find", "No available targets"];
    if !output.status.success() {
        assert!(missing.iter().any(|sign| said.contains(sign)), "{said}");
        skip("clang has no wasm32-wasi: install wasi-libc, lld and libclang-rt-dev-wasm32");
    }
    output.status.success()
}

/// Builds the program that makes components. Returns nothing, with a message, if cargo cannot have
/// its dependencies.
fn componentize() -> Option<PathBuf> {
    let target = toolchain::packages("c");
    let mut cargo = Command::new(env!("CARGO"));
    cargo.args(["build", "--quiet", "--locked", "--target-dir"]).arg(&target);
    let output = cargo.current_dir(toolchain::repository(COMPONENTIZE)).output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    if output.status.success() {
        return Some(target.join("debug/componentize"));
    }
    assert!(UNREACHABLE.iter().any(|sign| said.contains(sign)), "{said}");
    skip("the crates that make a component cannot be downloaded");
    None
}
