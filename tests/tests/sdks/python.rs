//! The SDK for Python, with componentize-py from PyPI.

use std::fs;
use std::path::Path;
use std::process::Command;

use palisade_tests::toolchain::{self, Python};

use super::promises::{self, Crash};

fn build(python: &Python, source: &Path, output: &Path) -> Command {
    let mut build = python.command();
    build.args(["-m", "palisade_guest", "build"]).arg(source).arg("--output").arg(output);
    build
}

#[test]
fn python_specimen_keeps_the_promises() {
    let Some(python) = Python::find() else { return };
    let made = tempfile::tempdir().unwrap();
    let plugin = made.path().join("specimen.wasm");
    let source = toolchain::repository("tests/sdks/python/specimen.py");
    toolchain::run(&mut build(&python, &source, &plugin));
    let crash = Crash { logged: "in fail", shown: "KeyError: 'absent'" };
    promises::are_kept(&plugin, &crash);
    promises::random_numbers_differ(&plugin);
}

#[test]
fn python_faults_are_named_before_the_component_is_made() {
    let Some(python) = Python::find() else { return };
    let made = tempfile::tempdir().unwrap();
    let source = made.path().join("faulty.py");
    fs::write(&source, "def f():\n    import socket\n").unwrap();
    let said = toolchain::refused(&mut build(&python, &source, &made.path().join("a.wasm")));
    assert!(said.contains("faulty.py:2: imports 'socket': there are no sockets"), "{said}");
}

#[test]
fn python_sdk_passes_its_own_tests() {
    let Some(python) = Python::find() else { return };
    let mut pytest = python.command();
    pytest.args(["-m", "pytest", "-q", "-p", "no:cacheprovider"]);
    toolchain::run(pytest.current_dir(toolchain::repository("guest-sdk/python")));
}
