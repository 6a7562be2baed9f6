//! Mount points below a workspace. They lead to directories that lie elsewhere by their path, and a
//! part of a protected tree may be mounted without the tree.

use super::bare;
use super::names::protected_tree;
use super::{ProtectedTree, Reading};
use std::cell::LazyCell;
use std::ffi::OsString;
use std::fmt;
use std::os::unix::ffi::OsStringExt as _;
use std::path::{Path, PathBuf};

/// The mount points below a workspace. The system is asked at most once.
pub struct Mounts<'a> {
    root: &'a Path,
    /// `None` if the system cannot tell.
    table: LazyCell<Option<Table>, Box<dyn FnOnce() -> Option<Table> + 'a>>,
}

impl fmt::Debug for Mounts<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Mounts").field("root", &self.root).finish_non_exhaustive()
    }
}

impl<'a> Mounts<'a> {
    /// Prepares the question for a workspace.
    pub fn below(root: &'a Path) -> Self {
        Self::asking(root, Table::read)
    }

    fn asking(root: &'a Path, ask: impl FnOnce() -> Option<Table> + 'a) -> Self {
        Self { root, table: LazyCell::new(Box::new(ask)) }
    }

    /// Returns true if anything is mounted there. Also true if the system cannot tell.
    pub(super) fn any(&self) -> bool {
        self.table.as_ref().is_none_or(|table| table.below(self.root).next().is_some())
    }

    /// Returns true if the workspace shows the file at this path, which has no symbolic links: it
    /// lies beneath the workspace, or in a directory that is mounted as the workspace or beneath
    /// it. If the system cannot tell its mounts, the path decides alone.
    pub fn show(&self, path: &Path) -> bool {
        let is_mounted = |table: &Table| table.show(self.root, path);
        path.starts_with(self.root) || self.table.as_ref().is_some_and(is_mounted)
    }

    /// Returns the mount points with a part of this tree, or the whole tree.
    pub(super) fn of_tree(&self, tree: &ProtectedTree) -> Vec<ProtectedTree> {
        let of_tree = |table: &Table, mount: &Mount| {
            tree.paths()
                .filter_map(|path| table.lookup(path))
                .any(|(on, path)| on.device == mount.device && mount.source.starts_with(path))
        };
        self.trees(tree.reading(), of_tree)
    }

    /// Returns the mount points with a part of a git repository, or a whole one, and the workspace
    /// itself if it lies in one.
    pub(super) fn of_repositories(&self) -> Vec<ProtectedTree> {
        let is_met =
            |table: &Table, mount: &Mount| table.leads_into_repository(mount, &mount.source);
        let mut trees = self.trees(Reading::Allowed, is_met);
        let own = self.table.as_ref().and_then(|table| Some((table, table.lookup(self.root)?)));
        if own.is_some_and(|(table, (mount, source))| table.leads_into_repository(mount, &source))
            || bare::lies_in_repository(self.root)
        {
            trees.push(ProtectedTree::mounted(self.root, Reading::Allowed));
        }
        trees
    }

    fn trees(
        &self,
        reading: Reading,
        is_met: impl Fn(&Table, &Mount) -> bool,
    ) -> Vec<ProtectedTree> {
        let Some(table) = self.table.as_ref() else { return Vec::new() };
        let met = table.below(self.root).filter(|mount| is_met(table, mount));
        met.map(|mount| ProtectedTree::mounted(&mount.point, reading)).collect()
    }
}

/// The mounts of this process, in the order of their mounting.
struct Table(Vec<Mount>);

struct Mount {
    id: Vec<u8>,
    /// The mount that it covers a directory of, which a process may not see.
    parent: Vec<u8>,
    /// The number of the file system.
    device: Vec<u8>,
    /// The mounted directory or file, as a path within its file system.
    source: PathBuf,
    point: PathBuf,
}

impl Table {
    /// Only Linux has bind mounts in unprivileged containers, and this file.
    fn read() -> Option<Self> {
        if cfg!(not(target_os = "linux")) {
            return Some(Self(Vec::new()));
        }
        std::fs::read("/proc/self/mountinfo").ok().map(|text| Self::parse(&text))
    }

    /// Parses the form of `/proc/PID/mountinfo`; see proc_pid_mountinfo(5).
    fn parse(text: &[u8]) -> Self {
        let mount = |line: &[u8]| {
            let mut fields = line.split(|byte| *byte == b' ');
            let [id, parent, device] = [fields.next()?, fields.next()?, fields.next()?];
            let [source, point] = [fields.next()?, fields.next()?];
            Some(Mount {
                id: id.to_owned(),
                parent: parent.to_owned(),
                device: device.to_owned(),
                source: unescaped(source),
                point: unescaped(point),
            })
        };
        Self(text.split(|byte| *byte == b'\n').filter_map(mount).collect())
    }

    fn below(&self, root: &Path) -> impl Iterator<Item = &Mount> {
        self.0.iter().filter(move |mount| mount.point != root && mount.point.starts_with(root))
    }

    /// Returns the mount that a path leads to, and the path within its file system. The walk goes
    /// from mount to mount as the system does: a mount hides the earlier ones at its point and
    /// below it.
    fn lookup(&self, path: &Path) -> Option<(&Mount, PathBuf)> {
        let mut mount: Option<&Mount> = None;
        let mut prefixes: Vec<&Path> = path.ancestors().collect();
        prefixes.reverse();
        for prefix in prefixes {
            // Each step leads to another mount, so that their number bounds the steps.
            for _ in &self.0 {
                let Some(next) = self.0.iter().find(|it| {
                    it.point == prefix && mount.map_or(self.is_first(it), |on| on.id == it.parent)
                }) else {
                    break;
                };
                mount = Some(next);
            }
        }
        let mount = mount?;
        let rest = path.strip_prefix(&mount.point).ok()?;
        Some((mount, mount.source.join(rest)))
    }

    /// Returns true if the process sees no mount that this one covers.
    fn is_first(&self, mount: &Mount) -> bool {
        self.0.iter().all(|it| it.id != mount.parent)
    }

    /// Returns true if a mount that the directory `root` is on, or that is below it, shows this
    /// path in the directory.
    fn show(&self, root: &Path, path: &Path) -> bool {
        let Some((on, within)) = self.lookup(path) else { return false };
        let below = self.below(root).map(|mount| (mount, mount.source.clone()));
        self.lookup(root)
            .into_iter()
            .chain(below)
            .any(|(mount, source)| mount.device == on.device && within.starts_with(source))
    }

    /// Returns whether a path within the file system of a mount lies in a git repository: by the
    /// names in the source of the mount, or by the directories around it, which any mount of the
    /// file system may show.
    fn leads_into_repository(&self, mount: &Mount, path: &Path) -> bool {
        protected_tree(&mount.source.to_string_lossy()).is_some()
            || self.paths(&mount.device, path).any(|path| bare::lies_in_repository(&path))
    }

    /// Returns the paths by which mounts may lead to a path within a file system.
    fn paths(&self, device: &[u8], within: &Path) -> impl Iterator<Item = PathBuf> {
        let mounts = self.0.iter().filter(move |mount| mount.device == device);
        mounts.filter_map(move |mount| {
            Some(mount.point.join(within.strip_prefix(&mount.source).ok()?))
        })
    }
}

/// Decodes the octal escapes of a path, such as `\040` for a space.
fn unescaped(path: &[u8]) -> PathBuf {
    let (mut decoded, mut rest) = (Vec::with_capacity(path.len()), path);
    while let [first, tail @ ..] = rest {
        let code = tail
            .get(..3)
            .and_then(|digits| u8::from_str_radix(std::str::from_utf8(digits).ok()?, 8).ok());
        (decoded, rest) = match (first, code) {
            (b'\\', Some(code)) => (pushed(decoded, code), &tail[3..]),
            _ => (pushed(decoded, *first), tail),
        };
    }
    PathBuf::from(OsString::from_vec(decoded))
}

fn pushed(mut bytes: Vec<u8>, byte: u8) -> Vec<u8> {
    bytes.push(byte);
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::ffi::OsStrExt as _;

    const TABLE: &[u8] = b"22 1 0:20 / / rw - ext4 /dev/a rw\n\
        25 22 0:21 /data /srv rw - ext4 /dev/b rw\n\
        30 22 0:21 /data/a\\040b /home/a\\040b/ws/bm rw - ext4 /dev/b rw\n";

    #[test]
    fn mount_point_below_a_directory_is_found() {
        let below = |root: &str| Table::parse(TABLE).below(Path::new(root)).next().is_some();
        assert!(below("/home/a b/ws") && below("/") && below("/home"));
        assert!(!below("/home/a b/ws/bm") && !below("/home/a b/w") && !below("/srv"));
        assert_eq!(Table::parse(TABLE).0.len(), 3);
        assert!(Mounts::below(Path::new("/")).any());
    }

    #[test]
    fn every_path_to_a_mounted_directory_is_known() {
        let table = Table::parse(TABLE);
        let lookup = |path: &str| {
            table.lookup(Path::new(path)).map(|(mount, path)| (mount.device.clone(), path))
        };
        assert_eq!(lookup("/srv/x/y"), Some((b"0:21".to_vec(), "/data/x/y".into())));
        assert_eq!(lookup("/home/a b/ws/bm"), Some((b"0:21".to_vec(), "/data/a b/".into())));
        assert_eq!(lookup("/home/a b/ws"), Some((b"0:20".to_vec(), "/home/a b/ws".into())));
        let paths: Vec<_> = table.paths(b"0:21", Path::new("/data/a b/c")).collect();
        assert_eq!(paths, ["/srv/a b/c", "/home/a b/ws/bm/c"].map(PathBuf::from));
    }

    #[test]
    fn later_mount_hides_the_earlier_ones_below_it() {
        let table = Table::parse(
            b"22 1 0:20 / / rw - ext4 /dev/a rw\n\
            31 22 0:21 / /ws/below rw - ext4 /dev/b rw\n\
            32 22 0:22 / /ws rw - ext4 /dev/c rw\n\
            33 32 0:23 / /ws rw - ext4 /dev/d rw\n\
            34 33 0:24 / /ws/seen rw - ext4 /dev/e rw\n",
        );
        let device = |path: &str| {
            table.lookup(Path::new(path)).map(|(mount, _)| String::from_utf8_lossy(&mount.device))
        };
        for (path, shown) in
            [("/", "0:20"), ("/ws", "0:23"), ("/ws/below/file", "0:23"), ("/ws/seen/a", "0:24")]
        {
            assert_eq!(device(path).as_deref(), Some(shown), "{path}");
        }
        let changed_root = Table::parse(b"40 22 0:25 / /data rw - ext4 /dev/f rw\n");
        assert!(changed_root.lookup(Path::new("/data/x")).is_some());
        assert!(changed_root.lookup(Path::new("/else")).is_none());
    }

    #[test]
    fn file_is_shown_under_every_mounted_path() {
        let shows = |root: &str, path: &str| Table::parse(TABLE).show(root.as_ref(), path.as_ref());
        for (root, path) in [
            ("/home/a b/ws", "/home/a b/ws/file"),
            ("/home/a b/ws", "/srv/a b/c"),
            ("/home/a b/ws/bm", "/srv/a b"),
            ("/srv", "/home/a b/ws/bm/c"),
            ("/srv/a b/c", "/home/a b/ws/bm/c/d"),
        ] {
            assert!(shows(root, path), "{path} in {root}");
        }
        for (root, path) in [
            ("/home/a b/ws", "/srv/other"),
            ("/home/a b/ws", "/home/a b/file"),
            ("/srv/a b/c", "/home/a b/ws/bm/d"),
            ("/srv", "/data/a b"),
        ] {
            assert!(!shows(root, path), "{path} in {root}");
        }
    }

    #[test]
    fn mounts_are_read_once_and_on_demand() {
        let asked = std::cell::Cell::new(0);
        let mounts = Mounts::asking(Path::new("/"), || {
            asked.set(asked.get() + 1);
            None
        });
        assert_eq!(asked.get(), 0);
        assert!(mounts.any() && mounts.any());
        assert_eq!(asked.get(), 1);
    }

    #[test]
    fn invalid_escape_is_kept() {
        for path in ["/a\\04", "/a\\9", "/\\"] {
            assert_eq!(unescaped(path.as_bytes()).as_os_str().as_bytes(), path.as_bytes());
        }
    }
}
