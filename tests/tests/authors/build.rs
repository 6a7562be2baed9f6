//! `build`: from a new project to a call, and what a project lacks.

use crate::program;
use palisade_tests::program::executable;
use palisade_tests::sample::{Group, leaves_out};
use palisade_tests::{Program, World};
use std::fs;
use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command};
use std::sync::OnceLock;

/// Returns the variables of the toolchain: the home directory of a test has none of its files.
pub(crate) fn variables() -> [(&'static str, PathBuf); 4] {
    let home = PathBuf::from(std::env::var_os("HOME").unwrap_or_default());
    let kept = |name: &str, usual: &str| {
        std::env::var_os(name).map_or_else(|| home.join(usual), PathBuf::from)
    };
    [
        ("CARGO_HOME", kept("CARGO_HOME", ".cargo")),
        ("RUSTUP_HOME", kept("RUSTUP_HOME", ".rustup")),
        // The crates of this workspace suffice, and no other version is fetched.
        ("CARGO_NET_OFFLINE", "true".into()),
        ("CARGO_TARGET_DIR", target()),
    ]
}

fn target() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../target/authors")
}

/// Compiles the crates that a project depends on, once: that takes longer than a run of the program
/// may on a busy machine.
pub(crate) fn compile_crates() {
    static COMPILED: OnceLock<()> = OnceLock::new();
    COMPILED.get_or_init(|| {
        let world = World::new();
        let _ = new_project(&world, "first-count");
        let mut command = Command::new(executable());
        command.args(["build", "first-count"]).current_dir(world.outer()).envs(variables());
        let ran = command.env("PALISADE_CACHE", "off").output().unwrap();
        assert!(ran.status.success(), "{ran:?}");
    });
}

/// Adds the variables of the toolchain.
fn toolchain(program: Program<'_>) -> Program<'_> {
    compile_crates();
    variables().into_iter().fold(program, |program, (name, value)| program.env(name, value))
}

/// Makes a project. Its name is its own: cargo takes projects of one name in the shared target
/// directory for one.
fn new_project(world: &World, name: &str) -> PathBuf {
    let _ = program(world, &["new", name, "--lang", "rust"]).run().exits_with(0);
    world.outer().join(name)
}

#[test]
fn plugin_older_than_its_source_is_told() {
    if leaves_out(&[Group::A, Group::C, Group::E, Group::G]) {
        return;
    }
    let world = World::new();
    let project = new_project(&world, "stale-count");
    let built = toolchain(program(&world, &["build", "stale-count", "--json"])).run();
    let report = built.exits_with(0).json();
    assert!(report["bytes"].as_u64().is_some_and(|bytes| bytes < 400_000), "{report:#}");
    let ran = program(&world, &["check", "stale-count"]).run().exits_with(0);
    assert!(!ran.stdout.contains("was changed after"), "{}", ran.stdout);
    // A document and a file that a case reads are no sources.
    fs::create_dir(project.join("files")).unwrap();
    for file in ["files/a.txt", "README.md"] {
        fs::write(project.join(file), "changed").unwrap();
    }
    let ran = program(&world, &["check", "stale-count"]).run().exits_with(0);
    assert!(!ran.stdout.contains("was changed after"), "{}", ran.stdout);
    let source = project.join("src/lib.rs");
    let text = fs::read_to_string(&source).unwrap();
    // Without `export!` it is no plugin.
    fs::write(&source, text.replace("palisade_guest::export!(stale_count);", "")).unwrap();
    let ran = program(&world, &["check", "stale-count", "--json"]).run().exits_with(0);
    let stale = ran.json()["findings"][0].clone();
    assert_eq!((&stale["code"], &stale["severity"]), (&"stale".into(), &"warning".into()));
    let message = stale["message"].as_str().unwrap();
    assert!(message.contains("`src/lib.rs` was changed after"), "{message}");
    assert!(message.contains("`palisade build` builds it again"), "{message}");
    let ran = toolchain(program(&world, &["build", "stale-count"])).run().exits_with(6);
    ran.stderr_contains(&["is not a plugin", "export!"]);
}

#[test]
fn report_of_a_build_on_a_full_disk_is_1() {
    let world = World::new();
    let _ = new_project(&world, "full-count");
    for verb in ["build", "dev"] {
        let full = fs::OpenOptions::new().write(true).open("/dev/full").unwrap();
        let ran = toolchain(program(&world, &[verb, "full-count"])).stdout(full).run_into();
        assert_eq!(ran.code, 1, "{ran:?}");
        ran.stderr_contains(&["No space left on device"]);
    }
}
/// A program that is killed with the test.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// The words of `dev` between two builds.
const WAITS: &str = "waiting for a change";

#[test]
fn dev_builds_at_each_save_and_replays_the_cases() {
    if leaves_out(&[Group::B, Group::F]) {
        return;
    }
    let world = World::new();
    let project = new_project(&world, "saved-count");
    let mut child = toolchain(program(&world, &["dev", "saved-count", "--case", "counts"])).open();
    let mut cases = BufReader::new(child.stdout.take().unwrap()).lines().map(Result::unwrap);
    let mut told = BufReader::new(child.stderr.take().unwrap()).lines().map(Result::unwrap);
    let _running = Running(child);
    let mut tells = |words: &str| assert!(told.any(|line| line.contains(words)), "{words}");
    let held = cases.next().unwrap();
    assert!(held.starts_with("ok ") && held.contains("counts"), "{held}");
    tells(WAITS);
    let source = project.join("src/lib.rs");
    let whole = fs::read_to_string(&source).unwrap();
    fs::write(&source, whole.replace("split_whitespace()", "split(' ').chain([\"\"])")).unwrap();
    tells("`src/lib.rs` has changed; building");
    let differs = cases.next().unwrap();
    assert!(differs.starts_with("DIFFERS ") && differs.contains("counts"), "{differs}");
    tells(WAITS);
    // A source that does not compile ends nothing, and is followed by one that does.
    fs::write(&source, "fn broken( {").unwrap();
    tells(WAITS);
    fs::write(&source, &whole).unwrap();
    let held = cases.next().unwrap();
    assert!(held.starts_with("ok "), "{held}");
    tells(WAITS);
    // A changed case is replayed, with what it differs in.
    let case = project.join("tests/counts.json");
    let text = fs::read_to_string(&case).unwrap();
    fs::write(&case, text.replace("\"success\": true", "\"success\": false")).unwrap();
    let differs = cases.next().unwrap();
    assert!(differs.starts_with("DIFFERS "), "{differs}");
}

#[test]
fn dev_without_a_project_is_2() {
    let world = World::new();
    for words in [&["dev", "workspace"][..], &["dev", "nowhere"]] {
        let ran = program(&world, words).run().exits_with(2);
        ran.stderr_contains(&["project"]);
    }
}

#[test]
fn tests_of_a_new_project_pass_untouched() {
    if leaves_out(&[Group::D, Group::H]) {
        return;
    }
    let world = World::new();
    let project = new_project(&world, "tested-count");
    let ran = Command::new(env!("CARGO"))
        .args(["test", "--offline", "--target-dir"])
        .arg(target())
        .current_dir(&project)
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&ran.stdout);
    assert!(ran.status.success() && said.contains("3 passed"), "{ran:?}");
}

#[test]
fn directory_without_a_project_is_2() {
    let world = World::new();
    let ran = program(&world, &["build", "workspace"]).run().exits_with(2);
    ran.stderr_contains(&["there is no project", "Cargo.toml (Rust)"]);
}

#[test]
fn project_that_does_not_compile_is_6() {
    let world = World::new();
    let project = new_project(&world, "broken-count");
    fs::write(project.join("src/lib.rs"), "fn broken( {").unwrap();
    let ran = toolchain(program(&world, &["build", "broken-count"])).run().exits_with(6);
    ran.stderr_contains(&["cargo did not build the project"]);
    assert_eq!(ran.stdout, "");
}

#[test]
fn library_of_another_kind_is_2() {
    let world = World::new();
    let project = new_project(&world, "other-count");
    let manifest = fs::read_to_string(project.join("Cargo.toml")).unwrap();
    fs::write(project.join("Cargo.toml"), manifest.replace("cdylib", "rlib")).unwrap();
    let ran = toolchain(program(&world, &["build", "other-count"])).run().exits_with(2);
    ran.stderr_contains(&["crate-type = [\"cdylib\"]"]);
}

#[test]
fn missing_toolchain_is_2_with_the_command() {
    let world = World::new();
    let _ = new_project(&world, "bare-count");
    let ran = program(&world, &["build", "bare-count"]).env("PATH", "/nowhere").run().exits_with(2);
    ran.stderr_contains(&["rustc is missing; get it with `", "rustup"]);
}
