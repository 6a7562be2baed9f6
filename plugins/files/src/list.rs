//! The `list_dir` tool.

#[cfg(test)]
mod tests;

use crate::workspace::{Workspace, refusal, shown, size};
use palisade_guest::{Error, ReadPath, Result, tool, visible};
use schemars::JsonSchema;
use serde::Deserialize;
use std::fs::{self, DirEntry};
use std::io;
use std::path::{Path, PathBuf};

/// Maximum number of listed entries: about 10,000 tokens.
const MAX_ENTRIES: usize = 1_000;

/// The directory to list.
#[derive(Deserialize, JsonSchema)]
pub(crate) struct Args {
    /// The directory to list, relative to the workspace. Default: the workspace itself.
    path: Option<ReadPath>,
}

/// Lists one directory, one entry a line, sorted by name, hidden entries included.
///
/// A directory ends in `/`, a symbolic link in `@`, and a file is followed by its size, as in
/// `notes.txt (1024 bytes)`. It does not go into directories: use find_files to find files by name
/// in a whole tree. At most 1000 entries are shown; a last line in brackets then says how many
/// there are.
#[tool(side_effects = "read", title = "List a directory", idempotent)]
pub(crate) fn list_dir(args: Args) -> Result<String> {
    let path = args.path.as_ref().map_or(Path::new(""), AsRef::as_ref);
    list(&Workspace::here(), path)
}

fn list(workspace: &Workspace, path: &Path) -> Result<String> {
    let target = workspace.at(path);
    let (entries, count) = first_entries(&target).map_err(|error| refuse(&target, path, error))?;
    if count == 0 {
        return Ok(format!("[{} is empty]", shown(path)));
    }
    let mut text = String::new();
    for entry in &entries {
        text.push_str(&line(entry));
        text.push('\n');
    }
    if count > entries.len() {
        text.push_str(&marker(path, entries.len(), count));
    }
    Ok(text)
}

fn refuse(target: &Path, path: &Path, error: io::Error) -> Error {
    // Not every system reports `ENOTDIR` for a file, so that the type is checked explicitly.
    if fs::metadata(target).is_ok_and(|metadata| !metadata.is_dir()) {
        return Error::failed(format!(
            "{} is not a directory; use read_file to read a file",
            shown(path)
        ));
    }
    refusal("list", path, error)
}

/// Returns the first entries by name, and their total number. Memory stays bounded.
fn first_entries(target: &Path) -> io::Result<(Vec<DirEntry>, usize)> {
    let mut entries = Vec::new();
    let mut count: usize = 0;
    for entry in fs::read_dir(target)? {
        entries.push(entry?);
        count = count.saturating_add(1);
        if entries.len() >= MAX_ENTRIES.saturating_mul(2) {
            keep_first(&mut entries);
        }
    }
    keep_first(&mut entries);
    Ok((entries, count))
}

fn keep_first(entries: &mut Vec<DirEntry>) {
    entries.sort_by_cached_key(DirEntry::file_name);
    entries.truncate(MAX_ENTRIES);
}

fn line(entry: &DirEntry) -> String {
    let name = visible(&entry.file_name().to_string_lossy());
    match entry.file_type() {
        Ok(kind) if kind.is_dir() => format!("{name}/"),
        Ok(kind) if kind.is_symlink() => format!("{name}@"),
        Ok(kind) if kind.is_file() => match entry.metadata() {
            Ok(metadata) => format!("{name} ({})", size(metadata.len())),
            Err(_) => format!("{name} (size unknown)"),
        },
        _ => format!("{name} (special)"),
    }
}

fn marker(path: &Path, shown_count: usize, count: usize) -> String {
    let inside = if path.as_os_str().is_empty() { PathBuf::from(".") } else { path.to_owned() };
    let example = serde_json::json!({"pattern": "a*", "path": inside.to_string_lossy()});
    format!(
        "[{shown_count} of {count} entries shown; \
         see the others with find_files and a narrower pattern, such as {example}]"
    )
}
