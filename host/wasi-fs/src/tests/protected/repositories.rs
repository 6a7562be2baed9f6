//! The workspace's git repositories, at any depth and under any form of their names.

use std::fs;
use std::os::unix::fs::symlink;

use super::{REFUSED, nothing_changes, repositories};
use crate::Refusal;
use crate::protected_paths::{HardLinks, Protection};
use crate::tests::{Access, Call, FOLLOW, OpenFlags, Quotas, WRITE, everywhere, resolvers};

#[test]
fn repository_is_protected_at_any_depth_and_case() {
    everywhere(|call| {
        repositories(call);
        for path in [
            ".git/config",
            ".git/new",
            ".git/hooks",
            ".git/hooks/post-commit",
            ".git",
            "sub/.git/config",
            "sub/.GIT/config",
            "sub/.gIt/x",
            "sub/.git/hooks/pre-commit.sample",
            "sub/../sub/.git/config",
            "dir/../.git/config",
            ".//.git//config",
            "tree/.git",
            "new/.git",
            "dir/.git",
            "dir/.GIT",
            "dir/git~1",
            "dir/.git.",
            "dir/.g\u{200c}it",
            "dir/.g\u{ad}it",
        ] {
            nothing_changes(call, path);
        }
        assert_eq!(call.fs.refusal().and_then(Refusal::tree).map(|tree| &**tree), Some(".git"));
    });
}

#[test]
fn repository_is_readable() {
    everywhere(|call| {
        repositories(call);
        for path in [".git/config", "sub/.git/config", "sub/.GIT/config"] {
            assert_eq!(call.read(path).unwrap(), "[core]", "{path}");
        }
        assert_eq!(call.read("tree/.git").unwrap(), "gitdir: ../.git/worktrees/tree");
        assert!(!call.fs.refused());
    });
}

#[test]
fn similar_names_are_not_protected() {
    everywhere(|call| {
        repositories(call);
        for path in [".gitignore", "sub/.gitattributes", "git", "dir/x.git"] {
            call.write(path, "x").unwrap();
        }
        call.mkdir(".github").unwrap();
        call.write("sub/file", "x").unwrap();
        assert!(!call.fs.refused());
    });
}

#[test]
fn link_into_a_repository_is_refused() {
    everywhere(|call| {
        repositories(call);
        call.link("innocent", "sub/.git");
        call.link("config", ".git/config");
        call.link("dir/up", "..");
        call.link("dangling", ".git/new");
        for path in ["innocent/config", "innocent/new", "innocent/hooks/new", "dir/up/.git/config"]
        {
            nothing_changes(call, path);
        }
        for path in ["config", "dangling"] {
            for open in [OpenFlags::CREATE, OpenFlags::TRUNCATE | OpenFlags::CREATE] {
                assert_eq!(call.open(path, FOLLOW, open, WRITE).map(drop), REFUSED, "{path}");
            }
        }
        assert!(!call.host(".git/new").exists());
        assert_eq!(call.read("config").unwrap(), "[core]");
    });
}

#[test]
fn repository_behind_a_link_or_file_is_protected() {
    for resolver in resolvers() {
        for by_file in [false, true] {
            let mut call = Call::new(resolver, Access::ReadWrite, Quotas::default());
            fs::create_dir(call.host("meta")).unwrap();
            fs::write(call.host("meta/config"), "[core]").unwrap();
            if by_file {
                fs::write(call.host(".git"), "gitdir: meta\n").unwrap();
            } else {
                symlink("meta", call.host(".git")).unwrap();
            }
            call.keep(Protection::new(HardLinks::Allow, Vec::new()));
            nothing_changes(&mut call, "meta/config");
            nothing_changes(&mut call, ".git/config");
            assert_eq!(call.rename("meta", "other"), REFUSED);
        }
    }
}

#[test]
fn moved_parent_of_a_repository_stays_protected() {
    everywhere(|call| {
        repositories(call);
        assert_eq!(call.rename("sub", "other"), Ok(()));
        call.again();
        nothing_changes(call, "other/.git/config");
        call.write("other/file", "x").unwrap();
    });
}
