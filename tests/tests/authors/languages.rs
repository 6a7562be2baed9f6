//! The way of an author in each language, through the program: from an empty directory
//! to a plugin that is called, edited, called again and broken. The times are printed.

use crate::{build, program};
use palisade_tests::program::Ran;
use palisade_tests::sample::{Group, leaves_out};
use palisade_tests::toolchain::{self, Python};
use palisade_tests::{World, skip};
use std::ffi::OsString;
use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

/// The end of the message about a part of a toolchain that is missing.
pub(crate) const MISSING: &str = "is missing; get it with `";
/// The words of this file are three, and four with `-` between words.
const FILE: &str = "one two-three\nfour\n";

/// A change of the project's source: every place that has one text gets another one.
#[derive(Clone, Copy)]
struct Edit {
    from: &'static str,
    to: &'static str,
}

/// The parts of the test that differ between the languages.
struct Author<'w> {
    world: &'w World,
    language: &'static str,
    /// The source of the tool in a project with the name `word-count`.
    source: &'static str,
    /// The variables of the toolchain.
    variables: Vec<(&'static str, OsString)>,
    /// Makes `-` a separator of words.
    edit: Edit,
    /// Counts a line too many.
    fault: Edit,
    /// The time from the empty directory to the first call, with an installed toolchain.
    goal: Duration,
    times: Vec<(&'static str, Duration)>,
}

impl Author<'_> {
    fn project(&self) -> PathBuf {
        self.world.outer().join("word-count")
    }

    /// Runs the program as one step of the way.
    fn step(&mut self, name: &'static str, words: &[&str]) -> Ran {
        let begun = Instant::now();
        let mut program = program(self.world, words);
        for (name, value) in &self.variables {
            program = program.env(name, value);
        }
        let ran = program.run();
        self.times.push((name, begun.elapsed()));
        ran
    }

    /// Does another step.
    fn timed<T>(&mut self, name: &'static str, act: impl FnOnce(&Path) -> T) -> T {
        let begun = Instant::now();
        let done = act(&self.project());
        self.times.push((name, begun.elapsed()));
        done
    }

    fn new_project(&mut self) {
        let words = ["new", "word-count", "--lang", self.language];
        let _ = self.step("new", &words).exits_with(0);
    }

    fn change(&mut self, change: impl FnOnce(&Self) -> &Edit) {
        let Edit { from, to } = *change(self);
        let file = self.project().join(self.source);
        let text = fs::read_to_string(&file).unwrap();
        assert!(text.contains(from), "{text}");
        fs::write(file, text.replace(from, to)).unwrap();
    }

    fn call(&mut self, expected: &str) {
        let words =
            ["call", "word_count", r#"{"path": "words.txt"}"#, "--plugins", "word-count/dist"];
        assert_eq!(self.step("call", &words).exits_with(0).stdout, expected);
    }

    /// Goes from the first build to the broken plugin. Returns false, with a message, if a part of
    /// the toolchain is missing.
    fn goes_on(mut self) -> bool {
        self.world.file("words.txt", FILE);
        let built = self.step("build", &["build", "word-count", "--json"]);
        if built.code == 2 && built.stderr.contains(MISSING) {
            skip(built.stderr.trim());
            return false;
        }
        let report = built.exits_with(0).json();
        assert_eq!(report["language"], self.language);
        assert_eq!(report["tools"][0]["side_effects"], "read");
        assert_eq!(report["call"]["case"], "counts", "{report:#}");
        let checked = self.step("check", &["check", "word-count"]).exits_with(0).stdout;
        let last = checked.lines().last().unwrap();
        assert!(
            last.starts_with("PASSED word_count.wasm (") && last.ends_with("0 warnings"),
            "{checked}"
        );
        self.call("2 lines, 3 words, 19 characters");
        let first: Duration = self.times.iter().map(|(_, took)| took).sum();
        self.change(|it| &it.edit);
        let _ = self.step("build", &["build", "word-count"]).exits_with(0);
        self.call("2 lines, 4 words, 19 characters");
        self.change(|it| &it.fault);
        let _ = self.step("build", &["build", "word-count"]).exits_with(0);
        let broken = self.step("check", &["check", "word-count"]).exits_with(6).stdout;
        assert!(broken.contains("differs") && broken.contains("`counts`"), "{broken}");
        self.print(first);
        true
    }

    /// Prints the times. Not captured by the harness.
    fn print(&self, first: Duration) {
        let steps: Vec<String> = self
            .times
            .iter()
            .map(|(name, took)| format!("{name} {:.1} s", took.as_secs_f64()))
            .collect();
        let _ = writeln!(
            std::io::stderr(),
            "{}: to the first call {:.1} s (goal {} s): {}",
            self.language,
            first.as_secs_f64(),
            self.goal.as_secs(),
            steps.join(", ")
        );
    }
}

#[test]
fn rust_author_goes_from_nothing_to_a_checked_tool() {
    let world = World::new();
    let variables = build::variables().map(|(name, value)| (name, value.into_os_string()));
    let mut author = Author {
        world: &world,
        language: "rust",
        source: "src/lib.rs",
        variables: variables.to_vec(),
        edit: Edit {
            from: "line.split_whitespace()",
            to: "line.replace('-', \" \").split_whitespace()",
        },
        fault: Edit { from: "{} lines", to: "{}1 lines" },
        goal: Duration::from_secs(60),
        times: Vec::new(),
    };
    author.new_project();
    author.timed("crates", |_| build::compile_crates());
    assert!(author.goes_on());
}

#[test]
fn python_author_goes_from_nothing_to_a_checked_tool() {
    if leaves_out(&[Group::C, Group::G]) {
        return;
    }
    let Some(python) = Python::find() else { return };
    let world = World::new();
    let mut author = Author {
        world: &world,
        language: "python",
        source: "word_count.py",
        variables: python.variables().to_vec(),
        edit: Edit { from: "line.split()", to: "line.replace('-', ' ').split()" },
        fault: Edit { from: "{len(lines)} lines", to: "{len(lines) + 1} lines" },
        goal: Duration::from_secs(40),
        times: Vec::new(),
    };
    author.new_project();
    author.timed("tests", |project| {
        let mut pytest = python.command();
        pytest.args(["-m", "pytest", "-q", "-p", "no:cacheprovider"]).current_dir(project);
        let said = toolchain::run(&mut pytest);
        assert!(said.contains("3 passed"), "{said}");
    });
    assert!(author.goes_on());
}

#[test]
fn javascript_author_goes_from_nothing_to_a_checked_tool() {
    if !toolchain::has("node", (20, 0)) || !toolchain::has("npm", (9, 0)) {
        return;
    }
    let world = World::new();
    let mut author = Author {
        world: &world,
        language: "js",
        source: "src/index.js",
        variables: Vec::new(),
        edit: Edit { from: r"/\s+/", to: r"/[\s-]+/" },
        fault: Edit { from: "{lines.length} lines", to: "{lines.length + 1} lines" },
        goal: Duration::from_secs(20),
        times: Vec::new(),
    };
    author.new_project();
    // Before the packages are there, the build says how to get them.
    let unbuilt = author.step("build", &["build", "word-count"]).exits_with(2);
    unbuilt
        .stderr_contains(&["palisade-guest of the project is missing", "`npm install --prefix "]);
    if !author.timed("npm install", |project| toolchain::fetches(&mut npm_install(project))) {
        return;
    }
    author.timed("tests", |project| {
        let said = toolchain::run(Command::new("npm").arg("test").current_dir(project));
        assert!(said.contains("pass 3"), "{said}");
    });
    assert!(author.goes_on());
}

/// Returns the installation, from a cache that later runs use again. Without install scripts, so
/// that it runs no third-party code.
pub(crate) fn npm_install(project: &Path) -> Command {
    let mut npm = Command::new("npm");
    npm.args(["install", "--ignore-scripts", "--no-audit", "--no-fund", "--loglevel=error"]);
    npm.args(["--prefer-offline", "--cache"]).arg(toolchain::packages("npm-cache"));
    npm.current_dir(project);
    npm
}

#[test]
fn c_author_goes_from_nothing_to_a_checked_tool() {
    if !toolchain::has("clang", (14, 0)) || !toolchain::has("make", (3, 0)) {
        return;
    }
    let world = World::new();
    let mut author = Author {
        world: &world,
        language: "c",
        source: "src/word_count.c",
        variables: Vec::new(),
        edit: Edit { from: "isspace(byte)", to: "(isspace(byte) || byte == '-')" },
        fault: Edit { from: "text(out, \"%zu lines", to: "text(out, \"%zu1 lines" },
        goal: Duration::from_secs(20),
        times: Vec::new(),
    };
    author.new_project();
    author.timed("tests", |project| {
        let said = toolchain::run(Command::new("make").arg("test").current_dir(project));
        assert!(said.contains("3 tests passed"), "{said}");
    });
    if author.goes_on() {
        refused_projects_are_explained(&world);
    }
}

/// Checks what the build of a project in C says about its sources and flags.
fn refused_projects_are_explained(world: &World) {
    let source = world.outer().join("word-count/src/word_count.c");
    let whole = fs::read_to_string(&source).unwrap();
    let build = |code| program(world, &["build", "word-count"]).run().exits_with(code);
    fs::write(&source, "int broken(").unwrap();
    build(2).stderr_contains(&["no source in `word-count/src` defines the tools"]);
    fs::write(&source, format!("{whole}int broken(")).unwrap();
    build(6).stderr_contains(&["clang did not build the project"]);
    fs::write(&source, &whole).unwrap();
    fs::write(source.with_file_name("other.c"), "#define PALISADE_IMPLEMENTATION\n").unwrap();
    build(2).stderr_contains(&["`src/other.c` and `src/word_count.c` both have the line"]);
    // A second source is compiled as well, and a small stack is the project's own choice.
    fs::write(source.with_file_name("other.c"), "int other(void) { return 1; }\n").unwrap();
    let flags = world.outer().join("word-count/compile_flags.txt");
    let own = format!("{}-Wl,-z,stack-size=1048576\n", fs::read_to_string(&flags).unwrap());
    fs::write(&flags, own).unwrap();
    let _ = build(0);
}

#[test]
fn missing_toolchain_of_each_language_is_2_with_the_command() {
    for (language, said) in [
        ("python", "the program python3 is missing; get it with `sudo apt install python3"),
        ("js", "the program node is missing; get it with `sudo apt install nodejs npm`"),
        ("c", "the program clang is missing; get it with `sudo apt install clang lld wasi-libc"),
    ] {
        let world = World::new();
        let _ = program(&world, &["new", "bare-count", "--lang", language]).run().exits_with(0);
        let build = program(&world, &["build", "bare-count"]).env("PATH", "/nowhere");
        build.run().exits_with(2).stderr_contains(&[said]);
    }
}

#[test]
fn incomplete_toolchain_of_c_is_2_with_the_missing_part() {
    let world = World::new();
    let _ = program(&world, &["new", "bare-count", "--lang", "c"]).run().exits_with(0);
    let programs = world.outer().join("programs");
    fs::create_dir(&programs).unwrap();
    // A clang without anything beside it: it answers with the bare name of what it is asked for.
    for (missing, answers) in [
        ("the linker wasm-ld", "*"),
        ("the C library wasi-libc", "*crt1*"),
        ("clang's run-time library for WebAssembly", "*libgcc*"),
    ] {
        let script = format!(
            "#!/bin/sh\ncase \"$2\" in {answers}) echo nothing ;; *) echo /bin/sh ;; esac\n"
        );
        write_program(&programs.join("clang"), &script);
        let build = program(&world, &["build", "bare-count"]).env("PATH", programs.clone());
        build.run().exits_with(2).stderr_contains(&[missing, "`sudo apt install clang lld"]);
    }
}

/// Python imports modules from its working directory first.
#[test]
fn python_runs_in_the_directory_of_the_project() {
    let world = World::new();
    let _ = program(&world, &["new", "word-count", "--lang", "python"]).run().exits_with(0);
    let (programs, ran_in) = (world.outer().join("programs"), world.outer().join("ran-in"));
    fs::create_dir(&programs).unwrap();
    let script = format!("#!/bin/sh\npwd >> {}\necho True\n", ran_in.display());
    write_program(&programs.join("python3"), &script);
    let _ = program(&world, &["build", "word-count"]).env("PATH", programs).run();
    let project = world.outer().join("word-count").canonicalize().unwrap();
    let expected = format!("{}\n", project.display()).repeat(2);
    assert_eq!(fs::read_to_string(ran_in).unwrap(), expected, "it is asked, and it builds");
}

/// Writes a script in a process of its own: one that another test starts meanwhile would inherit
/// the open file, which cannot be run then.
fn write_program(file: &Path, script: &str) {
    let mut shell = Command::new("sh");
    shell.args(["-c", "printf %s \"$2\" > \"$1\" && chmod 700 \"$1\"", "sh"]).arg(file);
    toolchain::run(shell.arg(script));
}
