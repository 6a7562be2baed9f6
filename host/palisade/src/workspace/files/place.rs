//! The location of a file to change: a directory held open and a single name in it, which a
//! concurrent rename cannot redirect.

use super::super::{Admission, Forbidden, LastLink, ProtectedPaths, Standing};
use super::open::not_the_kernels;
use super::{FileError, planted, regular};
use cap_std::fs::{Dir, Metadata};
use std::ffi::{OsStr, OsString};
use std::io::{self, ErrorKind};
use std::path::{Component, Path, PathBuf};

/// The treatment of missing parent directories.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Missing {
    /// Create them.
    Created,
    /// Fail.
    Refused,
}

/// A name in an open directory.
pub(super) struct Place {
    pub(super) dir: Dir,
    pub(super) name: OsString,
}

impl Place {
    /// Resolves the links of `relative` beneath the root, checks the resulting path against the
    /// protected trees, and then walks that path without following links. A link swapped in after
    /// the check (a TOCTOU race) is met as a link and refused.
    pub(super) fn find(
        (root, rules): (&Dir, &ProtectedPaths),
        relative: &Path,
        path: &str,
        last: LastLink,
        missing: Missing,
    ) -> Result<Self, FileError> {
        let fail = |error| FileError::io("reach", path, error);
        let forbidden = |why| FileError::forbidden(path, why);
        let real = match real(root, relative, last) {
            Err(Unreal::Dangling(_)) => {
                return Err(FileError::not_regular(
                    path,
                    "a symbolic link that leads nowhere, or lies behind one",
                ));
            }
            Err(Unreal::Io(error)) => return Err(fail(error)),
            Ok(real) => real,
        };
        if real != relative && planted::lies_on(root, relative, last).map_err(fail)? {
            return Err(FileError::not_regular(
                path,
                "behind a symbolic link of another user in a directory for all users",
            ));
        }
        // The written path counts too: a link called `.git` is protected like a repository.
        for name in [&real, relative] {
            rules.check_names(&name.to_string_lossy()).map_err(forbidden)?;
        }
        let Some(name) = real.file_name() else {
            return Err(FileError::not_regular(path, "a directory"));
        };
        let allowed = |dir: &Dir, name: &OsStr| check_entry(rules, dir, name).map_err(forbidden);
        rules.check_allowed(&real.to_string_lossy()).map_err(forbidden)?;
        let mut dir = root.try_clone().map_err(fail)?;
        for part in real.parent().unwrap_or(Path::new("")).components() {
            dir = match step(&dir, part) {
                Err(error)
                    if error.kind() == ErrorKind::NotFound && missing == Missing::Created =>
                {
                    allowed(&dir, part.as_os_str())?;
                    not_the_kernels(path, &dir)?;
                    let _admission = admit(rules, &dir, part.as_os_str()).map_err(forbidden)?;
                    create(&dir, part).map_err(fail)?
                }
                entered => entered.map_err(fail)?,
            };
        }
        allowed(&dir, name)?;
        check_permitted(rules, &dir, name).map_err(forbidden)?;
        not_the_kernels(path, &dir)?;
        Ok(Self { dir, name: name.to_owned() })
    }

    /// Returns the metadata of the entry; of a link, its own.
    pub(super) fn metadata(&self) -> io::Result<Metadata> {
        self.dir.symlink_metadata(&self.name)
    }

    /// Returns the metadata of a regular file, or none if it does not exist. Other file types are
    /// errors.
    pub(super) fn regular(&self, path: &str) -> Result<Option<Metadata>, FileError> {
        match self.metadata() {
            Ok(metadata) => regular(path, &metadata).map(|()| Some(metadata)),
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
            Err(error) => Err(FileError::io("look at", path, error)),
        }
    }

    /// Reserves the name in the directory. The caller keeps the admission until the file is
    /// created.
    pub(super) fn admit(&self, rules: &ProtectedPaths, path: &str) -> Result<Admission, FileError> {
        admit(rules, &self.dir, &self.name).map_err(|why| FileError::forbidden(path, why))
    }
}

/// Refuses a new name that forms a git repository together with an existing one.
fn admit(rules: &ProtectedPaths, dir: &Dir, name: &OsStr) -> Result<Admission, Forbidden> {
    use std::os::fd::AsFd as _;
    rules.admit(dir.as_fd(), name)
}

pub(super) fn check_entry(
    rules: &ProtectedPaths,
    dir: &Dir,
    name: &OsStr,
) -> Result<(), Forbidden> {
    use std::os::fd::AsFd as _;
    rules.check_entry(dir.as_fd(), name).map(|_| ())
}

/// Refuses a file that the path rules leave out, by the present place of its directory.
pub(super) fn check_permitted(
    rules: &ProtectedPaths,
    dir: &Dir,
    name: &OsStr,
) -> Result<(), Forbidden> {
    use std::os::fd::AsFd as _;
    match rules.standing_at(dir.as_fd(), name)? {
        Standing::Permitted => Ok(()),
        Standing::Way | Standing::Denied => Err(excluded(name)),
    }
}

/// Returns the place of a directory to list, relative to the workspace. Refuses one that the path
/// rules leave out.
pub(super) fn listed_place(rules: &ProtectedPaths, dir: &Dir) -> Result<Option<String>, Forbidden> {
    use std::os::fd::AsFd as _;
    if !rules.judge_places() {
        return Ok(None);
    }
    let place = rules.place(dir.as_fd())?;
    let permitted = place.filter(|place| rules.standing_of(place) != Standing::Denied);
    permitted.map(Some).ok_or_else(|| excluded(OsStr::new(".")))
}

fn excluded(name: &OsStr) -> Forbidden {
    Forbidden::Excluded(name.to_string_lossy().into())
}

/// Refuses to read a name of an open directory if it lies in the host's own files.
pub(super) fn check_readable(
    rules: &ProtectedPaths,
    dir: &Dir,
    name: &OsStr,
) -> Result<(), Forbidden> {
    use std::os::fd::AsFd as _;
    rules.check_readable(dir.as_fd(), name)
}

/// Refuses a path that leads to a place which the path rules leave out, whether or not anything is
/// there: the answer does not tell.
pub(super) fn check_destination(
    (root, rules): (&Dir, &ProtectedPaths),
    path: &Path,
    last: LastLink,
) -> Result<(), Forbidden> {
    /// Maximum number of links that lead to nothing, one after the other: as many as Linux follows.
    const LINKS: usize = 40;
    if !rules.filter_anything() {
        return Ok(());
    }
    let mut path = path.to_owned();
    for _ in 0..LINKS {
        match real(root, &path, last) {
            Ok(real) => return rules.check_allowed(&real.to_string_lossy()),
            Err(Unreal::Dangling(link)) => match behind(root, &link, &path) {
                Some(target) => path = target,
                None => break,
            },
            Err(Unreal::Io(_)) => break,
        }
    }
    // The operation that follows meets the same error.
    Ok(())
}

/// Returns the path with a dangling link on it replaced by the link's target. In contrast to the
/// lexical resolution of an argument, a `..` in the target counts from where earlier links lead.
fn behind(root: &Dir, link: &Path, path: &Path) -> Option<PathBuf> {
    let parent = link.parent().filter(|parent| !parent.as_os_str().is_empty());
    let beside = parent.map_or(Ok(PathBuf::new()), |parent| root.canonicalize(parent)).ok()?;
    let target = beside.join(root.read_link(link).ok()?);
    let path = target.join(path.strip_prefix(link).ok()?);
    let mut plain = PathBuf::new();
    for part in path.components() {
        match part {
            Component::Normal(name) => plain.push(name),
            Component::CurDir => {}
            // A link before it leads elsewhere than its name.
            Component::ParentDir => {
                plain = root.canonicalize(&plain).unwrap_or(plain);
                plain.pop().then_some(())?;
            }
            Component::RootDir | Component::Prefix(_) => return None,
        }
    }
    Some(plain)
}

/// The reason why a path cannot be resolved.
enum Unreal {
    /// This link on the path leads to nothing.
    Dangling(PathBuf),
    Io(io::Error),
}

/// Resolves the links of a path. Missing components are kept as written; a dangling link is an
/// error, not a missing component.
fn real(root: &Dir, path: &Path, last: LastLink) -> Result<PathBuf, Unreal> {
    let (Some(parent), Some(name)) = (path.parent(), path.file_name()) else {
        return Ok(PathBuf::new());
    };
    if last == LastLink::Follow {
        match root.canonicalize(path) {
            Ok(real) => return Ok(real),
            // A file in the place of a directory is met by the walk that follows.
            Err(error)
                if !matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) =>
            {
                return Err(Unreal::Io(error));
            }
            Err(_) if root.symlink_metadata(path).is_ok() => {
                return Err(Unreal::Dangling(path.to_owned()));
            }
            Err(_) => {}
        }
    }
    Ok(real(root, parent, LastLink::Follow)?.join(name))
}

/// Opens the directory above a resolved path, without following a link that has been swapped in.
pub(super) fn parent_of(root: &Dir, real: &Path) -> io::Result<Dir> {
    let mut parts = real.parent().into_iter().flat_map(Path::components);
    parts.try_fold(root.try_clone()?, |dir, part| step(&dir, part))
}

fn step(dir: &Dir, part: Component<'_>) -> io::Result<Dir> {
    match part {
        Component::Normal(name) => enter(dir, name),
        Component::CurDir => dir.try_clone(),
        _ => Err(io::Error::other("the path changed while it was followed")),
    }
}

fn create(dir: &Dir, part: Component<'_>) -> io::Result<Dir> {
    match dir.create_dir(part) {
        // Another program may have created the directory in the meantime.
        Err(error) if error.kind() != ErrorKind::AlreadyExists => Err(error),
        _ => step(dir, part),
    }
}

pub(super) fn enter(dir: &Dir, name: &OsStr) -> io::Result<Dir> {
    use rustix::fs::{Mode, OFlags, openat};
    // `O_PATH` needs no permission to read the directory.
    #[cfg(target_os = "linux")]
    let access = OFlags::PATH;
    #[cfg(not(target_os = "linux"))]
    let access = OFlags::RDONLY;
    let flags = access | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    Ok(Dir::from_std_file(openat(dir, name, flags, Mode::empty())?.into()))
}
