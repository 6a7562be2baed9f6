//! Every operation on paths that lead out, would block it, or name a protected tree.

use super::*;
use std::sync::atomic::{AtomicBool, Ordering};

/// The operations that do not follow a link in the last component.
const KEEPS: &[&str] = &["delete"];

#[test]
fn no_path_escapes_the_workspace() {
    let world = World::new();
    world.link("leaf", "../outside/secret");
    world.link("absolute", world.outer.path().join("outside/secret"));
    world.link("parent", "../outside");
    world.link("dangling", "../outside/new");
    world.link("up", "..");
    let outside = world.outer.path().join("outside/secret");
    let outside = outside.to_str().unwrap();
    let paths = [
        "..",
        "../outside/secret",
        "sub/../../outside/secret",
        outside,
        "parent/secret",
        "parent/new",
        "up/outside/secret",
        "up/ws/file",
    ];
    for path in paths {
        for (operation, result) in world.everything(path) {
            assert!(matches!(result, Err(FileError::Escapes(_))), "{operation} {path}: {result:?}");
        }
    }
    for path in ["leaf", "absolute", "dangling"] {
        for (operation, result) in
            world.everything(path).into_iter().filter(|(name, _)| !KEEPS.contains(name))
        {
            assert!(matches!(result, Err(FileError::Escapes(_))), "{operation} {path}: {result:?}");
        }
    }
    assert_eq!(fs::read_to_string(outside).unwrap(), "secret");
    assert_eq!(fs::read_dir(world.outer.path().join("outside")).unwrap().count(), 1);
    assert_eq!(fs::read_dir(world.outer.path()).unwrap().count(), 2);
}

#[test]
fn dangling_link_is_not_written_through() {
    let world = World::new();
    world.link("dangling", "sub/none");
    world.link("behind", "none");
    for path in ["dangling", "behind/file"] {
        for (operation, result) in world
            .changes(path)
            .into_iter()
            .filter(|(name, _)| !KEEPS.contains(name) || path == "behind/file")
        {
            assert!(
                matches!(result, Err(FileError::NotRegular { .. })),
                "{operation} {path}: {result:?}"
            );
        }
    }
    assert!(!world.at("sub/none").exists() && !world.at("none").exists());
}

#[test]
fn pipe_neither_blocks_nor_is_written() {
    let world = World::new();
    world.pipe("pipe");
    world.link("link", "pipe");
    for path in ["pipe", "link"] {
        for (operation, result) in world
            .everything(path)
            .into_iter()
            .filter(|(name, _)| !["exists", "delete"].contains(name))
        {
            assert!(
                matches!(result, Err(FileError::NotRegular { .. } | FileError::NotADirectory(_))),
                "{operation} {path}: {result:?}"
            );
        }
        world.at("pipe").symlink_metadata().err().into_iter().for_each(|_| world.pipe("pipe"));
    }
}

#[cfg(target_os = "linux")]
#[test]
fn pipe_is_recognised_before_opening() {
    use crate::workspace::{LastLink, open_regular};
    use rustix::fs::inotify;
    let world = World::new();
    world.pipe("pipe");
    world.link("link", "pipe");
    let watch =
        inotify::init(inotify::CreateFlags::NONBLOCK | inotify::CreateFlags::CLOEXEC).unwrap();
    for watched in ["pipe", "file"] {
        inotify::add_watch(&watch, world.at(watched), inotify::WatchFlags::OPEN).unwrap();
    }
    let files = world.workspace.files();
    for path in ["pipe", "link"] {
        let attempts =
            [files.read(path).map(drop), files.list(path).map(drop), files.append(path, "x")];
        assert!(attempts.iter().all(Result::is_err), "{attempts:?}");
        assert!(files.write(path, "x").is_err() && files.patch(path, "x", "y").is_err());
        assert!(open_regular(&world.at(path), LastLink::Follow).is_err());
    }
    let mut space = [std::mem::MaybeUninit::uninit(); 512];
    let opened = inotify::Reader::new(&watch, &mut space).next().map(drop);
    assert_eq!(opened, Err(rustix::io::Errno::AGAIN), "a pipe was opened");
    // The watch does report opens.
    world.workspace.files().read("file").unwrap();
    assert!(inotify::Reader::new(&watch, &mut space).next().is_ok());
}

#[test]
fn git_directory_is_readable_but_unchangeable() {
    let world = World::new();
    fs::create_dir(world.at("sub/.GIT")).unwrap();
    fs::write(world.at("sub/.GIT/config"), "[core]").unwrap();
    world.link("innocent", "sub/.git");
    world.link("config", "sub/.git/config");
    let paths = [
        "sub/.git/config",
        "sub/.GIT/config",
        "sub/.Git/new",
        "innocent/config",
        "innocent/hooks/new",
        ".git",
        ".git/hooks/post-commit",
        "a/b/.gIt/c",
    ];
    for path in paths {
        for (operation, result) in world.changes(path) {
            assert!(
                matches!(result, Err(FileError::Protected { .. })),
                "{operation} {path}: {result:?}"
            );
        }
    }
    for (operation, result) in
        world.changes("config").into_iter().filter(|(name, _)| !KEEPS.contains(name))
    {
        assert!(matches!(result, Err(FileError::Protected { .. })), "{operation}: {result:?}");
    }
    assert!(!world.at(".git").exists() && !world.at("a").exists());
    assert_eq!((world.entries("sub/.git"), world.entries("sub/.git/hooks")), (2, 0));
    assert_eq!(world.workspace.files().read("innocent/config").unwrap(), "[core]");
    assert_eq!(world.workspace.files().list("sub/.git").unwrap(), ["config", "hooks/"]);
    world.workspace.files().write("sub/.gitignore", "target").unwrap();
}

/// Runs `attempt` repeatedly while another thread keeps swapping an entry with a link.
fn while_swapping(world: &World, entry: &str, link: &str, attempt: impl Fn()) {
    let entry = world.at(entry);
    let link = world.at(link);
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !done.load(Ordering::SeqCst) {
                let flags = rustix::fs::RenameFlags::EXCHANGE;
                rustix::fs::renameat_with(rustix::fs::CWD, &entry, rustix::fs::CWD, &link, flags)
                    .unwrap();
            }
        });
        (0..3_000).for_each(|_| attempt());
        done.store(true, Ordering::SeqCst);
    });
}

#[cfg(target_os = "linux")]
#[test]
fn link_swapped_in_during_a_call_cannot_escape() {
    for target in ["../outside", "sub/.git"] {
        let world = World::new();
        fs::create_dir(world.at("dir")).unwrap();
        fs::write(world.at("dir/secret"), "inside").unwrap();
        world.link("link", target);
        let files = world.workspace.files();
        while_swapping(&world, "dir", "link", || {
            let _ = files.write("dir/new", "x");
            let _ = files.append("dir/log", "x");
            let _ = files.delete("dir/new");
            let _ = files.patch("dir/secret", "inside", "inside");
            assert!(files.read("dir/secret").map_or(true, |text| text == "inside"));
        });
        assert_eq!(
            fs::read_to_string(world.outer.path().join("outside/secret")).unwrap(),
            "secret"
        );
        assert_eq!(
            fs::read_dir(world.outer.path().join("outside")).unwrap().count(),
            1,
            "{target}"
        );
        assert_eq!(world.entries("sub/.git"), 2, "{target}");
    }
}

#[cfg(target_os = "linux")]
#[test]
fn file_swapped_for_a_link_is_not_written_through() {
    let world = World::new();
    world.link("link", "../outside/secret");
    let files = world.workspace.files();
    while_swapping(&world, "file", "link", || {
        let _ = files.append("file", "x");
        let _ = files.write("file", "y");
        assert!(files.read("file").map_or(true, |text| !text.contains("secret")));
        // Recreate the link if it was replaced, for the next round.
        if world.at("file").symlink_metadata().is_ok_and(|meta| meta.is_file())
            && world.at("link").symlink_metadata().is_ok_and(|meta| meta.is_file())
        {
            let _ = symlink("../outside/secret", world.at("fresh"));
            let _ = fs::rename(world.at("fresh"), world.at("link"));
        }
    });
    assert_eq!(fs::read_to_string(world.outer.path().join("outside/secret")).unwrap(), "secret");
}

/// The name of this process, which is harmless to change.
#[cfg(target_os = "linux")]
#[test]
fn file_of_the_kernel_is_neither_read_nor_changed() {
    let workspace = Workspace::open("/".as_ref()).unwrap();
    let files = workspace.files();
    let before = fs::read_to_string("/proc/self/comm").unwrap();
    let name = before.trim_end();
    let path = "proc/self/comm";
    for (operation, result) in [
        ("read", files.read(path).map(drop)),
        ("write", files.write(path, "mine")),
        ("check_change", files.check_change(path)),
        ("append", files.append(path, "mine")),
        ("patch", files.patch(path, name, "mine")),
        ("delete", files.delete(path)),
        ("create", files.write("proc/self/new/file", "mine")),
    ] {
        assert!(matches!(result, Err(FileError::Kernel(_))), "{operation}: {result:?}");
    }
    assert_eq!(fs::read_to_string("/proc/self/comm").unwrap(), before);
    let ordinary = tempfile::NamedTempFile::new().unwrap();
    let inside = ordinary.path().strip_prefix("/").unwrap().to_str().unwrap();
    files.write(inside, "text").unwrap();
    assert_eq!(files.read(inside).unwrap(), "text", "below the same root");
}

/// Only root can give a link to another user.
#[test]
fn link_of_another_user_in_a_directory_for_all_users_is_not_followed() {
    use std::os::unix::fs::{PermissionsExt as _, lchown};
    let world = World::new();
    fs::create_dir(world.at("shared")).unwrap();
    fs::set_permissions(world.at("shared"), fs::Permissions::from_mode(0o1777)).unwrap();
    for (name, target) in [("shared/file", "../file"), ("shared/sub", "../sub")] {
        world.link(name, target);
        if lchown(world.at(name), Some(12_345), None).is_err() {
            return;
        }
    }
    for path in ["shared/file", "shared/sub/new"] {
        for (operation, result) in world.changes(path) {
            let refused = matches!(result, Err(FileError::NotRegular { .. }));
            assert!(refused || KEEPS.contains(&operation), "{operation} {path}: {result:?}");
        }
    }
    assert_eq!((world.text("file").as_str(), world.at("sub/new").exists()), ("inside", false));
}
