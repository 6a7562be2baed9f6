//! A guest whose tools each have one defect that concerns files.

use palisade_guest::{Error, ReadPath, Result, ResultExt, WritePath, tool};
use schemars::JsonSchema;
use serde::Deserialize;
use std::io::Write as _;

/// The file that a tool changes.
#[derive(Deserialize, JsonSchema)]
struct Target {
    /// The file to change.
    path: WritePath,
}

/// Changes a file that its input does not name.
#[tool(side_effects = "write")]
fn undeclared() -> Result<String> {
    std::fs::write("log.txt", "called")?;
    Ok("written".to_owned())
}

/// Changes a file, and its class does not permit that.
#[tool(side_effects = "read")]
fn too_low(target: Target) -> Result<String> {
    std::fs::write(&target.path, "x").context(&target.path)?;
    Ok("written".to_owned())
}

/// Claims that a second call changes nothing more, and appends a line in each.
#[tool(side_effects = "write", idempotent)]
fn again(target: Target) -> Result<String> {
    let file = std::fs::OpenOptions::new().append(true).create(true).open(&target.path);
    file.context(&target.path)?.write_all(b"line\n")?;
    Ok("appended".to_owned())
}

/// Changes a file, and then fails.
#[tool(side_effects = "write")]
fn half_done(target: Target) -> Result<String> {
    std::fs::write(&target.path, "half").context(&target.path)?;
    Err("the other half is missing".into())
}

/// Declares that it changes files, and never does.
#[tool(side_effects = "write")]
fn idle() -> String {
    "nothing was changed".to_owned()
}

/// Changes a file, and then never ends.
#[tool(side_effects = "write")]
fn partial(target: Target) -> Result<String> {
    std::fs::write(&target.path, "begun").context(&target.path)?;
    loop {
        std::hint::spin_loop();
    }
}

/// Returns a byte of memory that it has filled.
#[tool(side_effects = "none")]
fn hoard() -> String {
    let filled = vec![7_u8; 80 << 20];
    format!("{}", std::hint::black_box(&filled)[filled.len() - 1])
}

/// Prints more than the host keeps.
#[tool(side_effects = "none")]
fn talkative() -> String {
    print!("{}", "a line that nobody reads to its end\n".repeat(100_000));
    "printed".to_owned()
}

/// Makes directories as deep as the host lets it.
#[tool(side_effects = "write")]
fn deep() -> Result<String> {
    let mut path = std::path::PathBuf::new();
    loop {
        path.push("d");
        std::fs::create_dir(&path)?;
    }
}

/// Makes a directory that its input does not name.
#[tool(side_effects = "write")]
fn directory() -> Result<String> {
    std::fs::create_dir("made")?;
    Ok("made".to_owned())
}

/// Removes each empty directory, and its input names none.
#[tool(side_effects = "write")]
fn sweeping() -> Result<String> {
    let mut removed = 0;
    for entry in std::fs::read_dir(".")? {
        removed += usize::from(std::fs::remove_dir(entry?.path()).is_ok());
    }
    Ok(format!("{removed} removed"))
}

/// The file that a tool reads.
#[derive(Deserialize, JsonSchema)]
struct Source {
    /// The file to read.
    path: ReadPath,
}

/// Refuses every path, although its schema accepts each.
#[tool(side_effects = "read")]
fn refusing(source: Source) -> Result<String> {
    Err(Error::invalid_input("path", format!("{} is not accepted", source.path)))
}

palisade_guest::export!(
    undeclared, too_low, again, half_done, idle, partial, hoard, talkative, deep, directory,
    sweeping, refusing
);
