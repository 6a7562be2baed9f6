//! Builds a project in Python with the SDK, which runs componentize-py.

use super::toolchain::{ask, plain_name, run};
use super::{BuildError, Made};
use crate::trial::scratch;
use palisade::tool::text::visible;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// How Python is installed.
const INSTALL: &str = "sudo apt install python3 python3-venv";
/// The interpreter of the system.
const SYSTEM: &str = "python3";
/// The interpreter of a virtual environment.
const INTERPRETER: &str = "bin/python";

pub(super) fn build(directory: &Path) -> Result<Made, BuildError> {
    let name = name(directory)?;
    let root =
        std::path::absolute(directory).map_err(|error| BuildError::io("find", directory, error))?;
    let python = interpreter(directory)?;
    let program = python.display().to_string();
    let mut probe = Command::new(&python);
    // Python looks for modules in its working directory, which must be that of the project.
    probe.current_dir(&root).args([
        "-c",
        "import importlib.util as u; print(u.find_spec('palisade_guest') is not None)",
    ]);
    if ask(&mut probe, &program, INSTALL)?.trim_ascii() != b"True" {
        return Err(BuildError::missing(
            format!("the package palisade-guest of {program}"),
            install(directory, &program),
        ));
    }
    let scratch = scratch().map_err(|error| BuildError::io("create", directory, error))?;
    let file = scratch.path().join("plugin.wasm");
    let mut command = Command::new(&python);
    command
        .current_dir(&root)
        .args(["-m", "palisade_guest", "build"])
        .arg(&root)
        .arg("-o")
        .arg(&file);
    run(&mut command, "palisade_guest", INSTALL)?;
    let bytes = fs::read(&file).map_err(|source| BuildError::io("read", &file, source))?;
    Ok(Made { name, bytes })
}

/// Returns the command that installs the packages of the project. The Python of a system refuses
/// packages, so they go into a virtual environment.
fn install(directory: &Path, program: &str) -> String {
    let requirements = directory.join("requirements.txt");
    let environment = directory.join(".venv");
    match program == SYSTEM {
        true => format!(
            "{SYSTEM} -m venv {environment} && {environment}/{INTERPRETER} -m pip install -r {}",
            requirements.display(),
            environment = environment.display()
        ),
        false => format!("{program} -m pip install -r {}", requirements.display()),
    }
}

/// Returns the project's name as that of a file.
fn name(directory: &Path) -> Result<String, BuildError> {
    let file = directory.join("pyproject.toml");
    let text = fs::read_to_string(&file).map_err(|source| BuildError::io("read", &file, source))?;
    let refused = |reason: String| BuildError::Manifest {
        reason: format!("`{}`: {reason}", visible(&file.display().to_string())),
    };
    let table: toml::Table =
        text.parse().map_err(|error: toml::de::Error| refused(error.message().to_owned()))?;
    let name = table.get("project").and_then(|it| it.get("name")).and_then(toml::Value::as_str);
    let name = name.ok_or_else(|| refused("there is no `name` under [project]".to_owned()))?;
    plain_name(name)
        .ok_or_else(|| refused("the `name` under [project] is not that of a package".to_owned()))
}

/// Returns the interpreter: that of the project's virtual environment, of the active one, or of the
/// system.
fn interpreter(directory: &Path) -> Result<PathBuf, BuildError> {
    let own = directory.join(".venv").join(INTERPRETER);
    if own.is_file() {
        // Not resolved: the link's own place makes it the interpreter of the environment.
        return std::path::absolute(&own).map_err(|source| BuildError::io("find", &own, source));
    }
    let active = std::env::var_os("VIRTUAL_ENV").map(|it| PathBuf::from(it).join(INTERPRETER));
    let active = active.and_then(|it| std::path::absolute(it).ok()).filter(|it| it.is_file());
    Ok(active.unwrap_or_else(|| SYSTEM.into()))
}
