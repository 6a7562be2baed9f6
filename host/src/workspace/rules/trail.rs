//! The way that a path takes to what it names, and every name that decides where it ends.

use super::ascent::{Identity, PIN};
use std::ffi::OsString;
use std::io::{self, ErrorKind};
use std::os::fd::OwnedFd;
use std::path::{Component, Path, PathBuf};

/// How many links one path may lead through: what Linux accepts. It never goes on from there either.
const MAX_LINKS: usize = 40;

/// How many names are looked at. No path has as many.
const MAX_STEPS: usize = 4_096;

/// A name that is kept: whoever replaced what stands there, or put something there, would change where a path leads.
#[derive(Debug)]
pub(super) struct Entry {
    pub(super) dir: OwnedFd,
    pub(super) identity: Identity,
    pub(super) name: OsString,
    pub(super) role: Role,
}

/// What a kept name stands for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Role {
    /// What the path names.
    End,
    /// A directory on the way to it, which holds other things as well.
    OnTheWay,
}

/// A path that has been followed.
pub(super) struct Trail {
    /// The path without links, where something stands at its end.
    pub(super) real: Option<PathBuf>,
    /// Each link on the way, and the end; where nothing is there yet, the first name that is missing.
    pub(super) entries: Vec<Entry>,
}

impl Trail {
    /// Follows an absolute path. What cannot be looked at ends the way like something that is missing.
    ///
    /// # Errors
    ///
    /// Where a directory on the way cannot be held open.
    pub(super) fn follow(path: &Path) -> io::Result<Self> {
        let mut walk = Walk { here: PathBuf::new(), pending: Vec::new(), links: 0, entries: Vec::new() };
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

/// A walk under way.
struct Walk {
    /// Without links.
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
            Component::Prefix(_) | Component::RootDir => Some(Part::Start(component.as_os_str().into())),
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
            // It is there, and no link.
            Err(error) if error.kind() == ErrorKind::InvalidInput => self.here = whole,
            // What should hold the name is a file. It could become a directory.
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

    /// Keeps the name of what has been reached.
    fn keep_here(&mut self, role: Role) -> io::Result<()> {
        if let (Some(parent), Some(name)) = (self.here.parent(), self.here.file_name()) {
            self.add(Entry::open(parent, name.to_owned(), role)?);
        }
        Ok(())
    }

    /// A way may pass a link more than once.
    fn add(&mut self, entry: Entry) {
        let is_it = |known: &&mut Entry| known.identity == entry.identity && known.name == entry.name;
        match self.entries.iter_mut().find(is_it) {
            Some(known) if entry.role == Role::End => known.role = Role::End,
            Some(_) => {}
            None => self.entries.push(entry),
        }
    }

    fn end(mut self) -> io::Result<Trail> {
        self.keep_here(Role::End)?;
        Ok(Trail { real: Some(self.here), entries: self.entries })
    }
}

impl Entry {
    fn open(dir: &Path, name: OsString, role: Role) -> io::Result<Self> {
        let dir = rustix::fs::open(dir, PIN, rustix::fs::Mode::empty())?;
        Ok(Self { identity: Identity::of(&dir)?, dir, name, role })
    }
}
