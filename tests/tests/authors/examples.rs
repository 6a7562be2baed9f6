//! The example plugins: the tests of each pass, and it is built and checked with its recorded
//! cases, as its README says.

use crate::build::variables;
use crate::languages::{MISSING, npm_install};
use crate::program;
use palisade_tests::program::executable;
use palisade_tests::sample::{Group, leaves_out};
use palisade_tests::toolchain::{self, Python, repository};
use palisade_tests::{World, skip};
use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Files of a project that name the SDK, as a path from the project.
const MANIFESTS: [&str; 4] =
    ["Cargo.toml", "package.json", "requirements.txt", "compile_flags.txt"];
const SDK: &str = "../../guest-sdk";
/// The files and directories that builds leave in a project.
const MADE: [&str; 8] = [
    "dist",
    "build",
    "target",
    "node_modules",
    "package-lock.json",
    ".venv",
    "__pycache__",
    ".pytest_cache",
];

/// The variable under which examples that take minutes to compile are built as well.
const LONG: &str = "PALISADE_LONG_EXAMPLES";

/// A copy of an example, beside the workspace of a world.
struct Example<'w> {
    world: &'w World,
    name: &'static str,
    project: PathBuf,
}

impl<'w> Example<'w> {
    fn copied(world: &'w World, name: &'static str) -> Self {
        let project = world.outer().join(name);
        copy(&repository("examples").join(name), &project);
        let sdk = repository("guest-sdk").canonicalize().unwrap();
        for manifest in MANIFESTS.map(|name| project.join(name)) {
            if let Ok(text) = fs::read_to_string(&manifest) {
                fs::write(manifest, text.replace(SDK, sdk.to_str().unwrap())).unwrap();
            }
        }
        Self { world, name, project }
    }

    /// Builds and checks the example. A part of the toolchain that is missing skips both, with a
    /// message.
    fn is_built_and_passes(&self, variables: &[(&'static str, OsString)]) {
        let mut build = program(self.world, &["build", self.name]);
        for (name, value) in variables {
            build = build.env(name, value);
        }
        let built = build.run();
        if built.code == 2 && built.stderr.contains(MISSING) {
            skip(built.stderr.trim());
            return;
        }
        let _ = built.exits_with(0);
        let checked = program(self.world, &["check", self.name, "--json"]).run();
        let report = checked.exits_with(0).json();
        assert_eq!(report["cases"], self.cases(), "{report:#}");
        // No provider's format but MCP has a place for the schema of an output.
        let findings = report["findings"].as_array().unwrap();
        let others = findings.iter().find(|it| it["code"] != "weakened-schema");
        assert!(others.is_none(), "{report:#}");
    }

    /// Returns the number of its recorded cases: at least one that succeeds and one that fails.
    fn cases(&self) -> usize {
        let files = fs::read_dir(self.project.join("tests")).unwrap();
        let paths = files.map(|file| file.unwrap().path());
        let cases = paths.filter(|path| path.extension().is_some_and(|it| it == "json")).count();
        assert!(cases >= 2, "{}", self.name);
        cases
    }
}

fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        let (name, target) = (entry.file_name(), to.join(entry.file_name()));
        if MADE.iter().any(|made| name == *made) {
            continue;
        }
        if entry.file_type().unwrap().is_dir() {
            copy(&entry.path(), &target);
        } else {
            fs::copy(entry.path(), target).unwrap();
        }
    }
}

/// The crates below the SQL engine are not those of this workspace, so that they are fetched. To
/// compile them takes minutes, also natively.
#[test]
fn csv_query_in_rust_passes() {
    if std::env::var_os(LONG).is_none() {
        return skip(&format!("the SQL engine takes minutes to compile; {LONG}=1 compiles it"));
    }
    let world = World::new();
    let example = Example::copied(&world, "csv-query");
    let cargo = |words: &[&str]| {
        let mut cargo = Command::new(env!("CARGO"));
        cargo.args(words).envs(variables()).current_dir(&example.project);
        cargo
    };
    if toolchain::fetches(cargo(&["fetch", "--locked"]).env("CARGO_NET_OFFLINE", "false")) {
        let said = toolchain::run(&mut cargo(&["test", "--locked"]));
        assert!(said.contains("12 passed"), "{said}");
        // A run of the program for a test has to end sooner.
        let mut build = Command::new(executable());
        build.args(["build", "csv-query"]).current_dir(world.outer()).envs(variables());
        toolchain::run(build.env("PALISADE_CACHE", "off"));
        example.is_built_and_passes(&variables().map(|(name, value)| (name, value.into())));
    }
}

#[test]
fn text_analysis_in_python_passes() {
    if leaves_out(&[Group::A, Group::E]) {
        return;
    }
    let Some(python) = Python::find() else { return };
    let world = World::new();
    let example = Example::copied(&world, "text-analysis");
    let mut pytest = python.command();
    pytest.args(["-m", "pytest", "-q", "-p", "no:cacheprovider"]).current_dir(&example.project);
    toolchain::run(&mut pytest);
    example.is_built_and_passes(&python.variables());
}

#[test]
fn markdown_in_javascript_passes() {
    if !toolchain::has("node", (20, 0)) || !toolchain::has("npm", (9, 0)) {
        return;
    }
    let world = World::new();
    let example = Example::copied(&world, "markdown");
    if toolchain::fetches(&mut npm_install(&example.project)) {
        toolchain::run(Command::new("npm").arg("test").current_dir(&example.project));
        example.is_built_and_passes(&[]);
    }
}

#[test]
fn image_info_in_c_passes() {
    let world = World::new();
    let example = Example::copied(&world, "image-info");
    if toolchain::has("cc", (0, 0)) && toolchain::has("make", (3, 0)) {
        let said = toolchain::run(Command::new("make").arg("test").current_dir(&example.project));
        assert!(said.contains("all tests passed"), "{said}");
    }
    if toolchain::has("clang", (14, 0)) {
        example.is_built_and_passes(&[]);
    }
}
