//! The `write_file` tool.

#[cfg(test)]
mod tests;

use crate::atomic;
use crate::workspace::{Entry, Workspace, refusal, shown, size};
use palisade_guest::{Error, Output, Result, WritePath, tool, visible};
use schemars::JsonSchema;
use serde::Deserialize;
use std::fs;
use std::path::Path;

/// The file to write, and its new content.
#[derive(Deserialize, JsonSchema)]
pub(crate) struct Args {
    /// The file to create or to overwrite, relative to the workspace. Directories that are missing
    /// are created.
    path: WritePath,
    /// The complete new content of the file. It is written exactly as it is: end the last line with
    /// a newline where the file should.
    content: String,
}

/// Creates a text file, or replaces the whole content of one that exists. Directories that are
/// missing on the way are created.
///
/// The file is replaced in one step: if anything fails it is as it was before. A directory or a
/// symbolic link is not overwritten. An overwritten file keeps its permissions. To change a part of
/// a file use patch_file.
#[tool(side_effects = "write", title = "Write a file", idempotent)]
pub(crate) fn write_file(args: Args) -> Result<Output> {
    let said = write(&Workspace::here(), &args.path, &args.content)?;
    Ok(Output::text(said).modified(args.path))
}

/// Writes the file and describes the change.
fn write(workspace: &Workspace, path: &Path, content: &str) -> Result<String> {
    let target = workspace.at(path);
    let before = replaceable(&target, path)?;
    if before.is_none() {
        create_parents(&target, path)?;
    }
    atomic::replace(&target, content.as_bytes()).map_err(|error| refusal("write", path, error))?;
    let (path, bytes) = (shown(path), size(content.len() as u64));
    Ok(match before {
        None => format!("Created {path} ({bytes})."),
        Some(before) => format!("Overwrote {path} ({bytes}, before {before})."),
    })
}

/// Returns the size of an existing regular file. Refuses all other types: renaming over a symlink
/// would replace the link, and writing through it would not be atomic.
pub(crate) fn replaceable(target: &Path, path: &Path) -> Result<Option<u64>> {
    let refuse = |what: &str| {
        Err(Error::failed(format!(
            "{} is {what}, and only a regular file can be written",
            shown(path)
        )))
    };
    match Entry::look(target, path)? {
        Entry::Missing => Ok(None),
        Entry::File(bytes) => Ok(Some(bytes)),
        Entry::Directory => refuse("a directory"),
        Entry::Special => refuse("a pipe, a device or a socket"),
        Entry::Link => match fs::read_link(target) {
            Ok(to) => refuse(&format!("a symbolic link to `{}`", visible(&to.to_string_lossy()))),
            Err(_) => refuse("a symbolic link"),
        },
    }
}

fn create_parents(target: &Path, path: &Path) -> Result<()> {
    let Some(parent) = target.parent().filter(|parent| !parent.as_os_str().is_empty()) else {
        return Ok(());
    };
    fs::create_dir_all(parent).map_err(|error| refusal("create the directory of", path, error))
}
