//! Checks path arguments against the workspace before a call starts.
//!
//! This check gives the user and the model a clear error before the tool runs. It does not contain
//! guests: the sandbox resolves every path again at the moment of use, on the same handle.

use super::LastLink;
use crate::tool::budget::{Budget, Exhausted};
use crate::tool::text::elided;
use cap_std::fs::Dir;
use std::borrow::Cow;
use std::io::{self, ErrorKind};
use std::path::{Component, Path, PathBuf};

/// The maximum length of a path argument in bytes: `PATH_MAX` of Linux.
const MAX_PATH: usize = 4096;

/// The bytes of a path per budget check; resolving them takes at most a hundred directory lookups.
pub(crate) const PATH_PER_STEP: usize = 256;

/// A refused path argument.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum PathRefused {
    /// The path leads out of the workspace by `..`, as an absolute path elsewhere, or by a symbolic
    /// link.
    #[error(
        "the path `{0}` escapes the workspace boundary; give a path relative to the workspace, without links that lead out"
    )]
    Escapes(String),
    /// The path is not valid.
    #[error("the path `{path}` is not usable: {reason}")]
    Unusable {
        /// The path, shortened.
        path: String,
        /// The reason.
        reason: &'static str,
    },
}

pub(super) fn resolve(
    dir: &Dir,
    names: &[PathBuf],
    path: &str,
    last: LastLink,
    budget: &dyn Budget,
) -> Result<Result<String, PathRefused>, Exhausted> {
    let relative = match below(names, path) {
        Ok(relative) if relative.as_os_str().is_empty() => return Ok(Ok(".".to_owned())),
        Ok(relative) => relative,
        Err(refused) => return Ok(Err(refused)),
    };
    Ok(match lies_inside(dir, &relative, last, budget)? {
        true => relative
            .into_owned()
            .into_os_string()
            .into_string()
            .map_err(|_| unusable(path, "it is not UTF-8")),
        false => Err(escapes(path)),
    })
}

fn below<'p>(names: &[PathBuf], path: &'p str) -> Result<Cow<'p, Path>, PathRefused> {
    check_text(path)?;
    if is_plain(path) {
        return Ok(Cow::Borrowed(Path::new(path)));
    }
    lexical(names, Path::new(path)).map(Cow::Owned).ok_or_else(|| escapes(path))
}

/// Returns whether a path consists only of names separated by single slashes. Most paths do.
fn is_plain(path: &str) -> bool {
    path.split('/').all(|name| !matches!(name, "" | "." | ".."))
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

/// Returns the path below the root with `.` and `..` resolved lexically, or `None` if it leaves the
/// root on the way. An absolute path begins with one of the names of the root.
fn lexical(names: &[PathBuf], path: &Path) -> Option<PathBuf> {
    let below = match path.is_absolute() {
        true => names.iter().find_map(|name| path.strip_prefix(name).ok())?,
        false => path,
    };
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

/// The location of the file at a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Place {
    /// Inside, or unknown for another error: no permission, not a directory, a loop. The tool meets
    /// the same error again and reports it.
    Inside,
    /// Outside of the workspace.
    Outside,
    /// Nothing exists at the path.
    Missing,
}

/// Returns whether a path lies inside, with its links resolved beneath the handle. A path that does
/// not exist lies inside if its existing ancestors do.
fn lies_inside(
    dir: &Dir,
    path: &Path,
    last: LastLink,
    budget: &dyn Budget,
) -> Result<bool, Exhausted> {
    budget.check()?;
    match place(dir, path, last) {
        Place::Inside => Ok(true),
        Place::Outside => Ok(false),
        Place::Missing => is_missing_inside(dir, path, budget),
    }
}

fn place(dir: &Dir, path: &Path, last: LastLink) -> Place {
    if lies_beneath(dir, path, last) {
        return Place::Inside;
    }
    let looked = match last {
        LastLink::Follow => dir.metadata(path),
        LastLink::Keep => dir.symlink_metadata(path),
    };
    match looked {
        Err(error) if led_out(&error) => Place::Outside,
        Err(error) if error.kind() == ErrorKind::NotFound => Place::Missing,
        Ok(_) | Err(_) => Place::Inside,
    }
}

/// Handles the common case in one system call. On any failure the portable walk decides and finds
/// the reason.
#[cfg(target_os = "linux")]
fn lies_beneath(dir: &Dir, path: &Path, last: LastLink) -> bool {
    use palisade_wasi_fs::internal::PIN_ANY;
    use rustix::fs::{Mode, OFlags, ResolveFlags, openat2};
    let own = if last == LastLink::Keep { OFlags::NOFOLLOW } else { OFlags::empty() };
    openat2(
        dir,
        path,
        PIN_ANY | own,
        Mode::empty(),
        ResolveFlags::BENEATH | ResolveFlags::NO_MAGICLINKS,
    )
    .is_ok()
}

#[cfg(not(target_os = "linux"))]
fn lies_beneath(_: &Dir, _: &Path, _: LastLink) -> bool {
    false
}

/// Returns whether a path that does not exist lies inside as far as it exists.
///
/// Every directory before the first missing one lies inside, since otherwise the whole path would
/// have led out. Binary search finds the first missing directory with a logarithmic number of
/// look-ups.
fn is_missing_inside(dir: &Dir, path: &Path, budget: &dyn Budget) -> Result<bool, Exhausted> {
    let parts: Vec<Component<'_>> = path.components().collect();
    let first = |count: usize| parts.iter().take(count).collect::<PathBuf>();
    let mut there = 0;
    let mut missing = parts.len();
    while missing - there > 1 {
        budget.check()?;
        let middle = there.midpoint(missing);
        match place(dir, &first(middle), LastLink::Follow) {
            Place::Inside => there = middle,
            Place::Missing => missing = middle,
            Place::Outside => return Ok(false),
        }
    }
    budget.check()?;
    let gap = first(missing);
    // A dangling link is not a missing leaf: creating it would create its target, wherever that is.
    let dangles = dir.symlink_metadata(&gap).is_ok_and(|meta| meta.is_symlink())
        && dir.read_link(&gap).is_err();
    Ok(!dangles)
}

/// Returns the real path of a file beneath the handle, or of the place where it would be created.
pub(super) fn place_of(
    dir: &Dir,
    path: &str,
    last: LastLink,
    budget: &dyn Budget,
) -> Result<Option<String>, Exhausted> {
    (0..=path.len() / PATH_PER_STEP).try_for_each(|_| budget.check())?;
    let path = Path::new(path);
    let whole = match last {
        LastLink::Follow => dir.canonicalize(path).ok(),
        LastLink::Keep => None,
    };
    let place = match whole {
        Some(place) => place,
        None => place_of_missing(dir, path, budget)?,
    };
    Ok(place.into_os_string().into_string().ok())
}

/// Returns the place of an entry that is not looked up itself: the real path of the deepest of its
/// directories that exists, and the rest of the path behind it. Found as in [`is_missing_inside`].
fn place_of_missing(dir: &Dir, path: &Path, budget: &dyn Budget) -> Result<PathBuf, Exhausted> {
    let parts: Vec<Component<'_>> = path.components().collect();
    let first = |count: usize| parts.iter().take(count).collect::<PathBuf>();
    let (mut there, mut missing) = (0, parts.len());
    let mut place = PathBuf::new();
    while missing.saturating_sub(there) > 1 {
        budget.check()?;
        let middle = there.midpoint(missing);
        match dir.canonicalize(first(middle)) {
            Ok(found) => (there, place) = (middle, found),
            Err(_) => missing = middle,
        }
    }
    place.extend(&parts[there..]);
    Ok(place)
}

/// Returns whether an error is an escape detected by cap-std, which reports it without an error
/// number of the operating system.
pub(super) fn led_out(error: &io::Error) -> bool {
    error.kind() == ErrorKind::PermissionDenied && error.raw_os_error().is_none()
}

pub(super) fn escapes(path: &str) -> PathRefused {
    PathRefused::Escapes(elided(path, 256))
}

fn unusable(path: &str, reason: &'static str) -> PathRefused {
    PathRefused::Unusable { path: elided(path, 256), reason }
}

#[cfg(test)]
mod tests;
