//! The protected paths of a directory, and the policy for its files with several hard links.
//!
//! Guests and the host's own tools share these rules. Paths are checked by name, and by the device
//! and inode of each ancestor where names can deceive: a protected directory has the same identity
//! by every path that leads to it.

mod ancestors;
mod around;
mod bare;
mod checks;
mod filter;
mod mounts;
pub(crate) mod names;
mod repository;
mod symlink_chain;
#[cfg(test)]
mod tests;
mod tree;

pub use ancestors::{Identity, PIN, PIN_ANY};
pub use bare::Admission;
pub use mounts::Mounts;
pub use names::PRIVATE_PREFIX;
pub use tree::{ProtectedTree, Reading};

use crate::path_rules::PathRules;
use around::Around;
use names::{private_tree, protected_tree};
use std::fmt;
use std::io;
use std::os::fd::AsFd;
use std::path::{Component, Path, PathBuf};
use std::str::FromStr;
use std::sync::Arc;

/// The policy for changing the contents of a regular file with several hard links in place.
///
/// Package managers share files between projects by hard links, so another name may lie outside of
/// the mounted directory. Replacing the file by a new one changes a single name only, and is always
/// possible.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum HardLinks {
    /// The file can be read but not changed in place, and guests cannot create hard links.
    #[default]
    Refuse,
    /// The file is treated like any other file.
    Allow,
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

/// The protection of files and paths in every directory that a host mounts.
#[derive(Debug, Default)]
pub struct Protection {
    hard_links: HardLinks,
    trees: Vec<Arc<ProtectedTree>>,
    paths: PathRules,
}

impl Protection {
    /// Protects these files and directories, wherever they lie, and sets the policy for files with
    /// several hard links.
    #[must_use]
    pub fn new(hard_links: HardLinks, trees: Vec<Arc<ProtectedTree>>) -> Self {
        Self { hard_links, trees, paths: PathRules::default() }
    }

    /// Sets the path rules, whose patterns are relative to each mounted directory.
    #[must_use]
    pub fn with_paths(self, paths: PathRules) -> Self {
        Self { paths, ..self }
    }
}

/// The protected paths of one directory that is mounted for guests.
///
/// Nothing in a git repository is changed: in a `.git` at any depth, in the repository that the
/// directory belongs to by such a name or lies in, and in a bare repository. No new name turns a
/// directory into a repository, whose settings git would execute. No `palisade.toml` is changed, at
/// any depth. A name that begins with [`PRIVATE_PREFIX`] is neither changed nor read, at any depth.
///
/// ```
/// use palisade_wasi_fs::{HardLinks, ProtectedPaths, ProtectedTree, Protection, Reading};
/// use std::sync::Arc;
///
/// # fn main() -> std::io::Result<()> {
/// # let directory = tempfile::tempdir()?;
/// # let path = directory.path();
/// let root = path.canonicalize()?;
/// let handle = std::fs::File::open(&root)?;
/// let settings = ProtectedTree::open(&root.join("settings"), Reading::Refused)?;
/// let own = Arc::new(Protection::new(HardLinks::Refuse, vec![Arc::new(settings)]));
/// let protected = ProtectedPaths::new(&handle, &root)?.with(&own, &root);
/// # assert!(protected.hide_anything());
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct ProtectedPaths {
    root: Identity,
    /// The protected trees in this directory, each with its label from the time when it was added.
    trees: Vec<(Arc<str>, Arc<ProtectedTree>)>,
    hosts: Vec<Arc<Protection>>,
    /// The path rules of all hosts, if there are any.
    paths: Option<PathRules>,
    /// The place of the directory in the one that the path rules are relative to. None if they are
    /// relative to the directory itself.
    around: Option<Arc<Around>>,
}

/// The reason why a path may not be changed or read.
#[derive(Debug, thiserror::Error)]
pub enum Forbidden {
    /// The path lies in a write-protected tree.
    #[error("`{0}` is protected")]
    Protected(Arc<str>),
    /// The path lies in a tree of the host that guests may not even read.
    #[error("`{0}` belongs to the host")]
    Hidden(Arc<str>),
    /// The path rules of the operator leave the path out.
    #[error("the path rules leave `{0}` out")]
    Excluded(Arc<str>),
    /// The path lies in a bare git repository.
    #[error("it lies in a git repository")]
    Bare,
    /// The new name would turn its directory into a git repository.
    #[error("`{name}` beside `{beside}` would make a git repository of the directory")]
    Repository {
        /// The new name.
        name: Box<str>,
        /// The existing name beside it.
        beside: Box<str>,
    },
    /// The directory has too many entries to find out whether the new name would turn it into a
    /// git repository.
    #[error("the directory has more than {entries} entries")]
    Crowded {
        /// The most entries of a directory that gets such a name.
        entries: usize,
    },
    /// The directory no longer lies in the mounted one, or that one has left its path in the
    /// directory around it.
    #[error("it does not lie in the workspace any more")]
    Outside,
    /// The system cannot tell the location of the directory.
    #[error(transparent)]
    Unknown(#[from] io::Error),
}

impl ProtectedPaths {
    /// Protects the git repositories of an open directory. `root` is its absolute path without
    /// symbolic links.
    ///
    /// # Errors
    ///
    /// Fails if the directory of the repository cannot be held open, except for lack of permission.
    pub fn new(dir: impl AsFd, root: &Path) -> io::Result<Self> {
        let root_identity = Identity::from_handle(dir)?;
        let bare = Self {
            root: root_identity,
            trees: Vec::new(),
            hosts: Vec::new(),
            paths: None,
            around: None,
        };
        let repository = repository::trees(root)?.into_iter().filter(|tree| bare.holds(tree));
        let trees = repository.chain(Mounts::below(root).of_repositories());
        let trees = trees.map(|tree| (tree.label(root), Arc::new(tree))).collect();
        Ok(Self { trees, ..bare })
    }

    /// Returns the identity of the directory.
    #[doc(hidden)]
    pub fn root(&self) -> Identity {
        self.root
    }

    /// Returns a copy that also protects the paths of a host. `root` is the path of the directory,
    /// as in [`new`](Self::new).
    #[must_use]
    pub fn with(&self, host: &Arc<Protection>, root: &Path) -> Self {
        let mounts = Mounts::below(root);
        let reachable: Vec<_> =
            host.trees.iter().filter(|tree| self.reaches(tree, &mounts)).cloned().collect();
        let parts = reachable.iter().flat_map(|tree| mounts.of_tree(tree)).map(Arc::new);
        let inside = reachable.iter().cloned().chain(parts).map(|tree| (tree.label(root), tree));
        Self {
            root: self.root,
            trees: self.trees.iter().cloned().chain(inside).collect(),
            hosts: self.hosts.iter().chain([host]).cloned().collect(),
            paths: self.paths.clone(),
            around: self.around.clone(),
        }
        .narrowed(&host.paths)
    }

    /// Returns the protected paths of a directory beneath this one, with all rules of this one.
    /// `root` is its absolute path without symbolic links, and `path` the one relative to this
    /// directory. Path rules stay relative to this directory. Once the directory beneath has left
    /// its path, nothing in it is permitted.
    ///
    /// # Errors
    ///
    /// The errors of [`new`](Self::new).
    #[doc(hidden)]
    pub fn below(&self, dir: impl AsFd, root: &Path, path: &str) -> io::Result<Self> {
        let own = Self::new(&dir, root)?;
        let mounts = Mounts::below(root);
        let trees = self.trees.iter().filter(|(_, tree)| own.reaches(tree, &mounts));
        Ok(Self {
            trees: own.trees.iter().chain(trees).cloned().collect(),
            hosts: self.hosts.clone(),
            paths: self.paths.clone(),
            around: Some(Arc::new(Around::new(self, dir, path)?)),
            root: own.root,
        })
    }

    /// Returns true if guests may reach a tree. A bind mount leads to a tree whose own path lies
    /// outside, so with any mount in the directory every tree is compared by its identity.
    #[doc(hidden)]
    pub fn reaches(&self, tree: &ProtectedTree, mounts: &Mounts<'_>) -> bool {
        self.holds(tree) || mounts.any()
    }

    /// Returns whether the paths of a host are included.
    #[doc(hidden)]
    pub fn include(&self, host: &Arc<Protection>) -> bool {
        self.hosts.iter().any(|known| Arc::ptr_eq(known, host))
    }

    /// Returns the policy for hard links of the strictest host.
    pub fn hard_links(&self) -> HardLinks {
        // `Refuse` is the smallest variant.
        self.hosts.iter().map(|host| host.hard_links).min().unwrap_or_default()
    }

    /// Returns whether any tree in the directory is hidden from reading. If not, reads skip the
    /// check of their location.
    pub fn hide_anything(&self) -> bool {
        self.trees.iter().any(|(_, tree)| tree.is_hidden())
    }

    /// Returns whether a tree with this path exists whose reading is as strict.
    #[doc(hidden)]
    pub fn cover(&self, path: &Path, reading: Reading) -> bool {
        let mut trees = self.trees.iter().map(|(_, tree)| tree);
        trees.any(|tree| tree.reading() >= reading && tree.path() == path)
    }

    /// Refuses to change a path with a protected name in any component. The path is relative to the
    /// directory, either as the guest wrote it or resolved.
    #[doc(hidden)]
    pub fn check_names(&self, path: &str) -> Result<(), Forbidden> {
        self.check_private(path)?;
        match protected_tree(path) {
            Some(tree) => Err(Forbidden::Protected(tree.into())),
            None => Ok(()),
        }
    }

    /// Refuses to read or change a path with a private name in any component. The path is relative
    /// to the directory, either as the guest wrote it or resolved.
    #[doc(hidden)]
    pub fn check_private(&self, path: &str) -> Result<(), Forbidden> {
        match private_tree(path) {
            Some(tree) => Err(Forbidden::Hidden(tree.into())),
            None => Ok(()),
        }
    }

    /// Checks the name of a path against the protected names and the host's trees. Used for
    /// explanations before an operation: links to a protected tree are detected only at the open.
    #[doc(hidden)]
    pub fn check_places(&self, path: &str, root: &Path) -> Result<(), Forbidden> {
        self.check_hidden(path, root)?;
        self.check_names(path)?;
        self.check_identity(self.root)?;
        self.around(path, root)
            .next()
            .map_or(Ok(()), |(label, _)| Err(Forbidden::Protected(label.clone())))
    }

    /// Refuses to read a path whose name lies in a hidden tree of the host.
    #[doc(hidden)]
    pub fn check_hidden(&self, path: &str, root: &Path) -> Result<(), Forbidden> {
        self.check_private(path)?;
        let hidden = self.around(path, root).find(|(_, tree)| tree.is_hidden());
        hidden.map_or(Ok(()), |(label, _)| Err(Forbidden::Hidden(label.clone())))
    }

    /// Returns the trees that contain a path by its name.
    fn around(
        &self,
        path: &str,
        root: &Path,
    ) -> impl Iterator<Item = &(Arc<str>, Arc<ProtectedTree>)> {
        let is_plain = |part: &Component<'_>| *part != Component::CurDir;
        let path: PathBuf = Path::new(path).components().filter(is_plain).collect();
        self.trees
            .iter()
            .filter(move |(_, tree)| tree.below(root).is_some_and(|place| path.starts_with(place)))
    }
}
