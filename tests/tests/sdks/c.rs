//! The SDK for C, with clang and wasi-libc. The component is made in the process, of the module and
//! of the adapter for WASI preview 1, which that wasi-libc needs.

use std::fs;
use std::path::Path;
use std::process::Command;

use palisade_tests::skip;
use wasi_preview1_component_adapter_provider::{
    WASI_SNAPSHOT_PREVIEW1_ADAPTER_NAME, WASI_SNAPSHOT_PREVIEW1_REACTOR_ADAPTER,
};
use wit_component::{ComponentEncoder, StringEncoding, embed_component_metadata};
use wit_parser::Resolve;

use super::promises::{self, Crash};
use super::toolchain;

const HEADERS: &str = "guest-sdk/c/include";

#[test]
fn c_specimen_keeps_the_promises() {
    let made = tempfile::tempdir().unwrap();
    let (module, plugin) = (made.path().join("module.wasm"), made.path().join("specimen.wasm"));
    if !toolchain::has("clang", (14, 0)) || !compile(&module) {
        return;
    }
    fs::write(&plugin, component(&fs::read(module).unwrap())).unwrap();
    let crash = Crash { logged: "unreachable", shown: "the plugin crashed" };
    promises::are_kept(&plugin, &crash);
}

#[test]
fn c_sdk_passes_its_own_tests() {
    if !toolchain::has("cc", (0, 0)) {
        return;
    }
    let made = tempfile::tempdir().unwrap();
    let program = made.path().join("tests");
    let mut cc = Command::new("cc");
    cc.args(["-std=c11", "-Wall", "-Wextra", "-Werror", "-g", "-o"]).arg(&program).arg("-I");
    cc.arg(toolchain::repository(HEADERS)).arg(toolchain::repository("guest-sdk/c/tests/tests.c"));
    toolchain::run(&mut cc);
    toolchain::run(Command::new(program).current_dir(made.path()));
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

fn component(module: &[u8]) -> Vec<u8> {
    let mut resolve = Resolve::default();
    let (package, _) = resolve.push_dir(toolchain::repository("wit")).unwrap();
    let world = resolve.select_world(&[package], Some("plugin")).unwrap();
    let mut module = module.to_vec();
    embed_component_metadata(&mut module, &resolve, world, StringEncoding::UTF8).unwrap();
    let encoder = ComponentEncoder::default().validate(true).module(&module).unwrap();
    encoder
        .adapter(WASI_SNAPSHOT_PREVIEW1_ADAPTER_NAME, WASI_SNAPSHOT_PREVIEW1_REACTOR_ADAPTER)
        .unwrap()
        .encode()
        .unwrap()
}
