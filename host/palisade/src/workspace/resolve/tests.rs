//! Tests of the look-up of paths in the input.

#![allow(clippy::unwrap_used, reason = "a test that cannot prepare its directory has failed")]
use super::super::Workspace;
use super::*;
use std::os::unix::fs::symlink;

fn workspace() -> (tempfile::TempDir, Workspace) {
    let outer = tempfile::tempdir().unwrap();
    let root = outer.path().join("ws");
    std::fs::create_dir_all(root.join("sub/deep")).unwrap();
    std::fs::write(root.join("file.txt"), "in").unwrap();
    std::fs::write(outer.path().join("secret"), "out").unwrap();
    symlink("file.txt", root.join("inside")).unwrap();
    symlink("../secret", root.join("outside")).unwrap();
    symlink("..", root.join("up")).unwrap();
    symlink("../not-yet", root.join("dangling")).unwrap();
    symlink(outer.path().join("secret"), root.join("absolute")).unwrap();
    let opened = Workspace::open(&root).unwrap();
    (outer, opened)
}

#[test]
fn inside_paths_become_relative() {
    let (_keep, ws) = workspace();
    let absolute = ws.root().join("sub/../file.txt");
    for (given, expected) in [
        ("file.txt", "file.txt"),
        ("./sub//deep/", "sub/deep"),
        ("sub/../file.txt", "file.txt"),
        (".", "."),
        ("inside", "inside"),
        ("missing/new.txt", "missing/new.txt"),
        (absolute.to_str().unwrap(), "file.txt"),
        (ws.root().to_str().unwrap(), "."),
    ] {
        assert_eq!(ws.resolve(given, LastLink::Follow).as_deref(), Ok(expected), "{given}");
    }
}

#[test]
fn absolute_path_may_begin_with_the_name_of_the_opened_link() {
    let (outer, ws) = workspace();
    let link = outer.path().join("link");
    symlink(ws.root(), &link).unwrap();
    let by_link = Workspace::open(&link).unwrap();
    assert_eq!(by_link.root(), ws.root());
    let absolute = |path: &str| link.join(path).to_str().unwrap().to_owned();
    for (path, expected) in [
        ("", "."),
        ("file.txt", "file.txt"),
        ("sub/../file.txt", "file.txt"),
        ("missing/new.txt", "missing/new.txt"),
    ] {
        let resolved = by_link.resolve(&absolute(path), LastLink::Follow);
        assert_eq!(resolved.as_deref(), Ok(expected), "{path}");
    }
    let real = ws.root().join("file.txt");
    assert!(by_link.resolve(real.to_str().unwrap(), LastLink::Follow).is_ok());
    for path in ["../secret", "outside", "sub/../../secret"] {
        let resolved = by_link.resolve(&absolute(path), LastLink::Follow);
        assert!(matches!(resolved, Err(PathRefused::Escapes(_))), "{path}: {resolved:?}");
    }
    // Another name of the directory, which was not used to open the workspace.
    assert!(ws.resolve(&absolute("file.txt"), LastLink::Follow).is_err());
}

#[test]
fn name_of_the_workspace_leads_to_the_opened_directory() {
    let (outer, ws) = workspace();
    let link = outer.path().join("link");
    symlink(ws.root(), &link).unwrap();
    let by_link = Workspace::open(&link).unwrap();
    // The link leads elsewhere from now on; the workspace stays.
    std::fs::remove_file(&link).unwrap();
    symlink("/etc", &link).unwrap();
    let path = link.join("passwd");
    assert_eq!(by_link.resolve(path.to_str().unwrap(), LastLink::Follow).as_deref(), Ok("passwd"));
    assert!(!by_link.files().exists(path.to_str().unwrap()).unwrap());
}

#[test]
fn outside_paths_are_refused() {
    let (_keep, ws) = workspace();
    for given in [
        "..",
        "../secret",
        "sub/../../secret",
        "/etc/passwd",
        "outside",
        "absolute",
        "up/secret",
        "up/new",
        "dangling",
        "missing/../../x",
    ] {
        assert!(
            matches!(ws.resolve(given, LastLink::Follow), Err(PathRefused::Escapes(_))),
            "{given}"
        );
    }
}

#[test]
fn removing_tool_gets_the_link_itself() {
    let (_keep, ws) = workspace();
    assert_eq!(ws.resolve("outside", LastLink::Keep).as_deref(), Ok("outside"));
    assert!(ws.resolve("up/secret", LastLink::Keep).is_err());
}

#[test]
fn invalid_path_is_reported_as_such() {
    let (_keep, ws) = workspace();
    for given in ["", "a\0b", &"x".repeat(5000)] {
        assert!(
            matches!(ws.resolve(given, LastLink::Follow), Err(PathRefused::Unusable { .. })),
            "{given:?}"
        );
    }
}

#[test]
fn longest_path_is_valid() {
    let (_keep, ws) = workspace();
    let longest = "./".repeat(2_047) + "xy";
    assert_eq!(ws.resolve(&longest, LastLink::Follow).as_deref(), Ok("xy"));
    assert!(matches!(
        ws.resolve(&(longest + "z"), LastLink::Follow),
        Err(PathRefused::Unusable { .. })
    ));
}

#[test]
fn system_refusal_is_not_an_escape() {
    let own = |kind| io::Error::new(kind, "a path led outside of the filesystem");
    assert!(led_out(&own(ErrorKind::PermissionDenied)));
    assert!(!led_out(&own(ErrorKind::NotFound)) && !led_out(&rustix::io::Errno::ACCESS.into()));
}

/// A budget that counts its checks and expires at a given one.
struct Questions {
    asked: std::sync::atomic::AtomicUsize,
    last: usize,
}

impl Questions {
    fn until(last: usize) -> Self {
        Self { asked: std::sync::atomic::AtomicUsize::new(0), last }
    }
}

impl Budget for Questions {
    fn reserve(&self, _: u64) -> Result<(), Exhausted> {
        Ok(())
    }

    fn release(&self, _: u64) {}

    fn check(&self) -> Result<(), Exhausted> {
        let asked = self.asked.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        if asked < self.last { Ok(()) } else { Err(Exhausted::Deadline) }
    }
}

#[test]
fn first_missing_directory_is_found_within_the_budget() {
    let (_keep, ws) = workspace();
    let there = "d/".repeat(500);
    std::fs::create_dir_all(ws.root().join(&there)).unwrap();
    let path = there + &"m/".repeat(1000) + "new";
    let questions = Questions::until(usize::MAX);
    assert!(matches!(ws.resolve_within(&path, LastLink::Follow, &questions), Ok(Ok(_))));
    let asked = questions.asked.into_inner();
    assert!((5..=15).contains(&asked), "{asked} looks");
    for last in [0, 1, asked - 1] {
        let ended = ws.resolve_within(&path, LastLink::Follow, &Questions::until(last));
        assert_eq!(ended, Err(Exhausted::Deadline), "{last}");
    }
}

#[test]
fn link_before_a_missing_part_is_judged() {
    let (outer, ws) = workspace();
    let deep = "sub/deep/".to_owned();
    for (name, target, inside) in [
        ("out", "../../../outside-dir", false),
        ("absent", "../../../nowhere", false),
        ("absolute", "/nowhere/at/all", false),
        ("in", "../../sub", true),
        ("later", "not-yet", true),
    ] {
        symlink(target, ws.root().join("sub/deep").join(name)).unwrap();
        for behind in ["", "/x", "/x/y/z/1/2/3/4/5/6/7/8"] {
            let path = format!("{deep}{name}{behind}");
            assert_eq!(ws.resolve(&path, LastLink::Follow).is_ok(), inside, "{path}");
        }
    }
    drop(outer);
}
