//! The fuzz target of the file system: any sequence of operations on a real tree, executed by a
//! guest.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{LazyLock, Mutex, MutexGuard, PoisonError};

use palisade::{
    CacheMode, Call, Host, SideEffects,
    plugins::Shipped,
    policy::{Mode, Policy},
};
use serde_json::{Value, json};

use crate::guest::{FUZZ_PLAN, cache};
use crate::world::{SECRET, World};

/// The operations of a plan.
const OPERATIONS: [&str; 20] = [
    "open-directory",
    "make-directory",
    "remove-directory",
    "unlink",
    "rename",
    "link",
    "link-followed",
    "symlink",
    "readlink",
    "stat",
    "stat-itself",
    "set-times",
    "set-own-times",
    "read",
    "list",
    "write",
    "create-new",
    "truncate",
    "append",
    "set-size",
];

/// The components of paths: existing names, links that lead out of the workspace, and names with a
/// special meaning on some system.
const PARTS: [&str; 32] = [
    "..",
    ".",
    "",
    "file.txt",
    "dir",
    "inner.txt",
    "deep",
    ".git",
    ".GIT",
    ".git.",
    "config",
    "hooks",
    "out-file",
    "out-dir",
    "out-absolute",
    "up",
    "loop",
    "host-root",
    "proc",
    "self",
    "root",
    "fd",
    "3",
    "workspace",
    "outside",
    "secret.txt",
    "new",
    "newer",
    "submodule",
    "caf\u{e9}",
    "a\\b",
    "git~1",
];
/// The maximum number of steps of a plan.
const STEPS: usize = 24;
/// One more than the maximum number of components of a path.
const LONGEST_PATH: u8 = 6;

/// A host with a tree that is created anew for each plan.
struct Ground {
    world: World,
    host: Host,
    runtime: tokio::runtime::Runtime,
}

/// The shared host. The lock keeps plans apart, since they use one tree.
static GROUND: LazyLock<Mutex<Ground>> = LazyLock::new(|| Mutex::new(Ground::new()));

/// Executes the bytes as a plan.
///
/// # Panics
///
/// If the guest read or changed anything outside of the workspace, changed anything in `.git`, or
/// the call failed.
pub fn paths(bytes: &[u8]) {
    let steps = plan(&mut bytes.iter().copied());
    let ground = furnished();
    let (outside, protected) = (ground.world.outside(), ground.protected());
    let call = Call::new("plan", json!({"steps": steps}));
    let result = ground.runtime.block_on(ground.host.dispatch(ground.host.session(), call));
    assert!(result.is_success(), "{result}");
    assert_eq!(
        ground.world.outside(),
        outside,
        "something beside the workspace has changed: {steps:?}"
    );
    assert_eq!(ground.protected(), protected, "something protected has changed: {steps:?}");
    assert!(
        !result.to_json().to_string().contains(SECRET),
        "something beside the workspace was read: {steps:?}"
    );
}

/// Returns the protected entries of the tree that plans run on.
#[must_use]
pub fn protected() -> Vec<(PathBuf, String)> {
    furnished().protected()
}

fn furnished() -> MutexGuard<'static, Ground> {
    // A failed plan poisons the lock; the tree is created anew, so that the next plan is not
    // affected.
    let ground = GROUND.lock().unwrap_or_else(PoisonError::into_inner);
    ground.furnish();
    ground
}

fn plan(bytes: &mut impl Iterator<Item = u8>) -> Vec<Value> {
    let mut steps = Vec::new();
    while steps.len() < STEPS {
        let Some(op) = bytes.next() else { break };
        let op = OPERATIONS[usize::from(op) % OPERATIONS.len()];
        let (at, path) = (bytes.next().unwrap_or(0), path(bytes));
        let (to_at, to) = match op {
            "rename" | "link" | "link-followed" | "symlink" => {
                (bytes.next().unwrap_or(0), self::path(bytes))
            }
            _ => (0, String::new()),
        };
        steps.push(json!({"op": op, "at": at, "path": path, "to_at": to_at, "to": to}));
    }
    steps
}

/// Decodes a path: the number of components, and then for each an index into [`PARTS`] or a
/// character.
fn path(bytes: &mut impl Iterator<Item = u8>) -> String {
    let count = bytes.next().unwrap_or(1) % LONGEST_PATH;
    let part = |byte: u8| match PARTS.get(usize::from(byte)) {
        Some(part) => (*part).to_owned(),
        None => char::from(byte).to_string(),
    };
    bytes.take(count.into()).map(part).collect::<Vec<_>>().join("/")
}

impl Ground {
    fn new() -> Self {
        let world = World::new();
        let policy = Policy::default().with_class(SideEffects::Write, Mode::Auto);
        let builder =
            Host::builder().workspace(world.root()).shipped(Shipped::LeftOut).policy(policy);
        let builder = builder.plugins(FUZZ_PLAN.directory()).cache(CacheMode::Directory(cache()));
        let runtime =
            tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
        Self { host: builder.build().expect("the host can be built"), world, runtime }
    }

    /// Creates the initial workspace: files, directories, links of every kind, a repository, and
    /// one with its `.git` directory elsewhere.
    fn furnish(&self) {
        let root = self.world.root();
        for entry in fs::read_dir(&root).expect("the workspace is there").flatten() {
            let kind = entry.file_type().expect("an entry has a kind");
            let removed = if kind.is_dir() {
                fs::remove_dir_all(entry.path())
            } else {
                fs::remove_file(entry.path())
            };
            removed.expect("every file of a plan can be removed");
        }
        self.world.file("file.txt", "inside").file("dir/inner.txt", "inner").folder("dir/deep");
        self.world
            .file(".git/config", "[core]")
            .file(".git/hooks/pre-commit", "exit 0")
            .file("dir/.git/HEAD", "ref");
        self.world.file("submodule/.git", "gitdir: ../.git/modules/submodule\n");
        self.world.file(".git/modules/submodule/config", "[core]");
        for (path, to) in [
            ("out-file", "../secret.txt"),
            ("out-dir", "../outside"),
            ("out-absolute", "@/outside"),
            ("dir/up", ".."),
            ("loop", "loop"),
            ("host-root", "/"),
            ("repository", ".git"),
        ] {
            self.world.link(path, to);
        }
    }

    /// Returns the entries that no tool may change: everything from a `.git` component on, also if
    /// the project around it was moved.
    fn protected(&self) -> Vec<(PathBuf, String)> {
        let from_git = |path: &Path| -> Option<PathBuf> {
            let whole = path.components().map(std::path::Component::as_os_str);
            let below: PathBuf = whole.skip_while(|part| *part != ".git").collect();
            (below != Path::new("")).then_some(below)
        };
        let inside = self.world.inside().into_iter();
        let mut found: Vec<_> =
            inside.filter_map(|(path, what)| Some((from_git(&path)?, what))).collect();
        found.sort();
        found
    }
}
