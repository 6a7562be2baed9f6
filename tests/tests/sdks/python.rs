//! The SDK for Python, with componentize-py from PyPI.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Mutex, PoisonError};

use super::promises::{self, Crash};
use super::toolchain;

const REQUIREMENTS: &str = "tests/sdks/python/requirements.txt";

/// Python with the SDK of this checkout, and with the packages of the requirements.
struct Python {
    packages: PathBuf,
}

impl Python {
    /// Installs the packages at most once at a time: the tests share them.
    fn find() -> Option<Self> {
        static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());
        let _guard = ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner);
        if !toolchain::has("python3", (3, 10)) {
            return None;
        }
        // The build looks for packages in directories of this name.
        let packages = toolchain::packages("python").join("site-packages");
        fs::create_dir_all(&packages).unwrap();
        let list = toolchain::repository(REQUIREMENTS);
        let mut pip = Command::new("python3");
        // Wheels only, so that the installation runs no third-party code, and only those of the
        // list.
        pip.args(["-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-input"]);
        pip.args(["--only-binary=:all:", "--no-deps", "--upgrade", "--target"]).arg(&packages);
        pip.arg("--requirement").arg(&list);
        toolchain::install(&packages, &fs::read_to_string(list).unwrap(), &mut pip)
            .then_some(Self { packages })
    }

    fn command(&self) -> Command {
        let sources = toolchain::repository("guest-sdk/python/src");
        let paths = std::env::join_paths([sources.as_path(), &self.packages]).unwrap();
        let mut python = Command::new("python3");
        python.env("PYTHONPATH", paths).env("PYTHONDONTWRITEBYTECODE", "1");
        python.env("PATH", toolchain::path_with(&self.packages.join("bin")));
        python
    }

    fn build(&self, source: &Path, output: &Path) -> Command {
        let mut build = self.command();
        build.args(["-m", "palisade_guest", "build"]).arg(source).arg("--output").arg(output);
        build
    }
}

#[test]
fn python_specimen_keeps_the_promises() {
    let Some(python) = Python::find() else { return };
    let made = tempfile::tempdir().unwrap();
    let plugin = made.path().join("specimen.wasm");
    let source = toolchain::repository("tests/sdks/python/specimen.py");
    toolchain::run(&mut python.build(&source, &plugin));
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
    let said = toolchain::refused(&mut python.build(&source, &made.path().join("a.wasm")));
    assert!(said.contains("faulty.py:2: imports 'socket': there are no sockets"), "{said}");
}

#[test]
fn python_sdk_and_example_pass_their_own_tests() {
    let Some(python) = Python::find() else { return };
    for directory in ["guest-sdk/python", "examples/text-analysis"] {
        let mut pytest = python.command();
        pytest.args(["-m", "pytest", "-q", "-p", "no:cacheprovider"]);
        toolchain::run(pytest.current_dir(toolchain::repository(directory)));
    }
}
