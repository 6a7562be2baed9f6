//! The SDK for JavaScript, with esbuild and componentize-qjs from npm.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use palisade_tests::toolchain;

use super::promises::{self, Crash};

const SDK: &str = "guest-sdk/js";

/// A copy of the SDK of this checkout, with its packages.
struct Sdk {
    directory: PathBuf,
}

impl Sdk {
    fn find() -> Option<Self> {
        if !toolchain::has("node", (20, 0)) || !toolchain::has("npm", (9, 0)) {
            return None;
        }
        let directory = toolchain::packages("javascript");
        let sources = toolchain::repository(SDK);
        fs::create_dir_all(&directory).unwrap();
        copy(&sources, &directory);
        let lock = fs::read_to_string(sources.join("package-lock.json")).unwrap();
        let mut npm = Command::new("npm");
        // Without install scripts, so that the installation runs no third-party code.
        npm.args(["ci", "--ignore-scripts", "--no-audit", "--no-fund", "--loglevel=error"]);
        npm.current_dir(&directory);
        toolchain::install(&directory, &lock, &mut npm).then_some(Self { directory })
    }

    fn build(&self, source: &Path, output: &Path) -> Command {
        let mut build = Command::new("node");
        build.arg(self.directory.join("bin/palisade-guest.js"));
        build.arg("build").arg(source).arg("--output").arg(output);
        build
    }
}

fn copy(from: &Path, to: &Path) {
    for entry in fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        let target = to.join(entry.file_name());
        if entry.file_type().unwrap().is_file() {
            fs::copy(entry.path(), target).unwrap();
        } else if entry.file_name() != "node_modules" {
            fs::create_dir_all(&target).unwrap();
            copy(&entry.path(), &target);
        }
    }
}

// One test, since all its parts use the one directory of the packages.
#[test]
fn javascript_specimen_keeps_the_promises() {
    let Some(sdk) = Sdk::find() else { return };
    let made = tempfile::tempdir().unwrap();
    let (source, plugin) = (made.path().join("specimen.js"), made.path().join("specimen.wasm"));
    fs::copy(toolchain::repository("tests/sdks/javascript/specimen.js"), &source).unwrap();
    toolchain::run(&mut sdk.build(&source, &plugin));
    let crash =
        Crash { logged: "at run (specimen.js:", shown: "TypeError: cannot read property 'absent'" };
    promises::are_kept(&plugin, &crash);
    promises::random_numbers_differ(&plugin);
    // Faults are named before the component is made.
    fs::write(&source, "import fs from 'node:fs';").unwrap();
    let said = toolchain::refused(&mut sdk.build(&source, &plugin));
    assert!(said.contains("`node:fs` does not exist in the sandbox"), "{said}");
    own_tests(&sdk);
}

fn own_tests(sdk: &Sdk) {
    let files =
        ["tool", "globals", "build", "types", "command"].map(|name| format!("test/{name}.test.js"));
    toolchain::run(Command::new("node").arg("--test").args(files).current_dir(&sdk.directory));
}
