//! Measures what an author waits for and gets in each language: the build of a new project, its
//! first answer, a call, and the size of the plugin.

mod extism;

use crate::report::{self, Series, shown, size};
use crate::spawned;
use crate::world::World;
use palisade_tests::toolchain::{self, Python};
use serde_json::Value;
use std::ffi::OsString;
use std::fs;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};
use tempfile::TempDir;

/// The name of the projects. The template has one tool, which counts the words of a file.
const PROJECT: &str = "word-count";
/// Calls of the program with a warm cache.
const CALLS: usize = 20;

/// A language with its toolchain.
struct Language {
    name: &'static str,
    /// The source file of the tool.
    source: &'static str,
    /// The variables of the toolchain.
    variables: Vec<(&'static str, OsString)>,
}

/// Measures the template of each language whose toolchain is here.
pub(crate) fn run(world: &World) {
    let head = ["build", "build again", "first answer", "call, program", "call, library", "size"];
    report::row("", &head.map(str::to_owned));
    let toolchains = world.toolchains();
    for name in ["rust", "python", "js", "c"] {
        match language(name, &toolchains) {
            Ok(language) => measure(&language),
            Err(why) => report::skipped(name, &why),
        }
    }
    extism::run();
}

/// Finds the toolchain of a language, or says what is missing.
fn language(name: &'static str, toolchains: &Path) -> Result<Language, String> {
    let missing = |what: &str| Err(format!("{what} is missing"));
    let (source, variables) = match name {
        "rust" => {
            let kept = vec![("PALISADE_TOOLCHAIN", toolchains.into())];
            // Makes the standard library for the target, where rustup has none.
            let language = Language { name, source: "src/lib.rs", variables: kept.clone() };
            let _ = language.build(&language.new_project());
            ("src/lib.rs", kept)
        }
        "python" => match Python::find() {
            Some(python) => ("word_count.py", python.variables().to_vec()),
            None => return missing("python3, or a package of its SDK,"),
        },
        "js" if !toolchain::has("npm", (9, 0)) => return missing("npm"),
        "js" => ("src/index.js", Vec::new()),
        _ if !toolchain::has("clang", (14, 0)) => return missing("clang"),
        _ => ("src/word_count.c", Vec::new()),
    };
    Ok(Language { name, source, variables })
}

impl Language {
    /// Creates a project in a new directory, with the packages that its language installs.
    fn new_project(&self) -> TempDir {
        let directory = tempfile::tempdir().expect("a temporary directory");
        self.palisade(directory.path(), &["new", PROJECT, "--lang", self.name]);
        if self.name == "js" {
            let mut npm = Command::new("npm");
            npm.args([
                "install",
                "--ignore-scripts",
                "--no-audit",
                "--no-fund",
                "--prefer-offline",
            ]);
            npm.arg("--cache").arg(toolchain::packages("npm-cache"));
            let _ = toolchain::run(npm.current_dir(directory.path().join(PROJECT)));
        }
        directory
    }

    /// Builds the project. Returns the report and the time.
    fn build(&self, directory: &TempDir) -> (Value, Duration) {
        let begun = Instant::now();
        let report = self.palisade(directory.path(), &["build", PROJECT, "--json"]);
        (serde_json::from_str(&report).expect("the report of a build"), begun.elapsed())
    }

    /// Runs the program in a directory, with a cache of its own.
    fn palisade(&self, directory: &Path, words: &[&str]) -> String {
        let mut command = Command::new(env!("CARGO_BIN_EXE_palisade"));
        command.args(words).current_dir(directory);
        command.env("PALISADE_CACHE", directory.join("cache-of-builds"));
        toolchain::run(command.envs(self.variables.iter().cloned()))
    }
}

/// Prints one row: two builds, the second after an edit, then calls.
fn measure(language: &Language) {
    let directory = language.new_project();
    let (_, first) = language.build(&directory);
    let project = directory.path().join(PROJECT);
    let source = project.join(language.source);
    let text = fs::read_to_string(&source).expect("the source of the template");
    // The place in the text of the result, in a format of C or in that of another language.
    let edited = text.replace("zu words, ", "zu words and ").replace("} words, ", "} words and ");
    fs::write(&source, edited).expect("an edited source");
    let (report, again) = language.build(&directory);
    let answer = first_answer(&directory, &project.join("dist"));
    let mut calls = Series::new("calls");
    for _ in 0..CALLS {
        calls.run(|| call(&directory, &project.join("dist")));
    }
    let in_library = report["call"]["median_ms"].as_f64().unwrap_or_default() / 1e3;
    let cells = [
        shown(first),
        shown(again),
        shown(answer),
        shown(calls.at(500)),
        shown(Duration::from_secs_f64(in_library)),
        size(report["bytes"].as_f64().unwrap_or_default()),
    ];
    report::row(language.name, &cells);
}

/// Returns the time of the first call of a plugin that no cache has, as a whole process.
fn first_answer(directory: &TempDir, plugins: &Path) -> Duration {
    let begun = Instant::now();
    call(directory, plugins);
    begun.elapsed()
}

/// Calls the plugin through the program, with a cache of the calls' own.
fn call(directory: &TempDir, plugins: &Path) -> usize {
    let workspace = directory.path().join("workspace");
    fs::create_dir_all(&workspace).expect("a workspace");
    fs::write(workspace.join("words.txt"), "one two-three\nfour\n").expect("a file");
    let mut command = Command::new(env!("CARGO_BIN_EXE_palisade"));
    command.args(["call", "word_count", r#"{"path": "words.txt"}"#, "--no-builtin", "--plugins"]);
    command.arg(plugins).arg("--workspace").arg(&workspace);
    spawned::finish(command.env("PALISADE_CACHE", directory.path().join("cache-of-calls")))
}
