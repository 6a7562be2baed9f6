//! What holds in a workspace besides its border: the trees that nobody changes, and what is done about files with several names.
//!
//! One definition for guests and native tools. Names are checked where they are known, and objects where names can deceive: whatever leads to a protected
//! directory, it is the same directory, and everything below it has it above itself.

#[cfg(unix)]
mod ascent;
#[cfg(unix)]
mod bare;
mod names;
#[cfg(unix)]
mod place;
#[cfg(unix)]
mod repository;
#[cfg(all(test, unix))]
mod tests;
#[cfg(unix)]
mod trail;
mod tree;

pub(crate) use tree::{Reading, Tree};

use crate::tool::Advice;
#[cfg(target_os = "linux")]
pub(crate) use ascent::PIN_ANY;
#[cfg(unix)]
pub(crate) use ascent::{Identity, PIN};
#[cfg(unix)]
pub(crate) use bare::Admission;
use cap_std::fs::Dir;
#[cfg(any(not(unix), test))]
pub(crate) use names::Part;
use names::git_tree;
use std::fmt;
use std::io;
use std::path::{Component, Path, PathBuf};
use std::str::FromStr;
use std::sync::Arc;

/// What is done about a regular file that has more than one name, when a tool wants to change its content in place.
///
/// Package managers share files between projects in this way, so that the other name may lie outside of the workspace. Replacing the file by a new one touches
/// the one name only, and is always possible.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum HardLinks {
    /// It may be read and not changed, and guests make no such names.
    #[default]
    Refuse,
    /// It is a file like any other.
    Allow,
}

impl HardLinks {
    /// What an operator can do who wants such files changed.
    pub(crate) fn advice() -> Advice {
        Advice::setting("set `workspace.hard_links` to \"allow\"", "workspace.hard_links")
    }
}

impl fmt::Display for HardLinks {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Refuse => "refuse",
            Self::Allow => "allow",
        })
    }
}

impl FromStr for HardLinks {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "refuse" => Ok(Self::Refuse),
            "allow" => Ok(Self::Allow),
            other => Err(format!("`{other}` is none of refuse and allow")),
        }
    }
}

/// What a host adds to the rules of every workspace that its tools work in.
#[derive(Debug, Default)]
pub(crate) struct HostRules {
    /// Whether its operator lets files with several names be changed.
    pub(crate) hard_links: HardLinks,
    /// What belongs to the host, wherever it lies.
    pub(crate) trees: Vec<Arc<Tree>>,
}

/// The rules of one workspace.
#[derive(Debug)]
pub(crate) struct Rules {
    #[cfg(unix)]
    root: Identity,
    /// What lies in this workspace, each under the name that it had when the rules were made.
    trees: Vec<(Arc<str>, Arc<Tree>)>,
    hosts: Vec<Arc<HostRules>>,
}

/// Why nothing may be changed, or read, in a place.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Forbidden {
    /// It lies in a tree where nothing is changed.
    #[error("`{0}` is protected")]
    Protected(Arc<str>),
    /// It lies in a tree of the host, which is not even read.
    #[error("`{0}` belongs to the host")]
    Hidden(Arc<str>),
    /// It lies in a repository that has no working tree around it.
    #[error("it lies in a git repository")]
    Bare,
    /// It would make a repository of the directory that it stands in.
    #[error("`{name}` beside `{beside}` would make a git repository of the directory")]
    Repository {
        /// The name that was to be given.
        name: Box<str>,
        /// The name that is there.
        beside: Box<str>,
    },
    /// It does not lie in the workspace any more.
    #[error("it does not lie in the workspace any more")]
    Outside,
    /// The system does not tell where it lies.
    #[error(transparent)]
    Unknown(#[from] io::Error),
}

impl Rules {
    /// The rules of a workspace that no host works in yet: its repository is protected.
    #[cfg(unix)]
    pub(super) fn new(dir: &Dir, root: &Path) -> io::Result<Self> {
        let bare = Self { root: Identity::of(dir)?, trees: Vec::new(), hosts: Vec::new() };
        let repository = repository::trees(root)?.into_iter().filter(|tree| bare.holds(tree));
        let trees = repository.map(|tree| (tree.label(root), Arc::new(tree))).collect();
        Ok(Self { trees, ..bare })
    }

    /// The rules of a workspace that no host works in yet.
    #[cfg(not(unix))]
    pub(super) fn new(_: &Dir, _: &Path) -> io::Result<Self> {
        Ok(Self { trees: Vec::new(), hosts: Vec::new() })
    }

    /// Which directory the workspace is.
    #[cfg(unix)]
    pub(super) fn root(&self) -> Identity {
        self.root
    }

    /// The same, and what this host adds.
    pub(super) fn with(&self, host: &Arc<HostRules>, root: &Path) -> Self {
        let inside = host.trees.iter().filter(|tree| self.holds(tree)).map(|tree| (tree.label(root), tree.clone()));
        Self {
            #[cfg(unix)]
            root: self.root,
            trees: self.trees.iter().cloned().chain(inside).collect(),
            hosts: self.hosts.iter().chain([host]).cloned().collect(),
        }
    }

    /// Whether these are in them already.
    pub(super) fn include(&self, host: &Arc<HostRules>) -> bool {
        self.hosts.iter().any(|known| Arc::ptr_eq(known, host))
    }

    /// What is done about files with several names: what the strictest host says.
    pub(crate) fn hard_links(&self) -> HardLinks {
        self.hosts.iter().map(|host| host.hard_links).min().unwrap_or_default()
    }

    /// Whether anything in the workspace must not be read. Where nothing is, reading costs no look at where it happens.
    pub(crate) fn hide_anything(&self) -> bool {
        self.trees.iter().any(|(_, tree)| tree.reading() == Reading::Refused)
    }

    /// Whether what this path leads to is hidden already.
    pub(crate) fn hide(&self, path: &Path) -> bool {
        self.trees.iter().any(|(_, tree)| tree.reading() == Reading::Refused && tree.path() == path)
    }

    /// Refuses to change what has a protected name, or stands below one. The path is relative to the workspace, and may be what a tool wrote as well as what
    /// it leads to.
    pub(crate) fn check_names(&self, path: &str) -> Result<(), Forbidden> {
        match git_tree(path) {
            Some(tree) => Err(Forbidden::Protected(tree.into())),
            None => Ok(()),
        }
    }

    /// The same, and what is named as the host's own things in the workspace are. For what is said before anything is done: what leads there by another name is
    /// known when it is opened.
    pub(crate) fn check_places(&self, path: &str, root: &Path) -> Result<(), Forbidden> {
        self.check_names(path)?;
        self.check_hidden(path, root)?;
        self.around(path, root).next().map_or(Ok(()), |(label, _)| Err(Forbidden::Protected(label.clone())))
    }

    /// Refuses to read what is named as something of the host's that is not read, either.
    pub(crate) fn check_hidden(&self, path: &str, root: &Path) -> Result<(), Forbidden> {
        let hidden = self.around(path, root).find(|(_, tree)| tree.reading() == Reading::Refused);
        hidden.map_or(Ok(()), |(label, _)| Err(Forbidden::Hidden(label.clone())))
    }

    /// The host's own trees that a path lies in, by its name.
    fn around(&self, path: &str, root: &Path) -> impl Iterator<Item = &(Arc<str>, Arc<Tree>)> {
        let is_plain = |part: &Component<'_>| *part != Component::CurDir;
        let path: PathBuf = Path::new(path).components().filter(is_plain).collect();
        self.trees.iter().filter(move |(_, tree)| tree.below(root).is_some_and(|place| path.starts_with(place)))
    }

    #[cfg(not(unix))]
    pub(in crate::workspace) fn holds(&self, _: &Tree) -> bool {
        false
    }
}
