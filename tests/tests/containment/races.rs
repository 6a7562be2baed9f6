//! Races against path resolution: changes during a call, or between two calls, open no way out.

use std::fs;
use std::ops::ControlFlow;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use palisade::{Call, Host, SideEffects, ToolResult};
use palisade_tests::case::block_on;
use palisade_tests::guest::CONTAINMENT_FILES;
use palisade_tests::world::SECRET;
use palisade_tests::{Case, World};
use rustix::fs::{CWD, FileType, Mode, OFlags, RenameFlags, mknodat, open, renameat_with};
use serde_json::json;

fn host(world: &World) -> Host {
    Case::new(CONTAINMENT_FILES, "in_read").builder(world).build().unwrap()
}

fn read(host: &Host, path: &str) -> ToolResult {
    let call = Call::new("in_read", json!({"op": "read", "path": path}));
    block_on(host.dispatch(host.session(), call))
}

#[test]
fn swapped_workspace_path_keeps_the_opened_directory() {
    let world = World::new();
    world.file("secret.txt", "the workspace's own");
    let host = host(&world);
    fs::rename(world.root(), world.outer().join("elsewhere")).unwrap();
    symlink(world.outer().join("outside"), world.root()).unwrap();
    assert_eq!(read(&host, "secret.txt").output().as_deref(), Some("the workspace's own"));
}

#[test]
fn removed_workspace_fails_only_its_calls() {
    let world = World::new();
    world.file("file.txt", "inside");
    let host = host(&world);
    fs::remove_dir_all(world.root()).unwrap();
    let result = read(&host, "file.txt");
    assert_eq!(
        result.error().map(|error| error.class().as_str()),
        Some("execution_error"),
        "{result}"
    );
}

/// The minimum number of swaps, and of attempts.
pub(super) const ROUNDS: usize = 1000;
/// The upper bound for one race, generous for slow machines.
const PATIENCE: Duration = Duration::from_secs(120);

/// Runs `swap` in a loop against `try_it` in another, until both have run `rounds` times or
/// `try_it` breaks.
pub(super) fn race(
    rounds: usize,
    swap: impl Fn(usize) + Sync,
    mut try_it: impl FnMut() -> ControlFlow<()>,
) {
    let (swaps, done, start) = (AtomicUsize::new(0), AtomicBool::new(false), Instant::now());
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !done.load(Ordering::SeqCst) {
                swap(swaps.fetch_add(1, Ordering::SeqCst));
            }
        });
        let mut tries = 0;
        while (tries < rounds || swaps.load(Ordering::SeqCst) < rounds)
            && start.elapsed() < PATIENCE
        {
            tries += 1;
            if try_it().is_break() {
                break;
            }
        }
        done.store(true, Ordering::SeqCst);
        assert!(
            start.elapsed() < PATIENCE,
            "{tries} tries and {} swaps only",
            swaps.load(Ordering::SeqCst)
        );
    });
}

/// Replaces a symlink atomically, so that the name exists at any moment.
pub(super) fn relink(root: &Path, name: &str, to: &str) {
    let _ = fs::remove_file(root.join("next"));
    let _ = symlink(to, root.join("next"));
    let _ = fs::rename(root.join("next"), root.join(name));
}

/// Exchanges two entries atomically.
fn exchange(root: &Path, one: &str, other: &str) {
    let _ = renameat_with(CWD, root.join(one), CWD, root.join(other), RenameFlags::EXCHANGE);
}

/// Points a symlink inside and outside in turn: at a file, or at a parent directory.
fn turn(root: &Path, path: &str, turn: usize) {
    let (name, targets) = match path {
        "turning" => ("turning", ["inside.txt", "../secret.txt"]),
        _ => ("turning", ["real", "../outside"]),
    };
    relink(root, name, targets[turn % 2]);
}

fn turning() -> World {
    let world = World::new();
    world.file("inside.txt", "inside").file("real/secret.txt", "inside");
    world
}

/// The control, with the TOCTOU race of a naive check: resolves the path, then opens it if it is
/// inside.
fn naive_open(root: &Path, path: &str) -> Option<PathBuf> {
    let real = root.join(path).canonicalize().ok()?;
    a_moment_passes();
    (real.starts_with(root) && !real.components().any(|part| part.as_os_str() == ".git"))
        .then(|| root.join(path))
}

/// Yields between check and use, where a real call starts a sandbox. Without it the control would
/// rarely lose the race on a busy machine.
fn a_moment_passes() {
    std::thread::yield_now();
}

fn naive_read(root: &Path, path: &str) -> String {
    naive_open(root, path).and_then(|path| fs::read_to_string(path).ok()).unwrap_or_default()
}

#[track_caller]
fn is_never_read_outside(path: &str) {
    let world = turning();
    let (host, root, mut inside) = (host(&world), world.root(), 0);
    race(
        ROUNDS,
        |turns| turn(&root, path, turns),
        || {
            let result = read(&host, path);
            assert!(!result.to_json().to_string().contains(SECRET), "{result}");
            inside += usize::from(result.is_success());
            ControlFlow::Continue(())
        },
    );
    assert!(inside > 0, "sometimes the path was inside");
}

#[track_caller]
fn is_read_outside_without_the_guard(path: &str) {
    let world = turning();
    let (root, mut escaped) = (world.root().canonicalize().unwrap(), false);
    race(
        usize::MAX,
        |turns| turn(&root, path, turns),
        || {
            escaped = naive_read(&root, path).contains(SECRET);
            if escaped { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        },
    );
    assert!(escaped, "the race has too few attempts");
}

#[test]
fn file_swapped_for_a_link_is_never_read_outside() {
    is_never_read_outside("turning");
}

#[test]
fn unguarded_file_swapped_for_a_link_is_read_outside() {
    is_read_outside_without_the_guard("turning");
}

#[test]
fn directory_swapped_for_a_link_is_never_passed() {
    is_never_read_outside("turning/secret.txt");
}

#[test]
fn race_escapes_when_the_guard_is_off() {
    is_read_outside_without_the_guard("turning/secret.txt");
}

/// Returns a world with a directory and a repository that can take each other's place, by a symlink
/// or by a rename.
fn repository() -> World {
    let world = World::new();
    world.file(".git/config", "[core]").file("draft/config", "draft").link("link", "draft");
    world
}

/// The ways to get a repository under another name: a retargeted symlink, or an exchange of the
/// directories.
type Swap = fn(&Path, usize);
const SWAPS: [(&str, Swap); 2] = [
    ("link/config", |root, turn| {
        relink(root, "link", if turn % 2 == 0 { "draft" } else { ".git" });
    }),
    ("draft/config", |root, _| exchange(root, "draft", ".git")),
];

/// Returns true if the repository is unchanged, under either name.
fn is_whole(root: &Path) -> bool {
    ["draft/config", ".git/config"]
        .iter()
        .any(|path| fs::read_to_string(root.join(path)).is_ok_and(|text| text == "[core]"))
}

#[test]
fn swapped_in_repository_is_never_written() {
    for (path, swap) in SWAPS {
        let world = repository();
        let (root, mut written) = (world.root(), 0);
        let case = Case::new(CONTAINMENT_FILES, "in_write").allow(SideEffects::Write);
        let host = case.builder(&world).build().unwrap();
        race(
            ROUNDS,
            |turn| swap(&root, turn),
            || {
                let call = Call::new("in_write", json!({"op": "write", "path": path}));
                written += usize::from(block_on(host.dispatch(host.session(), call)).is_success());
                ControlFlow::Continue(())
            },
        );
        assert!(is_whole(&root), "{path}");
        assert!(written > 0, "sometimes {path} led to the draft");
    }
}

#[test]
fn unguarded_swapped_in_repository_is_written() {
    for (path, swap) in SWAPS {
        let world = repository();
        let (root, mut lost) = (world.root().canonicalize().unwrap(), false);
        race(
            usize::MAX,
            |turn| swap(&root, turn),
            || {
                let _ = naive_open(&root, path).map(|path| fs::write(path, "changed"));
                lost = (0..20).all(|_| !is_whole(&root));
                if lost { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
            },
        );
        assert!(!is_whole(&root), "the race has too few attempts");
    }
}

/// Returns a world with a file and a FIFO that exchange names.
fn with_pipe() -> World {
    let world = World::new();
    world.file("turning", "inside");
    mknodat(CWD, world.root().join("pipe"), FileType::Fifo, Mode::from_raw_mode(0o666), 0).unwrap();
    world
}

#[test]
fn swapped_in_pipe_blocks_no_thread() {
    let world = with_pipe();
    let case = Case::new(CONTAINMENT_FILES, "in_write").allow(SideEffects::Write);
    let (host, root, mut done) = (case.builder(&world).build().unwrap(), world.root(), 0);
    race(
        ROUNDS,
        |_| exchange(&root, "turning", "pipe"),
        || {
            for op in ["read", "append"] {
                let call = Call::new("in_write", json!({"op": op, "path": "turning"}));
                // An open that blocks would hold this thread forever.
                done += usize::from(block_on(host.dispatch(host.session(), call)).is_success());
            }
            ControlFlow::Continue(())
        },
    );
    assert!(done > 0, "sometimes it was the file");
}

#[test]
fn unguarded_swapped_in_pipe_is_opened() {
    let world = with_pipe();
    let (root, mut opened) = (world.root(), false);
    race(
        usize::MAX,
        |_| exchange(&root, "turning", "pipe"),
        || {
            let path = root.join("turning");
            if path.symlink_metadata().is_ok_and(|meta| meta.is_file()) {
                a_moment_passes();
                // Without `NONBLOCK` this open would block forever.
                let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::CLOEXEC;
                let file = open(&path, flags, Mode::empty()).map(fs::File::from);
                opened = file.is_ok_and(|file| !file.metadata().is_ok_and(|meta| meta.is_file()));
            }
            if opened { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        },
    );
    assert!(opened, "the race has too few attempts");
}
