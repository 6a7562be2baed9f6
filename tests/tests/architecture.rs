//! Checks the source tree against the structural rules of ARCHITECTURE.md.

#[path = "architecture/budgets.rs"]
mod budgets;
#[path = "architecture/layers.rs"]
mod layers;
#[path = "architecture/orders.rs"]
mod orders;
#[path = "architecture/recipes.rs"]
mod recipes;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Files that hold a table or generated text and may be longer.
const LONG: &[&str] = &[];

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("the workspace").to_owned()
}

/// Lists every file that git tracks or would add, relative to the root.
fn tracked() -> Vec<String> {
    let listed = Command::new("git")
        .args(["ls-files", "--cached", "--others", "--exclude-standard"])
        .current_dir(root())
        .output();
    let listed = match listed {
        Ok(output) if output.status.success() => {
            String::from_utf8_lossy(&output.stdout).lines().map(str::to_owned).collect()
        }
        // An unpacked archive has no git index, so every file in it counts.
        _ => walk(&root(), ""),
    };
    listed.into_iter().filter(|path| root().join(path).is_file()).collect()
}

fn walk(directory: &Path, prefix: &str) -> Vec<String> {
    let mut found = Vec::new();
    for entry in fs::read_dir(directory).expect("a readable directory").flatten() {
        let name = entry.file_name().to_string_lossy().into_owned();
        if name == "target" || name == ".git" {
            continue;
        }
        let path = if prefix.is_empty() { name } else { format!("{prefix}/{name}") };
        if entry.path().is_dir() {
            found.extend(walk(&entry.path(), &path));
        } else {
            found.push(path);
        }
    }
    found
}

fn read(path: &str) -> String {
    fs::read_to_string(root().join(path)).unwrap_or_default()
}

fn rust_files(under: &str) -> Vec<String> {
    tracked().into_iter().filter(|path| path.starts_with(under) && path.ends_with(".rs")).collect()
}

/// Leaves out the files that hold tests only.
fn without_tests(paths: impl Iterator<Item = String>) -> impl Iterator<Item = String> {
    paths.filter(|path| !path.contains("/tests/") && !path.ends_with("tests.rs"))
}

#[track_caller]
fn none(found: &[String]) {
    assert!(found.is_empty(), "\n{}", found.join("\n"));
}

#[test]
fn guest_side_does_not_depend_on_the_host() {
    for manifest in tracked().iter().filter(|path| {
        path.ends_with("Cargo.toml")
            && (path.starts_with("guest-sdk") || path.starts_with("plugins/"))
    }) {
        assert!(
            !read(manifest)
                .lines()
                .any(|line| line.starts_with("palisade =") || line.starts_with("palisade=")),
            "{manifest}"
        );
    }
}

#[test]
fn contract_copies_are_equal() {
    for name in [
        "types.wit",
        "host.wit",
        "tool.wit",
        "client.wit",
        "resources.wit",
        "prompts.wit",
        "world.wit",
    ] {
        let original = read(&format!("wit/{name}"));
        assert!(!original.is_empty(), "{name}");
        assert_eq!(original, read(&format!("host/palisade/wit/{name}")), "{name}");
        for copy in [
            "guest-sdk/wit",
            "guest-sdk/python/src/palisade_guest/wit",
            "guest-sdk/js/wit/deps/palisade-tool",
            "guest-sdk/c/wit",
        ] {
            assert_eq!(original, read(&format!("{copy}/{name}")), "{copy}/{name}");
        }
    }
}

#[test]
fn every_file_states_its_purpose() {
    let silent = |path: &String| {
        !read(path)
            .lines()
            .find(|line| !line.trim().is_empty())
            .is_some_and(|line| line.starts_with("//!"))
    };
    none(&rust_files("").into_iter().filter(silent).collect::<Vec<_>>());
}

#[test]
fn files_have_at_most_400_lines() {
    let long = |path: &String| read(path).lines().count() > 400 && !LONG.contains(&path.as_str());
    none(&rust_files("").into_iter().filter(long).collect::<Vec<_>>());
}

#[test]
fn modules_are_beside_their_folders() {
    none(&rust_files("").into_iter().filter(|path| path.ends_with("/mod.rs")).collect::<Vec<_>>());
}

/// The first release of each dependency with all known security fixes, from the advisories of each
/// project. The major version is fixed because later ones have not been reviewed. Advisory
/// databases lag behind the projects, so a check against one of them is not enough.
const FIXED: [(&str, [u32; 3]); 4] = [
    ("wasmtime", [48, 0, 8]),
    ("wasmtime-wasi", [48, 0, 8]),
    ("cap-std", [4, 0, 3]),
    ("cap-primitives", [4, 0, 3]),
];

#[test]
fn sandbox_dependencies_have_their_security_fixes() {
    let lock = read("Cargo.lock");
    for (name, [major, minor, patch]) in FIXED {
        let versions: Vec<&str> =
            lock.split("[[package]]").filter_map(|package| version(package, name)).collect();
        assert!(!versions.is_empty(), "{name} is locked");
        for version in versions {
            let parts: Vec<u32> = version.split('.').filter_map(|part| part.parse().ok()).collect();
            assert!(
                matches!(parts.as_slice(), [first, rest @ ..] if *first == major && rest >= [minor, patch].as_slice()),
                "{name} {version}: {major}.{minor}.{patch} or a later {major} is needed"
            );
        }
    }
}

fn version<'a>(package: &'a str, name: &str) -> Option<&'a str> {
    let mut lines = package.trim_start().lines();
    (lines.next()? == format!("name = \"{name}\"")).then_some(())?;
    lines.next()?.strip_prefix("version = \"")?.strip_suffix('"')
}

#[test]
fn tree_has_no_unfinished_or_machine_specific_text() {
    let this = "tests/tests/architecture.rs";
    let words = [
        ["/ro", "ot/"].concat(),
        ["/wo", "rk/"].concat(),
        ["TO", "DO"].concat(),
        ["FIX", "ME"].concat(),
        ["todo", "!("].concat(),
        ["#[ig", "nore"].concat(),
    ];
    let mut found = Vec::new();
    for path in tracked().iter().filter(|path| {
        *path != this && !path.ends_with("Cargo.lock") && !path.starts_with("LICENSE")
    }) {
        let text = read(path);
        found.extend(
            words
                .iter()
                .filter(|word| text.contains(word.as_str()))
                .map(|word| format!("{path}: {word}")),
        );
    }
    none(&found);
}
