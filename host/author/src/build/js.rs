//! Builds a project in JavaScript or TypeScript with the SDK, which runs esbuild and
//! componentize-qjs.

use super::toolchain::{ask, plain_name, run};
use super::{BuildError, Made};
use crate::trial::scratch;
use palisade::internal::open_unreplaceable_file;
use palisade::tool::text::visible;
use serde::Deserialize;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// How Node.js is installed.
const INSTALL: &str = "sudo apt install nodejs npm";
/// The oldest major version of Node.js that runs the SDK.
const OLDEST: u32 = 20;
/// The program of the SDK, below the directory of the packages.
const PROGRAM: &str = "node_modules/palisade-guest/bin/palisade-guest.js";

/// The relevant part of `package.json`.
#[derive(Deserialize)]
struct Package {
    name: Option<String>,
    main: Option<String>,
}

pub(super) fn build(directory: &Path) -> Result<Made, BuildError> {
    let (name, main) = described(directory)?;
    check_node()?;
    let directory =
        std::path::absolute(directory).map_err(|error| BuildError::io("find", directory, error))?;
    let program = program(&directory)?;
    let scratch = scratch().map_err(|error| BuildError::io("create", &directory, error))?;
    let file = scratch.path().join("plugin.wasm");
    let mut node = Command::new("node");
    node.current_dir(&directory)
        .arg(program)
        .arg("build")
        .arg(directory.join(main))
        .arg("-o")
        .arg(&file);
    run(&mut node, "palisade-guest", INSTALL)?;
    let bytes = fs::read(&file).map_err(|source| BuildError::io("read", &file, source))?;
    Ok(Made { name, bytes })
}

/// Returns the project's name as that of a file, and the module with the tools.
fn described(directory: &Path) -> Result<(String, String), BuildError> {
    let file = directory.join("package.json");
    let text = fs::read_to_string(&file).map_err(|source| BuildError::io("read", &file, source))?;
    let refused = |reason: String| BuildError::Manifest {
        reason: format!("`{}`: {reason}", visible(&file.display().to_string())),
    };
    let package: Package =
        serde_json::from_str(&text).map_err(|error| refused(error.to_string()))?;
    let name = package.name.ok_or_else(|| refused("there is no `name`".to_owned()))?;
    // A scope, such as `@team/`, is not part of the plugin's name.
    let own = name.rsplit('/').next().unwrap_or_default();
    let name =
        plain_name(own).ok_or_else(|| refused("the `name` is not that of a package".to_owned()))?;
    let main = package.main.ok_or_else(|| {
        refused("there is no `main`: the module with the tools, such as `src/index.js`".to_owned())
    })?;
    Ok((name, main))
}

fn check_node() -> Result<(), BuildError> {
    let said = ask(Command::new("node").arg("--version"), "node", INSTALL)?;
    let said = String::from_utf8_lossy(&said);
    let version = said.trim();
    let major = version.trim_start_matches('v').split('.').next().unwrap_or_default();
    match major.parse::<u32>() {
        Ok(major) if major >= OLDEST => Ok(()),
        _ => {
            let what = format!("Node.js {OLDEST} or later (here is {})", visible(version));
            Err(BuildError::missing(what, INSTALL))
        }
    }
}

/// Returns the program of the SDK, where Node.js looks for packages: in the project and above.
fn program(directory: &Path) -> Result<PathBuf, BuildError> {
    let mut places = directory.ancestors().map(|above| above.join(PROGRAM));
    let found = places.find(|it| it.is_file()).ok_or_else(|| {
        BuildError::missing(
            "the package palisade-guest of the project",
            format!("npm install --prefix {}", visible(&directory.display().to_string())),
        )
    })?;
    // Above the project, another user may have put one there.
    open_unreplaceable_file(&found).map_err(|error| BuildError::io("run", &found, error))?;
    Ok(found)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test that cannot prepare its directory has failed")]
    use super::*;

    #[test]
    fn project_is_described_by_its_package() {
        let directory = tempfile::tempdir().unwrap();
        let described = |text: &str| {
            fs::write(directory.path().join("package.json"), text).unwrap();
            described(directory.path()).map_err(|error| error.to_string())
        };
        let names = |name: &str, main: &str| Ok((name.to_owned(), main.to_owned()));
        assert_eq!(
            described(r#"{"name": "word-count", "main": "a.js"}"#),
            names("word_count", "a.js")
        );
        assert_eq!(described(r#"{"name": "@team/x", "main": "a.ts"}"#), names("x", "a.ts"));
        for (text, reason) in [
            ("{", "EOF"),
            (r#"{"main": "a.js"}"#, "there is no `name`"),
            (r#"{"name": "a b", "main": "a.js"}"#, "not that of a package"),
            (r#"{"name": "../", "main": "a.js"}"#, "not that of a package"),
            (r#"{"name": "x"}"#, "such as `src/index.js`"),
        ] {
            let refused = described(text).unwrap_err();
            assert!(refused.contains(reason), "{refused}");
        }
    }

    #[test]
    fn program_is_that_of_the_nearest_packages() {
        let outer = tempfile::tempdir().unwrap();
        let project = outer.path().join("a/project");
        fs::create_dir_all(&project).unwrap();
        let refused = program(&project).unwrap_err().to_string();
        assert!(refused.contains("get it with `npm install --prefix "), "{refused}");
        for above in ["", "a/project"] {
            let file = outer.path().join(above).join(PROGRAM);
            fs::create_dir_all(file.parent().unwrap()).unwrap();
            fs::write(&file, "").unwrap();
            assert_eq!(program(&project).unwrap(), file);
        }
    }
}
