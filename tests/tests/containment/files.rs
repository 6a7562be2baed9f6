//! Escapes through the standard library, as an ordinary tool would try them, and the errors they
//! lead to.

use super::files;

#[test]
fn path_outside_is_denied_by_the_host() {
    for path in ["../secret.txt", "dir/../../secret.txt"] {
        let seen = files("in_read", "read", path, "");
        assert_eq!(seen.error("permission_denied")["detail"]["reason"], "sandbox", "{path}");
        assert_eq!(seen.result["error"]["is_recoverable"], false);
    }
}

#[test]
fn absolute_path_is_relative_to_the_workspace_root() {
    assert_eq!(files("in_read", "read", "/file.txt", "").output(), "inside");
    assert_eq!(files("in_read", "read", "/etc/passwd", "").result["success"], false);
    assert_eq!(
        files("in_read", "list", "/", "").output(),
        files("in_read", "list", ".", "").output()
    );
}

#[test]
fn tools_own_failure_is_no_denial() {
    assert_eq!(files("in_read", "read", "missing.txt", "").kind(), "not-found");
    assert_eq!(files("in_read", "read", "dir", "").kind(), "failed");
}

#[test]
fn class_write_changes_files_inside() {
    for (op, path, to, changed) in [
        ("write", "file.txt", "", "file.txt"),
        ("append", "file.txt", "", "file.txt"),
        ("create", "new.txt", "", "new.txt"),
        ("mkdir", "new", "", "new"),
        ("unlink", "file.txt", "", "file.txt"),
        ("truncate", "dir/inner.txt", "", "dir/inner.txt"),
        ("write", "to-file", "", "file.txt"),
    ] {
        let seen = files("in_write", op, path, to);
        assert_eq!(seen.output(), "done", "{op} {path}");
        seen.modified(&[changed]);
        assert!(
            seen.worlds().all(|world| world.inside() != fresh()),
            "{op} {path} changed something"
        );
    }
}

/// Returns the contents of an untouched furnished workspace.
fn fresh() -> palisade_tests::world::Snapshot {
    let world = palisade_tests::World::new();
    super::furnished(&world);
    world.inside()
}

#[test]
fn renaming_inside_works() {
    let moved = files("in_write", "rename", "file.txt", "dir/moved.txt");
    moved.left("dir/moved.txt", Some("inside")).left("file.txt", None);
}
