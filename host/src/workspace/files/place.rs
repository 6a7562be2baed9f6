//! Where a file that is changed stands: a directory held open, and a bare name in it, which nobody can lead elsewhere any more.

#[cfg(unix)]
use super::super::Admission;
use super::super::{Forbidden, LastLink, Rules};
use super::{FileError, regular};
use cap_std::fs::{Dir, Metadata};
use std::ffi::{OsStr, OsString};
use std::io::{self, ErrorKind};
use std::path::{Component, Path, PathBuf};

/// What is done about directories that are missing on the way.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Missing {
    /// They are created.
    Created,
    /// They are an error.
    Refused,
}

/// A name in an opened directory.
pub(super) struct Place {
    pub(super) dir: Dir,
    pub(super) name: OsString,
}

impl Place {
    /// Follows the links of `relative` beneath the root, refuses protected trees on the path without links, and only then walks that path, following none:
    /// a link swapped in after the check is met as a link, and refused.
    pub(super) fn find(
        (root, rules): (&Dir, &Rules),
        relative: &Path,
        path: &str,
        last: LastLink,
        missing: Missing,
    ) -> Result<Self, FileError> {
        let fail = |error| FileError::io("reach", path, error);
        let forbidden = |why| FileError::forbidden(path, why);
        let real = match real(root, relative, last) {
            Err(Unreal::Dangling) => {
                return Err(FileError::not_regular(path, "a symbolic link that leads nowhere, or lies behind one"));
            }
            Err(Unreal::Io(error)) => return Err(fail(error)),
            Ok(real) => real,
        };
        for name in [&real, relative] {
            rules.check_names(&name.to_string_lossy()).map_err(forbidden)?;
        }
        let Some(name) = real.file_name() else { return Err(FileError::not_regular(path, "a directory")) };
        let allowed = |dir: &Dir, name: &OsStr| check_entry(rules, dir, name).map_err(forbidden);
        let mut dir = root.try_clone().map_err(fail)?;
        for part in real.parent().unwrap_or(Path::new("")).components() {
            dir = match step(&dir, part) {
                Err(error) if error.kind() == ErrorKind::NotFound && missing == Missing::Created => {
                    allowed(&dir, part.as_os_str())?;
                    let _admission = admit(rules, &dir, part.as_os_str()).map_err(forbidden)?;
                    create(&dir, part).map_err(fail)?
                }
                entered => entered.map_err(fail)?,
            };
        }
        allowed(&dir, name)?;
        Ok(Self { dir, name: name.to_owned() })
    }

    /// What stands there, the link itself where it is one.
    pub(super) fn metadata(&self) -> io::Result<Metadata> {
        self.dir.symlink_metadata(&self.name)
    }

    /// What stands there, if anything does; an error where it is not a regular file.
    pub(super) fn regular(&self, path: &str) -> Result<Option<Metadata>, FileError> {
        match self.metadata() {
            Ok(metadata) => regular(path, &metadata).map(|()| Some(metadata)),
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
            Err(error) => Err(FileError::io("look at", path, error)),
        }
    }

    /// Leave to put this name there, to be kept until it has been put.
    pub(super) fn admit(&self, rules: &Rules, path: &str) -> Result<Admission, FileError> {
        admit(rules, &self.dir, &self.name).map_err(|why| FileError::forbidden(path, why))
    }
}

/// Refuses a new name that would stand beside one with which it makes a repository.
#[cfg(unix)]
fn admit(rules: &Rules, dir: &Dir, name: &OsStr) -> Result<Admission, Forbidden> {
    use std::os::fd::AsFd as _;
    rules.admit(dir.as_fd(), name)
}

/// Nothing is kept on such a system: a call that puts the other name there in the same moment is not seen.
#[cfg(not(unix))]
pub(super) struct Admission;

#[cfg(not(unix))]
fn admit(_: &Rules, dir: &Dir, name: &OsStr) -> Result<Admission, Forbidden> {
    use super::super::Part;
    let name = name.to_string_lossy();
    let mut met = Part::of(&name).map(Part::met).into_iter().flatten();
    match met.find(|beside| dir.symlink_metadata(beside).is_ok()) {
        None => Ok(Admission),
        Some(beside) => Err(Forbidden::Repository { name: name.as_ref().into(), beside: (*beside).into() }),
    }
}

#[cfg(unix)]
pub(super) fn check_entry(rules: &Rules, dir: &Dir, name: &OsStr) -> Result<(), Forbidden> {
    use std::os::fd::AsFd as _;
    rules.check_entry(dir.as_fd(), name)
}

#[cfg(not(unix))]
pub(super) fn check_entry(_: &Rules, _: &Dir, _: &OsStr) -> Result<(), Forbidden> {
    Ok(())
}

/// Refuses to read a name in a directory that is held open, where that is the host's own.
#[cfg(unix)]
pub(super) fn check_readable(rules: &Rules, dir: &Dir, name: &OsStr) -> Result<(), Forbidden> {
    use std::os::fd::AsFd as _;
    rules.check_readable(dir.as_fd(), name)
}

#[cfg(not(unix))]
pub(super) fn check_readable(_: &Rules, _: &Dir, _: &OsStr) -> Result<(), Forbidden> {
    Ok(())
}

/// Why a path has no form without links.
enum Unreal {
    Dangling,
    Io(io::Error),
}

/// The path without links. What does not exist is taken as it is written; a link that leads nowhere is not "does not exist".
fn real(root: &Dir, path: &Path, last: LastLink) -> Result<PathBuf, Unreal> {
    let (Some(parent), Some(name)) = (path.parent(), path.file_name()) else { return Ok(PathBuf::new()) };
    if last == LastLink::Follow {
        match root.canonicalize(path) {
            Ok(real) => return Ok(real),
            Err(error) if error.kind() != ErrorKind::NotFound => return Err(Unreal::Io(error)),
            Err(_) if root.symlink_metadata(path).is_ok() => return Err(Unreal::Dangling),
            Err(_) => {}
        }
    }
    Ok(real(root, parent, LastLink::Follow)?.join(name))
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
        Err(error) if error.kind() != ErrorKind::AlreadyExists => Err(error),
        _ => step(dir, part),
    }
}

#[cfg(unix)]
fn enter(dir: &Dir, name: &OsStr) -> io::Result<Dir> {
    use rustix::fs::{Mode, OFlags, openat};
    // A handle that only names the directory needs no right to read it.
    #[cfg(target_os = "linux")]
    let access = OFlags::PATH;
    #[cfg(not(target_os = "linux"))]
    let access = OFlags::RDONLY;
    let flags = access | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    Ok(Dir::from_std_file(openat(dir, name, flags, Mode::empty())?.into()))
}

#[cfg(not(unix))]
fn enter(dir: &Dir, name: &OsStr) -> io::Result<Dir> {
    dir.open_dir(name)
}
