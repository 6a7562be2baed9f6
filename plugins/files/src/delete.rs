//! The `delete_file` tool.

use crate::workspace::{Entry, Workspace, missing, refusal, shown, size};
use palisade_guest::{Error, Output, Result, WritePath, tool};
use schemars::JsonSchema;
use serde::Deserialize;
use std::fs;
use std::path::Path;

/// The file to remove.
#[derive(Deserialize, JsonSchema)]
pub(crate) struct Args {
    /// The file or the symbolic link to remove, relative to the workspace.
    path: WritePath,
}

/// Removes one file for good; there is no way to get it back.
///
/// Of a symbolic link the link itself is removed, never what it points to. Directories are refused.
#[tool(
    side_effects = "write",
    metadata = r#"{"keeps-links": true}"#,
    title = "Delete a file",
    idempotent
)]
pub(crate) fn delete_file(args: Args) -> Result<Output> {
    let said = delete(&Workspace::here(), &args.path)?;
    Ok(Output::text(said).modified(args.path))
}

/// Removes the file and describes it.
fn delete(workspace: &Workspace, path: &Path) -> Result<String> {
    let target = workspace.at(path);
    let what = match Entry::look(&target, path)? {
        Entry::Missing => return Err(missing(path)),
        Entry::Directory => {
            return Err(Error::failed(format!(
                "{} is a directory, and only files can be deleted",
                shown(path)
            )));
        }
        Entry::File(bytes) => format!("({})", size(bytes)),
        Entry::Link => "(a symbolic link; its target is untouched)".to_owned(),
        Entry::Special => "(a pipe, a device or a socket)".to_owned(),
    };
    fs::remove_file(&target).map_err(|error| refusal("delete", path, error))?;
    Ok(format!("Deleted {} {what}.", shown(path)))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a panic is how a test fails")]

    use super::*;
    use tempfile::{TempDir, tempdir};

    fn deleted(directory: &TempDir, path: &str) -> Result<String> {
        delete(&Workspace::of(directory.path()), Path::new(path))
    }

    #[test]
    fn file_is_removed() {
        let directory = tempdir().unwrap();
        fs::write(directory.path().join("a"), "abc").unwrap();
        assert_eq!(deleted(&directory, "a").unwrap(), "Deleted `a` (3 bytes).");
        assert!(!directory.path().join("a").exists());
    }

    #[test]
    fn missing_file_is_not_found() {
        let said = deleted(&tempdir().unwrap(), "a").unwrap_err().to_string();
        assert_eq!(said, "`a` does not exist; list_dir and find_files show what does");
    }

    #[test]
    fn directory_is_refused_even_if_empty() {
        let directory = tempdir().unwrap();
        fs::create_dir(directory.path().join("d")).unwrap();
        let said = deleted(&directory, "d").unwrap_err().to_string();
        assert_eq!(said, "`d` is a directory, and only files can be deleted");
        assert!(directory.path().join("d").is_dir());
    }

    #[cfg(unix)]
    #[test]
    fn only_the_link_itself_is_removed() {
        use std::os::unix::fs::symlink;
        let directory = tempdir().unwrap();
        fs::create_dir(directory.path().join("d")).unwrap();
        fs::write(directory.path().join("file"), "kept").unwrap();
        for target in ["file", "d", "nowhere"] {
            symlink(target, directory.path().join("link")).unwrap();
            assert_eq!(
                deleted(&directory, "link").unwrap(),
                "Deleted `link` (a symbolic link; its target is untouched)."
            );
            assert!(directory.path().join("link").symlink_metadata().is_err());
        }
        assert_eq!(fs::read_to_string(directory.path().join("file")).unwrap(), "kept");
        assert!(directory.path().join("d").is_dir());
    }
}
