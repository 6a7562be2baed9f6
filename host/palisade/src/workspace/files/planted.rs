//! Links on a path that another user may have planted in a directory for all users.

use super::super::LastLink;
use super::place::enter;
use cap_std::fs::Dir;
use palisade_wasi_fs::internal::may_be_planted;
use std::ffi::OsString;
use std::io::{self, ErrorKind};
use std::os::fd::AsFd as _;
use std::path::{Component, Path};

/// The most links that are followed on a path, as in Linux.
const LINKS: usize = 40;

/// Returns true if a link that another user may have planted lies on a path. What the path misses,
/// and links that lead out of the directory, are errors of the walk that follows.
pub(super) fn lies_on(root: &Dir, path: &Path, last: LastLink) -> io::Result<bool> {
    let (mut above, mut links) = (vec![root.try_clone()?], 0);
    let mut pending = reversed(path);
    while let (Some(name), Some(dir)) = (pending.pop(), above.last()) {
        if name == ".." {
            above.truncate(above.len().saturating_sub(1).max(1));
            continue;
        }
        let found = match dir.symlink_metadata(&name) {
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(false),
            found => found?,
        };
        if found.is_symlink() {
            links += 1;
            if links > LINKS || (pending.is_empty() && last == LastLink::Keep) {
                return Ok(false);
            }
            if may_be_planted(dir.as_fd(), &name)? {
                return Ok(true);
            }
            let target = dir.read_link_contents(&name)?;
            if target.is_absolute() {
                return Ok(false);
            }
            pending.extend(reversed(&target));
        } else if found.is_dir() {
            let entered = enter(dir, &name)?;
            above.push(entered);
        } else {
            return Ok(false);
        }
    }
    Ok(false)
}

/// Returns the names of a path, the last one first.
fn reversed(path: &Path) -> Vec<OsString> {
    let names = path.components().filter_map(|part| match part {
        Component::Normal(name) => Some(name.to_owned()),
        Component::ParentDir => Some("..".into()),
        Component::CurDir | Component::RootDir | Component::Prefix(_) => None,
    });
    let mut names: Vec<_> = names.collect();
    names.reverse();
    names
}
