//! Tests of the file API: each operation inside the workspace, and each attempt to leave it.

#![allow(clippy::unwrap_used, reason = "a test that cannot prepare its directory has failed")]

mod bare;
mod classes;
mod hostile;

use super::{FileError, MAX_ENTRIES, MAX_FILE_BYTES};
use crate::tool::{ErrorClass, ErrorKind};
use crate::workspace::Workspace;
use std::fs;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, symlink};
use std::path::{Path, PathBuf};
use tempfile::TempDir;

struct World {
    outer: TempDir,
    workspace: Workspace,
}

impl World {
    fn new() -> Self {
        let outer = tempfile::tempdir().unwrap();
        let root = outer.path().join("ws");
        fs::create_dir_all(root.join("sub/.git/hooks")).unwrap();
        fs::create_dir(outer.path().join("outside")).unwrap();
        fs::write(outer.path().join("outside/secret"), "secret").unwrap();
        fs::write(root.join("file"), "inside").unwrap();
        fs::write(root.join("sub/.git/config"), "[core]").unwrap();
        let workspace = Workspace::open(&root).unwrap();
        Self { outer, workspace }
    }

    fn at(&self, path: &str) -> PathBuf {
        self.workspace.root().join(path)
    }

    fn text(&self, path: &str) -> String {
        fs::read_to_string(self.at(path)).unwrap()
    }

    fn link(&self, name: &str, target: impl AsRef<Path>) {
        symlink(target, self.at(name)).unwrap();
    }

    fn pipe(&self, name: &str) {
        let kind = rustix::fs::FileType::Fifo;
        rustix::fs::mknodat(rustix::fs::CWD, self.at(name), kind, rustix::fs::Mode::RWXU, 0)
            .unwrap();
    }

    fn entries(&self, path: &str) -> usize {
        fs::read_dir(self.at(path)).unwrap().count()
    }

    /// Returns the outcomes of all operations on a path.
    fn everything(&self, path: &str) -> Vec<(&'static str, Result<(), FileError>)> {
        let reads = [
            ("read", self.workspace.files().read(path).map(drop)),
            ("read_bytes", self.workspace.files().read_bytes(path).map(drop)),
            ("exists", self.workspace.files().exists(path).map(drop)),
            ("list", self.workspace.files().list(path).map(drop)),
        ];
        reads.into_iter().chain(self.changes(path)).collect()
    }

    /// Returns the outcomes of all operations that change a path.
    fn changes(&self, path: &str) -> Vec<(&'static str, Result<(), FileError>)> {
        let files = self.workspace.files();
        vec![
            ("patch", files.patch(path, "secret", "x")),
            ("append", files.append(path, "x")),
            ("write", files.write(path, "x")),
            ("write_bytes", files.write_bytes(path, b"x")),
            ("delete", files.delete(path)),
        ]
    }
}

#[test]
fn file_is_read_as_text_or_bytes() {
    let world = World::new();
    world.link("sub/link", "../file");
    let absolute = world.at("file");
    for path in ["file", "./sub/../file", "sub/link", absolute.to_str().unwrap()] {
        assert_eq!(world.workspace.files().read(path).unwrap(), "inside", "{path}");
        assert_eq!(world.workspace.files().read_bytes(path).unwrap(), b"inside", "{path}");
    }
    fs::write(world.at("binary"), b"ab\xff").unwrap();
    assert_eq!(world.workspace.files().read_bytes("binary").unwrap(), b"ab\xff");
    assert!(matches!(
        world.workspace.files().read("binary"),
        Err(FileError::NotText { at: 2, .. })
    ));
    assert!(matches!(world.workspace.files().read("nothing"), Err(FileError::NotFound(_))));
    assert!(matches!(world.workspace.files().read("sub"), Err(FileError::NotRegular { .. })));
}

#[test]
fn oversized_file_is_refused() {
    let world = World::new();
    let files = world.workspace.files();
    fs::File::create(world.at("sparse")).unwrap().set_len(MAX_FILE_BYTES + 1).unwrap();
    fs::File::create(world.at("full")).unwrap().set_len(MAX_FILE_BYTES).unwrap();
    assert!(matches!(files.read("sparse"), Err(FileError::TooLarge { .. })));
    assert!(files.read_bytes("full").is_ok());
    assert!(matches!(files.append("full", "x"), Err(FileError::TooLarge { .. })));
    assert_eq!(fs::metadata(world.at("full")).unwrap().len(), MAX_FILE_BYTES);
    let huge = vec![0; usize::try_from(MAX_FILE_BYTES).unwrap() + 1];
    assert!(matches!(files.write_bytes("new", &huge), Err(FileError::TooLarge { .. })));
    assert!(!world.at("new").exists());
}

#[test]
fn writing_creates_file_and_directories() {
    let world = World::new();
    world.workspace.files().write("new/deep/file", "text").unwrap();
    world.workspace.files().write_bytes("new/deep/file", b"other").unwrap();
    assert_eq!(world.text("new/deep/file"), "other");
    assert_eq!(world.entries("new/deep"), 1);
}

#[test]
fn check_of_a_change_agrees_with_the_change_and_makes_none() {
    let world = World::new();
    world.link("out", "../outside/secret");
    world.link("config", "sub/.git/config");
    world.pipe("pipe");
    let files = world.workspace.files();
    for path in ["file", "new", "new/deep/file", "sub/../file"] {
        assert!(files.check_change(path).is_ok(), "{path}");
    }
    assert!(!world.at("new").exists());
    for path in ["sub", "out", "config", "sub/.git/config", "sub/.git/new", "pipe", "../x", ".git"]
    {
        let refused = files.check_change(path).unwrap_err().to_string();
        assert_eq!(files.write(path, "x").unwrap_err().to_string(), refused, "{path}");
    }
    assert_eq!(world.text("sub/.git/config"), "[core]");
}

#[test]
fn writing_is_atomic_and_keeps_permissions() {
    let world = World::new();
    fs::set_permissions(world.at("file"), fs::Permissions::from_mode(0o4750)).unwrap();
    let reader = fs::File::open(world.at("file")).unwrap();
    world.workspace.files().write("file", "new text").unwrap();
    assert_eq!(
        std::io::read_to_string(reader).unwrap(),
        "inside",
        "a program with the old file open still reads it"
    );
    assert_eq!(world.text("file"), "new text");
    assert_eq!(
        fs::metadata(world.at("file")).unwrap().mode() & 0o7777,
        0o750,
        "the right to be its owner is not kept"
    );
}

#[test]
fn writing_through_a_link_changes_its_target() {
    let world = World::new();
    world.link("sub/link", "../file");
    world.workspace.files().write("sub/link", "through").unwrap();
    world.workspace.files().append("sub/link", " and on").unwrap();
    assert_eq!(world.text("file"), "through and on");
    assert!(world.at("sub/link").symlink_metadata().unwrap().is_symlink());
}

#[test]
fn appending_extends_or_creates_a_file() {
    let world = World::new();
    let before = fs::metadata(world.at("file")).unwrap().ino();
    world.workspace.files().append("file", " more").unwrap();
    world.workspace.files().append("new/log", "one\n").unwrap();
    world.workspace.files().append("new/log", "two\n").unwrap();
    assert_eq!(
        (world.text("file"), world.text("new/log")),
        ("inside more".to_owned(), "one\ntwo\n".to_owned())
    );
    assert_eq!(fs::metadata(world.at("file")).unwrap().ino(), before);
}

#[test]
fn exists_is_false_for_a_dangling_link() {
    let world = World::new();
    world.link("dangling", "nowhere");
    world.link("good", "file");
    for (path, there) in [
        ("file", true),
        ("sub", true),
        (".", true),
        ("good", true),
        ("none", false),
        ("a/b", false),
        ("file/below", false),
        ("dangling", false),
    ] {
        assert_eq!(world.workspace.files().exists(path).unwrap(), there, "{path}");
    }
}

#[test]
fn listed_names_are_paths_of_the_other_methods() {
    use std::os::unix::ffi::OsStrExt as _;
    let world = World::new();
    let files = world.workspace.files();
    fs::write(world.at("sub/a b@c"), "inside").unwrap();
    fs::write(world.at("sub").join(std::ffi::OsStr::from_bytes(b"\xff")), "unnamed").unwrap();
    world.link("sub/to_file", "../file");
    world.link("sub/to_sub", "../sub");
    let names = files.list("sub").unwrap();
    assert_eq!(names, [".git/", "a b@c", "to_file", "to_sub"]);
    for name in &names {
        let path = format!("sub/{name}");
        match name.as_str() {
            ".git/" | "to_sub" => assert!(!files.list(&path).unwrap().is_empty(), "{path}"),
            _ => assert_eq!(files.read(&path).unwrap(), "inside", "{path}"),
        }
        assert!(files.exists(&path).unwrap(), "{path}");
    }
}

#[test]
fn listing_is_sorted_and_marks_directories() {
    let world = World::new();
    world.link("b", "file");
    world.pipe("a");
    assert_eq!(world.workspace.files().list(".").unwrap(), ["a", "b", "file", "sub/"]);
    assert_eq!(world.workspace.files().list("sub").unwrap(), [".git/"]);
    assert!(matches!(world.workspace.files().list("file"), Err(FileError::NotADirectory(_))));
    assert!(matches!(world.workspace.files().list("none"), Err(FileError::NotFound(_))));
}

#[test]
fn oversized_directory_is_refused() {
    let world = World::new();
    fs::create_dir(world.at("many")).unwrap();
    fs::write(world.at("many/0"), "").unwrap();
    let limit = u32::try_from(MAX_ENTRIES).unwrap();
    let mut file = 0;
    for entry in 1..=limit {
        // File systems bound the number of hard links, but creating a link is faster than creating
        // a file.
        if entry % 10_000 == 0 {
            file = entry;
            fs::write(world.at(&format!("many/{file}")), "").unwrap();
        } else {
            fs::hard_link(world.at(&format!("many/{file}")), world.at(&format!("many/{entry}")))
                .unwrap();
        }
    }
    assert!(matches!(world.workspace.files().list("many"), Err(FileError::TooManyEntries { .. })));
    fs::remove_file(world.at("many/1")).unwrap();
    assert_eq!(world.workspace.files().list("many").unwrap().len(), MAX_ENTRIES);
}

#[test]
fn deleting_removes_files_and_links_only() {
    let world = World::new();
    let files = world.workspace.files();
    world.link("out", "../outside/secret");
    world.link("dir", "sub");
    world.link("dangling", "nowhere");
    world.pipe("pipe");
    for path in ["file", "out", "dir", "dangling", "pipe"] {
        files.delete(path).unwrap_or_else(|error| panic!("{path}: {error}"));
        assert!(world.at(path).symlink_metadata().is_err(), "{path}");
    }
    assert!(world.outer.path().join("outside/secret").exists() && world.at("sub").is_dir());
    assert!(matches!(files.delete("sub"), Err(FileError::NotRegular { .. })));
    assert!(matches!(files.delete("none"), Err(FileError::NotFound(_))));
    assert!(matches!(files.delete("none/none"), Err(FileError::NotFound(_))));
    assert!(matches!(files.delete("."), Err(FileError::NotRegular { .. })));
}

#[test]
fn patch_replaces_a_unique_text() {
    let world = World::new();
    let files = world.workspace.files();
    files.write("text", "one two two aaa").unwrap();
    let count = |old: &str| match files.patch("text", old, "x") {
        Err(FileError::NotUnique { count, .. }) => count,
        other => panic!("{old}: {other:?}"),
    };
    assert_eq!((count("three"), count("two"), count("aa"), count("a"), count("")), (0, 2, 2, 3, 0));
    files.patch("text", "one", "1").unwrap();
    files.patch("text", " aaa", "").unwrap();
    assert_eq!(world.text("text"), "1 two two");
    assert!(matches!(files.patch("none", "a", "b"), Err(FileError::NotFound(_))));
    assert!(!world.at("none").exists());
}

#[test]
fn errors_have_their_class() {
    let world = World::new();
    let files = world.workspace.files();
    let class = |error: FileError| {
        let message = error.to_string();
        let kind = ErrorKind::from(error);
        assert_eq!(kind.to_string(), message);
        let detail =
            crate::tool::ToolError::new(crate::tool::CallId::new("c"), "t", kind).to_json();
        let detail = detail["detail"]
            .as_object()
            .unwrap()
            .values()
            .next()
            .unwrap()
            .as_str()
            .unwrap()
            .to_owned();
        (detail, message)
    };
    let denied = ErrorKind::from(files.read("../outside/secret").unwrap_err());
    assert_eq!(denied.class(), ErrorClass::PermissionDenied);
    assert_eq!(class(files.read("../x").unwrap_err()).0, "workspace");
    assert_eq!(class(files.write(".git/x", "").unwrap_err()).0, "protected");
    assert_eq!(class(files.read("none").unwrap_err()).0, "not-found");
    assert_eq!(class(files.read("").unwrap_err()).0, "invalid-input");
    assert_eq!(class(files.patch("file", "x", "y").unwrap_err()).0, "invalid-input");
    assert_eq!(class(files.read("sub").unwrap_err()).0, "failed");
    assert!(
        class(files.read("/etc/passwd").unwrap_err())
            .1
            .contains("`/etc/passwd` escapes the workspace boundary; give a path relative")
    );
}
