//! The `patch_file` tool.

#[cfg(test)]
mod tests;

use crate::occurrence;
use crate::workspace::{Workspace, missing, refusal, shown};
use crate::{atomic, diff, text, write};
use palisade_guest::{Error, Output, Result, WritePath, tool};
use schemars::JsonSchema;
use serde::Deserialize;
use std::fs;
use std::path::Path;

/// Maximum size of a patched file, in bytes. Patching needs its memory twice, and larger files are
/// rarely edited by hand.
const MAX_FILE_BYTES: u64 = 8 * 1024 * 1024;

/// The file to change, and the change.
#[derive(Deserialize, JsonSchema)]
pub(crate) struct Args {
    /// The file to change, relative to the workspace. It must exist and be text.
    path: WritePath,
    /// The text to replace, exactly as read_file shows it, with its indentation and line breaks. It
    /// must occur exactly once: include so many of the lines around the change that it does.
    old: String,
    /// The text to put in its place. Empty to remove the old text.
    new: String,
}

/// Replaces a text that occurs exactly once in a file, and answers with a unified diff of the
/// change.
///
/// Nothing is changed if the text occurs not at all or more than once; the error then says where it
/// occurs, or what in the file comes close. The file is replaced in one step, and keeps its
/// permissions.
#[tool(side_effects = "write", title = "Patch a file")]
pub(crate) fn patch_file(args: Args) -> Result<Output> {
    let diff = patch(&Workspace::here(), &args.path, &args.old, &args.new)?;
    Ok(Output::text(diff).modified(args.path))
}

/// Changes the file and returns the diff.
fn patch(workspace: &Workspace, path: &Path, old: &str, new: &str) -> Result<String> {
    check(old, new)?;
    let target = workspace.at(path);
    let before = load(&target, path)?;
    let at = occurrence::only(&before, old)
        .map_err(|problem| Error::invalid_input("old", problem.describe(&before, old, path)))?;
    let end = at.saturating_add(old.len());
    let (Some(head), Some(tail)) = (before.get(..at), before.get(end..)) else {
        return Err(Error::failed(format!("cannot take {} apart at byte {at}", shown(path))));
    };
    let after = [head, new, tail].concat();
    atomic::replace(&target, after.as_bytes()).map_err(|error| refusal("write", path, error))?;
    Ok(diff::unified(path, &before, &after, at..end))
}

fn check(old: &str, new: &str) -> Result<()> {
    if old.is_empty() {
        return Err(Error::invalid_input(
            "old",
            "it is empty; give the text to replace, or use write_file to write a whole file",
        ));
    }
    if old == new {
        return Err(Error::invalid_input("new", "it equals old, so that nothing would change"));
    }
    Ok(())
}

fn load(target: &Path, path: &Path) -> Result<String> {
    match write::replaceable(target, path)? {
        None => Err(missing(path)),
        Some(bytes) if bytes > MAX_FILE_BYTES => Err(Error::failed(format!(
            "{} has {bytes} bytes, and {MAX_FILE_BYTES} is the most that is patched",
            shown(path)
        ))),
        Some(_) => {
            let bytes = fs::read(target).map_err(|error| refusal("read", path, error))?;
            text::from_bytes(bytes, 0, path)
        }
    }
}
