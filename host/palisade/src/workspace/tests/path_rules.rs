//! Native tools and path rules; the tests of `palisade-wasi-fs` cover guests.

use super::super::{FileError, HardLinks, PathRules, Protection, Workspace};
use crate::tool::{ErrorKind, PermissionReason};
use std::fs;
use std::os::unix::fs::symlink;
use std::sync::Arc;
use tempfile::TempDir;

fn world(allow: Option<&[&str]>, deny: &[&str], hard_links: HardLinks) -> (TempDir, Workspace) {
    let outer = TempDir::new().unwrap();
    let root = outer.path().join("ws");
    for dir in ["secrets", "src/sub"] {
        fs::create_dir_all(root.join(dir)).unwrap();
    }
    for file in ["secrets/key", ".env", "src/.env", "src/main.rs", "notes.txt"] {
        fs::write(root.join(file), "content").unwrap();
    }
    symlink("secrets/key", root.join("to_key")).unwrap();
    symlink("../secrets", root.join("src/to_secrets")).unwrap();
    fs::hard_link(root.join("secrets/key"), root.join("alias")).unwrap();
    let owned = |list: &[&str]| list.iter().map(ToString::to_string).collect::<Vec<_>>();
    let rules = PathRules::new(allow.map(owned).as_deref(), &owned(deny)).unwrap();
    let workspace = Workspace::open(&root).unwrap();
    workspace.keep_rules_of(&Arc::new(Protection::new(hard_links, Vec::new()).with_paths(rules)));
    (outer, workspace)
}

const DENY: [&str; 2] = ["secrets/**", "**/.env*"];

#[test]
fn a_native_tool_neither_reads_nor_changes_a_denied_path() {
    let (outer, workspace) = world(None, &DENY, HardLinks::Refuse);
    let root = outer.path().join("ws");
    symlink("../secrets/missing", root.join("src/to_missing")).unwrap();
    // The target's `..` is that of the directory behind the first link.
    symlink("../to_secrets/../secrets/missing", root.join("src/sub/to_missing")).unwrap();
    let files = workspace.files();
    for path in [
        "secrets/key",
        "secrets/missing",
        "SECRETS/key",
        ".env",
        "src/.env",
        "src/../.env",
        "to_key",
        "src/to_secrets/key",
        "src/to_secrets/new",
        "src/to_secrets/new/below",
        "src/to_secrets/key/below",
        "src/to_missing",
        "src/to_missing/below",
        "src/sub/to_missing",
    ] {
        let outcomes = [
            files.read(path).map(drop),
            files.exists(path).map(drop),
            files.write(path, "x"),
            files.append(path, "x"),
            files.patch(path, "content", "x"),
            files.check_change(path),
        ];
        for (number, outcome) in outcomes.into_iter().enumerate() {
            assert!(matches!(outcome, Err(FileError::Excluded(_))), "{number} {path}: {outcome:?}");
        }
    }
    for path in ["secrets/key", ".env", "src/to_secrets/key"] {
        assert!(matches!(files.delete(path), Err(FileError::Excluded(_))), "{path}");
    }
    assert!(matches!(files.list("src/to_secrets"), Err(FileError::Excluded(_))));
    assert_eq!(fs::read_to_string(outer.path().join("ws/secrets/key")).unwrap(), "content");
    let error = ErrorKind::from(files.read(".env").unwrap_err());
    let is_reason = |reason| reason == PermissionReason::PathRules;
    assert!(
        matches!(error, ErrorKind::PermissionDenied { reason, .. } if is_reason(reason)),
        "{error:?}"
    );
}

#[test]
fn a_native_tool_sees_no_denied_name_and_all_others() {
    let (_outer, workspace) = world(None, &DENY, HardLinks::Refuse);
    let files = workspace.files();
    assert_eq!(files.list(".").unwrap(), ["alias", "notes.txt", "src/", "to_key"]);
    assert_eq!(files.list("src").unwrap(), ["main.rs", "sub/", "to_secrets"]);
    assert_eq!(files.read("src/main.rs").unwrap(), "content");
    files.write("src/new/deep.rs", "x").unwrap();
    files.delete("to_key").unwrap();
    assert!(files.exists("src").unwrap() && !files.exists("src/none").unwrap());
}

#[test]
fn a_native_tool_is_bound_by_a_list_of_allowed_paths() {
    let (_outer, workspace) = world(Some(&["src/**"]), &["**/.env*"], HardLinks::Refuse);
    let files = workspace.files();
    assert_eq!(files.list(".").unwrap(), ["src/"]);
    assert_eq!(files.read("src/main.rs").unwrap(), "content");
    for path in ["notes.txt", "missing.txt", "src/.env"] {
        assert!(matches!(files.read(path), Err(FileError::Excluded(_))), "{path}");
        assert!(matches!(files.write(path, "x"), Err(FileError::Excluded(_))), "{path}");
    }
}

#[test]
fn a_native_tool_reads_no_file_that_may_have_a_denied_name() {
    let (_outer, workspace) = world(None, &DENY, HardLinks::Refuse);
    assert!(matches!(workspace.files().read("alias"), Err(FileError::Aliased(_))));
    let (_outer, workspace) = world(None, &DENY, HardLinks::Allow);
    assert_eq!(workspace.files().read("alias").unwrap(), "content");
}
