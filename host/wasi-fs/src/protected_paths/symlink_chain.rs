//! Follows a path through its symbolic links, and records every name that decides where it leads.

use super::ancestors::{Identity, PIN};
use std::ffi::OsString;
use std::io::{self, ErrorKind};
use std::os::fd::OwnedFd;
use std::path::{Component, Path, PathBuf};

/// The maximum number of symbolic links in one path, as on Linux, which does not follow more
/// either.
const MAX_LINKS: usize = 40;

/// The maximum number of components followed. No path has as many.
const MAX_STEPS: usize = 4_096;

/// A reserved name: creating or replacing its entry would change where a path leads.
#[derive(Debug)]
pub(super) struct Entry {
    pub(super) dir: OwnedFd,
    pub(super) identity: Identity,
    pub(super) name: OsString,
    pub(super) role: Role,
}

/// The role of a reserved name in its path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Role {
    /// The last component of the path.
    End,
    /// A parent directory of the path, which holds other entries as well.
    OnTheWay,
}

/// A followed path.
pub(super) struct SymlinkChain {
    /// The path with its links resolved, if it exists.
    pub(super) real: Option<PathBuf>,
    /// Each link of the path, and its end. If the path does not exist, its first missing name.
    pub(super) entries: Vec<Entry>,
}

impl SymlinkChain {
    /// Follows an absolute path. A component that cannot be inspected ends the path like a missing
    /// one.
    ///
    /// # Errors
    ///
    /// Fails if a parent directory cannot be held open.
    pub(super) fn follow(path: &Path) -> io::Result<Self> {
        let mut walk =
            Walk { here: PathBuf::new(), pending: Vec::new(), links: 0, entries: Vec::new() };
        walk.push(path);
        for _ in 0..MAX_STEPS {
            match walk.pending.pop() {
                None => return walk.end(),
                Some(part) => {
                    if walk.step(part)? == Way::Ends {
                        break;
                    }
                }
            }
        }
        Ok(Self { real: None, entries: walk.entries })
    }
}

/// A walk in progress.
struct Walk {
    /// The resolved path so far.
    here: PathBuf,
    pending: Vec<Part>,
    links: usize,
    entries: Vec<Entry>,
}

enum Part {
    Start(PathBuf),
    Up,
    Name(OsString),
}

#[derive(PartialEq, Eq)]
enum Way {
    GoesOn,
    Ends,
}

impl Walk {
    fn push(&mut self, path: &Path) {
        let part = |component: Component<'_>| match component {
            Component::Prefix(_) | Component::RootDir => {
                Some(Part::Start(component.as_os_str().into()))
            }
            Component::ParentDir => Some(Part::Up),
            Component::Normal(name) => Some(Part::Name(name.to_owned())),
            Component::CurDir => None,
        };
        self.pending.extend(path.components().filter_map(part).rev());
    }

    fn step(&mut self, part: Part) -> io::Result<Way> {
        match part {
            Part::Start(root) => self.here = root,
            Part::Up => {
                self.here.pop();
            }
            Part::Name(name) => return self.enter(name),
        }
        Ok(Way::GoesOn)
    }

    fn enter(&mut self, name: OsString) -> io::Result<Way> {
        let whole = self.here.join(&name);
        match whole.read_link() {
            // `EINVAL`: the entry exists and is not a link.
            Err(error) if error.kind() == ErrorKind::InvalidInput => self.here = whole,
            // The parent is a file, which a directory could replace.
            Err(error) if error.kind() == ErrorKind::NotADirectory => {
                self.keep_here(Role::OnTheWay)?;
                return Ok(Way::Ends);
            }
            Err(_) => {
                self.keep(name)?;
                return Ok(Way::Ends);
            }
            Ok(target) => {
                self.keep(name)?;
                self.links = self.links.saturating_add(1);
                if self.links > MAX_LINKS {
                    return Ok(Way::Ends);
                }
                self.push(&target);
            }
        }
        Ok(Way::GoesOn)
    }

    fn keep(&mut self, name: OsString) -> io::Result<()> {
        let role = if self.pending.is_empty() { Role::End } else { Role::OnTheWay };
        self.add(Entry::open(&self.here, name, role)?);
        Ok(())
    }

    /// Reserves the name of the current path.
    fn keep_here(&mut self, role: Role) -> io::Result<()> {
        if let (Some(parent), Some(name)) = (self.here.parent(), self.here.file_name()) {
            self.add(Entry::open(parent, name.to_owned(), role)?);
        }
        Ok(())
    }

    /// Adds an entry once, since a path may traverse a link several times.
    fn add(&mut self, entry: Entry) {
        let is_it =
            |known: &&mut Entry| known.identity == entry.identity && known.name == entry.name;
        match self.entries.iter_mut().find(is_it) {
            Some(known) if entry.role == Role::End => known.role = Role::End,
            Some(_) => {}
            None => self.entries.push(entry),
        }
    }

    fn end(mut self) -> io::Result<SymlinkChain> {
        self.keep_here(Role::End)?;
        Ok(SymlinkChain { real: Some(self.here), entries: self.entries })
    }
}

impl Entry {
    fn open(dir: &Path, name: OsString, role: Role) -> io::Result<Self> {
        let dir = rustix::fs::open(dir, PIN, rustix::fs::Mode::empty())?;
        Ok(Self { identity: Identity::from_handle(&dir)?, dir, name, role })
    }
}
