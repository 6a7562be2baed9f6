//! Checks the source tree against the structural rules of ARCHITECTURE.md.

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
            found.extend(walk(&entry.path(), &path))
        } else {
            found.push(path)
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

/// Returns the code lines of a file: no comments, and nothing after the first test module.
fn code(path: &str) -> Vec<String> {
    let text = read(path);
    let text = text.split("#[cfg(test)]").next().unwrap_or_default().to_owned();
    text.lines().map(str::trim).filter(|line| !line.starts_with("//")).map(str::to_owned).collect()
}

fn is_test(path: &str) -> bool {
    path.contains("/tests/") || path.ends_with("tests.rs")
}

/// Lists the code lines under a folder that contain one of `words`, except in files whose path
/// starts with one of `may`.
fn offenders(under: &str, words: &[&str], may: &[&str]) -> Vec<String> {
    let mut found = Vec::new();
    for path in rust_files(under)
        .iter()
        .filter(|path| !is_test(path) && !may.iter().any(|prefix| path.starts_with(prefix)))
    {
        for line in code(path).iter().filter(|line| words.iter().any(|word| line.contains(word))) {
            found.push(format!("{path}: {line}"));
        }
    }
    found
}

#[track_caller]
fn none(found: &[String]) {
    assert!(found.is_empty(), "\n{}", found.join("\n"));
}

#[test]
fn only_the_sandbox_names_wasmtime() {
    none(&offenders("host/src/", &["wasmtime"], &["host/src/sandbox"]));
}

#[test]
fn only_mcp_names_rmcp() {
    none(&offenders("host/src/", &["rmcp"], &["host/src/mcp"]));
}

#[test]
fn only_the_schemas_name_their_validator() {
    none(&offenders("host/src/", &["jsonschema"], &[]));
}

/// The telemetry exporter, which is compiled only with its feature.
const TELEMETRY: &str = "host/src/cli/otel";

#[test]
fn only_one_place_sends_telemetry() {
    none(&offenders(
        "host/src/",
        &["opentelemetry_sdk", "opentelemetry_otlp", "opentelemetry_http"],
        &[TELEMETRY],
    ));
    none(&offenders("host/src/", &["opentelemetry"], &[TELEMETRY, "host/src/mcp/trace/remote.rs"]));
}

#[test]
fn only_what_serves_http_names_its_library() {
    none(&offenders(
        "host/src/",
        &["hyper"],
        &["host/src/http", "host/src/mcp/endpoint", TELEMETRY],
    ));
    none(&offenders("host/src/http", &["crate::mcp", "rmcp"], &[]));
}

#[test]
fn only_the_program_prints_and_uses_anyhow() {
    none(&offenders(
        "host/src/",
        &["println!", "print!(", "eprint", "anyhow", "stdout()", "stderr()"],
        &["host/src/cli", "host/src/sandbox/guard"],
    ));
}

#[test]
fn tool_and_policy_are_pure() {
    let impure = [
        "tokio::",
        "std::fs",
        "fs::",
        "std::env",
        "Instant",
        "SystemTime",
        "std::net",
        "std::process",
    ];
    none(&offenders("host/src/tool", &impure, &[]));
    none(&offenders("host/src/policy", &impure, &[]));
    none(&offenders("schema/src", &impure, &[]));
}

/// The modules in the order of ARCHITECTURE.md: each may use only those before it.
const ORDER: &[&str] = &[
    "tool",
    "workspace",
    "execution",
    "sandbox",
    "native",
    "registry",
    "plugins",
    "policy",
    "confirm",
    "events",
    "session",
    "dispatch",
    "host",
    "http",
    "mcp",
    "config",
    "cli",
];

#[test]
fn modules_depend_downwards_only() {
    let mut found = Vec::new();
    for (rank, module) in ORDER.iter().enumerate() {
        let own = [format!("host/src/{module}.rs"), format!("host/src/{module}/")];
        for path in rust_files("host/src/")
            .iter()
            .filter(|path| own.iter().any(|prefix| path.starts_with(prefix)) && !is_test(path))
        {
            for above in ORDER.get(rank + 1..).unwrap_or_default() {
                let uses = [format!("crate::{above}::"), format!("crate::{above};")];
                let lines = code(path)
                    .into_iter()
                    .filter(|line| uses.iter().any(|word| line.contains(word.as_str())));
                found.extend(lines.map(|line| format!("{path}: {line}")));
            }
        }
    }
    none(&found);
}

#[test]
fn every_module_has_its_place_in_the_order() {
    let declared = code("host/src/lib.rs")
        .into_iter()
        .filter_map(|line| Some(line.strip_prefix("pub mod ")?.strip_suffix(';')?.to_owned()));
    none(&declared.filter(|module| !ORDER.contains(&module.as_str())).collect::<Vec<_>>());
}

#[test]
fn only_dispatch_makes_a_valid_input() {
    none(&offenders("host/src/", &["ValidInput::new("], &["host/src/dispatch"]));
}

#[test]
fn the_guest_side_depends_on_no_part_of_the_host() {
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
fn the_copies_of_the_contract_are_equal() {
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
        assert_eq!(original, read(&format!("host/wit/{name}")), "{name}");
        assert_eq!(original, read(&format!("guest-sdk/wit/{name}")), "{name}");
    }
}

#[test]
fn every_file_says_what_it_is_for() {
    let silent = |path: &String| {
        !read(path)
            .lines()
            .find(|line| !line.trim().is_empty())
            .is_some_and(|line| line.starts_with("//!"))
    };
    none(&rust_files("").into_iter().filter(silent).collect::<Vec<_>>());
}

#[test]
fn no_file_is_longer_than_four_hundred_lines() {
    let long = |path: &String| read(path).lines().count() > 400 && !LONG.contains(&path.as_str());
    none(&rust_files("").into_iter().filter(long).collect::<Vec<_>>());
}

#[test]
fn modules_lie_beside_their_folders() {
    none(&rust_files("").into_iter().filter(|path| path.ends_with("/mod.rs")).collect::<Vec<_>>());
}

#[test]
fn unsafe_code_stands_in_one_place() {
    let places = offenders(
        "host/src/",
        &["unsafe {", "unsafe fn", "unsafe impl"],
        &["host/src/sandbox/cache.rs"],
    );
    none(&places);
    assert_eq!(
        code("host/src/sandbox/cache.rs").iter().filter(|line| line.contains("unsafe {")).count(),
        1
    );
}

/// The files that may read the wall clock. It can be set while a call runs, so it only dates output
/// and is compared with file times; timeouts never depend on it.
const DATED: [&str; 12] = [
    "host/src/cli/prompt.rs",
    "host/src/confirm/request.rs",
    "host/src/dispatch/question.rs",
    "host/src/events.rs",
    "host/src/events/lines.rs",
    "host/src/events/payload.rs",
    "host/src/events/subscribe.rs",
    "host/src/host/cache/known.rs",
    "host/src/plugins/watch/snapshot.rs",
    "host/src/sandbox/cache.rs",
    "host/src/sandbox/cache/identity.rs",
    "host/src/sandbox/cache/verdict.rs",
];

#[test]
fn nothing_waits_for_the_wall_clock() {
    none(&offenders(
        "host/src/",
        &["SystemTime"],
        &[&DATED[..], &["host/src/sandbox/guard/tests/changes.rs"]].concat(),
    ));
    for file in DATED {
        let waits = code(file).into_iter().filter(|line| {
            line.contains("SystemTime") && (line.contains("sleep") || line.contains("timeout"))
        });
        none(&waits.collect::<Vec<_>>());
    }
    palisade_tests::skip("the machine's clock is not set: that would concern everybody on it");
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
fn what_holds_the_sandbox_has_the_fixes_that_it_needs() {
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
fn nothing_unfinished_and_nothing_of_one_machine_is_kept() {
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
