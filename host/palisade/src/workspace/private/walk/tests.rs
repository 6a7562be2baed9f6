//! Each directory on the path to the cache is checked.

#![allow(clippy::unwrap_used, reason = "a test that cannot prepare its directory has failed")]

use super::*;
use std::fs;
use std::os::unix::fs::{PermissionsExt as _, symlink};

const ROOT: u32 = 0;
const ME: u32 = 1000;
const OTHER: u32 = 1001;

#[test]
fn parent_is_safe_only_if_others_cannot_replace_it() {
    for (owner, mode, risk) in [
        (ROOT, 0o755, None),
        (ME, 0o700, None),
        (ME, 0o755, None),
        (ROOT, 0o1777, None),
        (ME, 0o1777, None),
        (OTHER, 0o755, Some(Risk::Owner)),
        (OTHER, 0o1777, Some(Risk::Owner)),
        (ROOT, 0o777, Some(Risk::Writable)),
        (ME, 0o775, Some(Risk::Writable)),
        (ME, 0o757, Some(Risk::Writable)),
    ] {
        assert_eq!(Risk::of_parent(owner, mode, ME), risk, "{owner} {mode:o}");
    }
    assert_eq!(
        Risk::of_parent(OTHER, 0o755, ROOT),
        Some(Risk::Owner),
        "root does not trust other users either"
    );
}

#[track_caller]
fn reason(path: &Path) -> String {
    match open_private(path, Missing::Made, None) {
        Err(Obstacle::Unsafe(reason)) => reason,
        other => panic!("{other:?}"),
    }
}

#[test]
fn writable_parent_is_refused_with_remedy() {
    let outer = tempfile::tempdir().unwrap();
    let open = outer.path().join("open");
    fs::create_dir(&open).unwrap();
    fs::set_permissions(&open, fs::Permissions::from_mode(0o777)).unwrap();
    for path in ["cache", "deep/cache"] {
        let reason = reason(&open.join(path));
        assert!(
            reason.contains("other users can write to") && reason.contains("chmod go-w"),
            "{reason}"
        );
    }
    assert_eq!(fs::read_dir(&open).unwrap().count(), 0);
    symlink(&open, outer.path().join("link")).unwrap();
    reason(&outer.path().join("link/cache"));
    fs::set_permissions(&open, fs::Permissions::from_mode(0o1777)).unwrap();
    open_private(&open.join("cache"), Missing::Made, None).unwrap();
}

#[test]
fn missing_directory_is_created_only_on_request() {
    let outer = tempfile::tempdir().unwrap();
    let path = outer.path().join("a/b");
    let missing = open_private(&path, Missing::Refused, None);
    assert!(
        matches!(&missing, Err(Obstacle::System(error)) if error.kind() == std::io::ErrorKind::NotFound)
    );
    assert_eq!(fs::read_dir(outer.path()).unwrap().count(), 0);
    open_private(&path, Missing::Made, None).unwrap();
    open_private(&path, Missing::Refused, None).unwrap();
}

#[test]
fn directory_itself_is_private() {
    let outer = tempfile::tempdir().unwrap();
    let made = outer.path().join("a/b/cache");
    open_private(&made, Missing::Made, None).unwrap();
    assert_eq!(fs::metadata(&made).unwrap().permissions().mode() & 0o7777, 0o700);
    fs::set_permissions(&made, fs::Permissions::from_mode(0o750)).unwrap();
    assert!(reason(&made).contains("chmod 700"));
    fs::write(outer.path().join("file"), "").unwrap();
    assert!(reason(&outer.path().join("file")).contains("not a directory"));
    assert!(reason(&outer.path().join("file/cache")).contains("not a directory"));
}

#[test]
fn path_inside_the_workspace_is_recognised_by_identity() {
    let outer = tempfile::tempdir().unwrap();
    let root = outer.path().join("ws");
    fs::create_dir_all(root.join("there")).unwrap();
    symlink(root.join("there"), outer.path().join("link")).unwrap();
    let workspace = Workspace::open(&root).unwrap();
    for inside in ["ws", "ws/there", "ws/new/cache", "ws/new/../../cache", "link/cache", "link"] {
        let refused = open_private(&outer.path().join(inside), Missing::Made, Some(&workspace));
        assert!(matches!(refused, Err(Obstacle::Inside)), "{inside}: {refused:?}");
    }
    assert_eq!(
        (fs::read_dir(&root).unwrap().count(), fs::read_dir(root.join("there")).unwrap().count()),
        (1, 0)
    );
    open_private(&outer.path().join("ws/../beside"), Missing::Made, Some(&workspace)).unwrap();
}

/// Needs root, because only root can change the owner of a file.
#[test]
fn parent_or_link_of_another_user_is_refused() {
    let outer = tempfile::tempdir().unwrap();
    let theirs = outer.path().join("theirs");
    let link = outer.path().join("link");
    fs::create_dir_all(theirs.join("cache")).unwrap();
    fs::create_dir_all(outer.path().join("own/cache")).unwrap();
    symlink(outer.path().join("own"), &link).unwrap();
    open_private(&link.join("made"), Missing::Made, None).unwrap();
    let give = |path: &Path| {
        let other = Some(rustix::fs::Uid::from_raw(65_534));
        rustix::fs::chownat(rustix::fs::CWD, path, other, None, AtFlags::SYMLINK_NOFOLLOW)
    };
    if give(&theirs).and_then(|()| give(&link)).is_err() {
        let _ = std::io::Write::write_all(
            &mut std::io::stderr(),
            b"skipped: only root can give files away\n",
        );
        return;
    }
    for path in [theirs.join("cache"), theirs.join("new"), link.join("made"), theirs.clone()] {
        let reason = reason(&path);
        assert!(
            reason.contains("belongs to another user") && reason.contains("name a directory"),
            "{reason}"
        );
    }
    assert!(!theirs.join("new").exists());
}

#[test]
fn file_is_opened_only_if_nobody_else_can_replace_it() {
    let outer = tempfile::tempdir().unwrap();
    let folder = outer.path().join("folder");
    fs::create_dir(&folder).unwrap();
    fs::write(folder.join("file"), "text").unwrap();
    symlink("folder/file", outer.path().join("link")).unwrap();
    let opened = |name: &str| open_unreplaceable(&outer.path().join(name));
    for mode in [0o755, 0o700, 0o1777] {
        fs::set_permissions(&folder, fs::Permissions::from_mode(mode)).unwrap();
        for name in ["folder/file", "link", "folder/../link"] {
            assert_eq!(std::io::read_to_string(opened(name).unwrap()).unwrap(), "text", "{name}");
        }
    }
    for name in ["folder", "folder/.", "folder/..", "folder/missing"] {
        assert!(opened(name).is_err(), "{name}");
    }
    fs::set_permissions(&folder, fs::Permissions::from_mode(0o775)).unwrap();
    for name in ["folder/file", "link"] {
        let why = std::io::Error::from(opened(name).unwrap_err()).to_string();
        assert!(why.contains("other users can write to") && why.contains("chmod go-w"), "{why}");
    }
}

#[test]
fn pipe_is_never_opened() {
    let outer = tempfile::tempdir().unwrap();
    let pipe = outer.path().join("pipe");
    rustix::fs::mknodat(rustix::fs::CWD, &pipe, FileType::Fifo, Mode::RUSR | Mode::WUSR, 0)
        .unwrap();
    symlink("pipe", outer.path().join("link")).unwrap();
    for name in ["pipe", "link"] {
        let why = open_unreplaceable(&outer.path().join(name)).unwrap_err();
        let why = std::io::Error::from(why).to_string();
        assert!(why.contains("not a regular file"), "{name}: {why}");
    }
}

#[test]
fn circular_links_end() {
    let outer = tempfile::tempdir().unwrap();
    symlink("two", outer.path().join("one")).unwrap();
    symlink("one", outer.path().join("two")).unwrap();
    assert!(matches!(
        open_private(&outer.path().join("one"), Missing::Made, None),
        Err(Obstacle::System(_))
    ));
}

#[test]
fn followed_links_match_the_systems_limit() {
    let outer = tempfile::tempdir().unwrap();
    let at = |number: usize| outer.path().join(number.to_string());
    fs::create_dir(at(0)).unwrap();
    fs::set_permissions(at(0), fs::Permissions::from_mode(0o700)).unwrap();
    for number in 1..=MAX_LINKS + 1 {
        symlink(at(number - 1), at(number)).unwrap();
    }
    open_private(&at(MAX_LINKS), Missing::Made, None).unwrap();
    assert!(matches!(
        open_private(&at(MAX_LINKS + 1), Missing::Made, None),
        Err(Obstacle::System(_))
    ));
}

#[test]
fn parent_of_the_root_is_the_root() {
    let outer = tempfile::tempdir().unwrap();
    let cache = outer.path().join("cache");
    open_private(&Path::new("/../..").join(cache.strip_prefix("/").unwrap()), Missing::Made, None)
        .unwrap();
    assert!(cache.is_dir());
}
