//! Finds the workspace's own git repository, in the way of git.

use super::{ProtectedTree, Reading};
use crate::inspect::LastLink;
use crate::regular::open_regular;
use std::ffi::OsStr;
use std::fs::File;
use std::io::{self, ErrorKind, Read as _};
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

/// The maximum size of a file that names a directory, in bytes: it holds one path, and no system
/// accepts a longer one.
const MAX_POINTER: u64 = 4_200;

/// Returns the trees of the repository, wherever they lie: the directory that `.git` is or refers
/// to, by a link or in a file, and the common directory of several worktrees. Missing directories
/// are included, since creating one would create the repository.
///
/// # Errors
///
/// Fails if a directory cannot be held open, except for lack of permission.
pub(super) fn trees(root: &Path) -> io::Result<Vec<ProtectedTree>> {
    let Some(own) = directory(root) else { return Ok(Vec::new()) };
    let common = pointer(&own.join("commondir"), b"").map(|path| own.join(path));
    let mut trees = Vec::new();
    for path in [Some(own), common].into_iter().flatten() {
        match ProtectedTree::open(&path, Reading::Allowed) {
            Ok(tree) => trees.push(tree.without_protected_names()),
            Err(error)
                if matches!(error.kind(), ErrorKind::PermissionDenied | ErrorKind::NotFound) => {}
            Err(error) => return Err(error),
        }
    }
    Ok(trees)
}

fn directory(root: &Path) -> Option<PathBuf> {
    let git = root.join(".git");
    git.symlink_metadata().ok()?;
    if !git.is_file() {
        return Some(git);
    }
    // Relative to the directory of the name, not to a link's target, as git resolves it.
    pointer(&git, b"gitdir: ").map(|path| root.join(path))
}

/// Returns the path in a file that consists of this prefix and one path.
fn pointer(file: &Path, prefix: &[u8]) -> Option<PathBuf> {
    let bytes = read(open_regular(file, LastLink::Follow).ok()?).ok()?;
    let path = bytes.strip_prefix(prefix)?;
    let end = path.iter().rposition(|byte| !matches!(byte, b'\n' | b'\r'))?;
    let path = path.get(..=end).filter(|path| !path.contains(&0))?;
    Some(OsStr::from_bytes(path).into())
}

fn read(file: File) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    file.take(MAX_POINTER).read_to_end(&mut bytes)?;
    Ok(bytes)
}
