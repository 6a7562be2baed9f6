//! The npm packages with the program: one for each system, and a small one that starts the program
//! of the system that it is on, so that `npx` runs it.
//!
//! npm installs only the optional dependency whose `os`, `cpu` and `libc` match. So no script runs
//! at the installation, and nothing is fetched beside npm.

use super::contents::{self, Contents};
use super::files::{Files, Mode};
use super::names;
use super::pack::{self, Effort};
use super::platform::{PLATFORMS, Platform};
use serde_json::{Map, Value, json};

/// The script of the small package.
const LAUNCHER: &str = include_str!("npm/palisade.js");
/// Its place in the package.
const LAUNCHER_PATH: &str = "bin/palisade.js";
/// The directory in every npm package.
const TOP: &str = "package";
/// The oldest Node that has all functions of the launcher.
const NODE: &str = ">=18";

/// Packs the package with the program of a system.
pub(super) fn program(
    contents: &Contents,
    platform: Platform,
    effort: Effort,
) -> anyhow::Result<Vec<u8>> {
    let mut files = Files::default();
    files.add("", &contents.tree);
    files.add("", &contents.documents);
    let about = format!("The program of {}, for {}", names::PACKAGE, platform.triple);
    let mut manifest = manifest(&names::npm_program(platform), &about);
    manifest.insert("os".to_owned(), json!([platform.npm_os]));
    manifest.insert("cpu".to_owned(), json!([platform.npm_cpu]));
    if platform.npm_os == "linux" {
        manifest.insert("libc".to_owned(), json!(["glibc"]));
    }
    files.data("package.json", text(manifest)?);
    pack::tar_gz(&files, TOP, effort)
}

/// Packs the package that starts the program.
pub(super) fn launcher(
    contents: &Contents,
    summary: &str,
    effort: Effort,
) -> anyhow::Result<Vec<u8>> {
    let mut files = Files::default();
    for (path, file) in contents.documents.iter().filter(|(path, _)| *path != contents::THIRD_PARTY)
    {
        files.insert(path, file.mode, file.bytes.clone());
    }
    files.insert(LAUNCHER_PATH, Mode::Program, LAUNCHER.as_bytes());
    let mut manifest = manifest(names::PACKAGE, summary);
    let programs = PLATFORMS.iter().map(|it| (names::npm_program(*it), json!(names::VERSION)));
    let bin = Map::from_iter([(names::PROGRAM.to_owned(), json!(LAUNCHER_PATH))]);
    manifest.insert("bin".to_owned(), bin.into());
    manifest.insert("engines".to_owned(), json!({ "node": NODE }));
    manifest.insert("optionalDependencies".to_owned(), programs.collect::<Map<_, _>>().into());
    files.data("package.json", text(manifest)?);
    pack::tar_gz(&files, TOP, effort)
}

fn manifest(name: &str, description: &str) -> Map<String, Value> {
    let entries = [
        ("name", name),
        ("version", names::VERSION),
        ("description", description),
        ("license", "MIT OR Apache-2.0"),
    ];
    entries.into_iter().map(|(key, value)| (key.to_owned(), json!(value))).collect()
}

fn text(manifest: Map<String, Value>) -> anyhow::Result<String> {
    Ok(serde_json::to_string_pretty(&Value::Object(manifest))? + "\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn launcher_names_the_packages_of_all_systems() {
        for platform in PLATFORMS {
            let system = format!("'{}-{}'", platform.npm_os, platform.npm_cpu);
            assert!(LAUNCHER.contains(&system), "{system}");
        }
        assert!(LAUNCHER.contains(&format!("`{}-${{system}}`", names::PACKAGE)));
    }
}
