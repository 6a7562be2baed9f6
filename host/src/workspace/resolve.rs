//! Path arguments: checked against the workspace before a call starts.
//!
//! This check serves the person and the model, who get a clear answer and no half-run tool. It is not what contains a guest: the sandbox resolves every
//! path again, at the moment of use, on the same handle.

use crate::tool::text::elided;
use cap_std::fs::Dir;
use std::io::{self, ErrorKind};
use std::path::{Component, Path, PathBuf};

/// The longest path argument, in bytes: Linux's own `PATH_MAX`.
const MAX_PATH: usize = 4096;

/// Whether a symbolic link at the end of a path is followed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LastLink {
    /// The path names what the link points to, which must lie inside.
    Follow,
    /// The path names the link itself.
    Keep,
}

/// A path argument that is refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum PathRefused {
    /// It leads out of the workspace: `..`, an absolute path elsewhere, or a symbolic link.
    #[error(
        "the path `{0}` escapes the workspace boundary; give a path relative to the workspace, without links that lead out"
    )]
    Escapes(String),
    /// It cannot be a path.
    #[error("the path `{path}` is not usable: {reason}")]
    Unusable {
        /// The path, shortened.
        path: String,
        /// Why.
        reason: &'static str,
    },
}

pub(super) fn resolve(dir: &Dir, root: &Path, path: &str, last: LastLink) -> Result<String, PathRefused> {
    check_text(path)?;
    let relative = lexical(root, Path::new(path)).ok_or_else(|| escapes(path))?;
    if relative.as_os_str().is_empty() {
        return Ok(".".to_owned());
    }
    check_links(dir, &relative, last).map_err(|()| escapes(path))?;
    relative.into_os_string().into_string().map_err(|_| unusable(path, "it is not UTF-8"))
}

fn check_text(path: &str) -> Result<(), PathRefused> {
    if path.is_empty() {
        return Err(unusable(path, "it is empty; use `.` for the workspace itself"));
    }
    if path.len() > MAX_PATH {
        return Err(unusable(path, "it is longer than 4096 bytes"));
    }
    if path.contains('\0') {
        return Err(unusable(path, "it holds a NUL character"));
    }
    Ok(())
}

/// The path below the root with `.` and `..` worked out, or `None` where it leaves the root on the way.
fn lexical(root: &Path, path: &Path) -> Option<PathBuf> {
    let below = if path.is_absolute() { path.strip_prefix(root).ok()? } else { path };
    let mut out = PathBuf::new();
    for component in below.components() {
        match component {
            Component::Normal(name) => out.push(name),
            Component::CurDir => {}
            Component::ParentDir => {
                if !out.pop() {
                    return None;
                }
            }
            Component::RootDir | Component::Prefix(_) => return None,
        }
    }
    Some(out)
}

/// Follows the links on the way, beneath the handle. What does not exist yet is fine as long as what exists of its parents lies inside.
fn check_links(dir: &Dir, path: &Path, last: LastLink) -> Result<(), ()> {
    if lies_beneath(dir, path, last) {
        return Ok(());
    }
    let looked = match last {
        LastLink::Follow => dir.metadata(path),
        LastLink::Keep => dir.symlink_metadata(path),
    };
    match looked {
        Ok(_) => Ok(()),
        Err(error) if led_out(&error) => Err(()),
        Err(error) if error.kind() == ErrorKind::NotFound => check_missing(dir, path),
        // Whatever else is wrong (no permission, not a directory, a loop) the tool meets again, and says so in its own words.
        Err(_) => Ok(()),
    }
}

/// The common case in one system call. Where it says no, for whatever reason, the portable walk decides and finds out why.
#[cfg(target_os = "linux")]
fn lies_beneath(dir: &Dir, path: &Path, last: LastLink) -> bool {
    use rustix::fs::{Mode, OFlags, ResolveFlags, openat2};
    let own = if last == LastLink::Keep { OFlags::NOFOLLOW } else { OFlags::empty() };
    openat2(
        dir,
        path,
        OFlags::PATH | OFlags::CLOEXEC | own,
        Mode::empty(),
        ResolveFlags::BENEATH | ResolveFlags::NO_MAGICLINKS,
    )
    .is_ok()
}

#[cfg(not(target_os = "linux"))]
fn lies_beneath(_: &Dir, _: &Path, _: LastLink) -> bool {
    false
}

fn check_missing(dir: &Dir, path: &Path) -> Result<(), ()> {
    // A dangling link at the end is not a missing leaf: creating it would create its target, wherever that is.
    if dir.symlink_metadata(path).is_ok_and(|meta| meta.is_symlink()) && dir.read_link(path).is_err() {
        return Err(());
    }
    match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => check_links(dir, parent, LastLink::Follow),
        _ => Ok(()),
    }
}

/// cap-std reports an escape as an error of its own making, which has no number of the operating system.
pub(super) fn led_out(error: &io::Error) -> bool {
    error.kind() == ErrorKind::PermissionDenied && error.raw_os_error().is_none()
}

fn escapes(path: &str) -> PathRefused {
    PathRefused::Escapes(elided(path, 256))
}

fn unusable(path: &str, reason: &'static str) -> PathRefused {
    PathRefused::Unusable { path: elided(path, 256), reason }
}

#[cfg(all(test, unix))]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test that cannot prepare its directory has failed")]
    use super::super::Workspace;
    use super::*;
    use std::os::unix::fs::symlink;

    fn workspace() -> (tempfile::TempDir, Workspace) {
        let outer = tempfile::tempdir().unwrap();
        let root = outer.path().join("ws");
        std::fs::create_dir_all(root.join("sub/deep")).unwrap();
        std::fs::write(root.join("file.txt"), "in").unwrap();
        std::fs::write(outer.path().join("secret"), "out").unwrap();
        symlink("file.txt", root.join("inside")).unwrap();
        symlink("../secret", root.join("outside")).unwrap();
        symlink("..", root.join("up")).unwrap();
        symlink("../not-yet", root.join("dangling")).unwrap();
        symlink(outer.path().join("secret"), root.join("absolute")).unwrap();
        let opened = Workspace::open(&root).unwrap();
        (outer, opened)
    }

    #[test]
    fn paths_inside_come_back_relative() {
        let (_keep, ws) = workspace();
        let absolute = ws.root().join("sub/../file.txt");
        for (given, expected) in [
            ("file.txt", "file.txt"),
            ("./sub//deep/", "sub/deep"),
            ("sub/../file.txt", "file.txt"),
            (".", "."),
            ("inside", "inside"),
            ("missing/new.txt", "missing/new.txt"),
            (absolute.to_str().unwrap(), "file.txt"),
            (ws.root().to_str().unwrap(), "."),
        ] {
            assert_eq!(ws.resolve(given, LastLink::Follow).as_deref(), Ok(expected), "{given}");
        }
    }

    #[test]
    fn paths_that_lead_out_are_refused() {
        let (_keep, ws) = workspace();
        for given in [
            "..",
            "../secret",
            "sub/../../secret",
            "/etc/passwd",
            "outside",
            "absolute",
            "up/secret",
            "up/new",
            "dangling",
            "missing/../../x",
        ] {
            assert!(matches!(ws.resolve(given, LastLink::Follow), Err(PathRefused::Escapes(_))), "{given}");
        }
    }

    #[test]
    fn a_tool_that_removes_names_the_link_itself() {
        let (_keep, ws) = workspace();
        assert_eq!(ws.resolve("outside", LastLink::Keep).as_deref(), Ok("outside"));
        assert!(ws.resolve("up/secret", LastLink::Keep).is_err());
    }

    #[test]
    fn what_cannot_be_a_path_is_named_as_such() {
        let (_keep, ws) = workspace();
        for given in ["", "a\0b", &"x".repeat(5000)] {
            assert!(matches!(ws.resolve(given, LastLink::Follow), Err(PathRefused::Unusable { .. })), "{given:?}");
        }
    }
}
