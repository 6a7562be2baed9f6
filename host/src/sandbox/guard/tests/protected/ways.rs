//! Trees that stand behind links, and repositories that are named in every way there is.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::sync::Arc;

use super::{REFUSED, nothing_changes};
use crate::sandbox::guard::tests::{Access, Call, Quotas, everywhere, resolvers};
use crate::workspace::{HardLinks, HostRules, Reading, Tree};

/// Protects these, as a host does.
fn protect(call: &mut Call, trees: &[(&str, Reading)]) {
    let open = |(path, reading): &(&str, Reading)| Arc::new(Tree::open(&call.host(path), *reading).unwrap());
    let trees = trees.iter().map(open).collect();
    call.keep(HostRules { hard_links: HardLinks::Allow, trees });
}

fn put(call: &Call, path: &str, text: &str) {
    let path = call.host(path);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, text).unwrap();
}

#[test]
fn a_repository_is_protected_in_whatever_way_its_place_is_written() {
    let file = |text: &dyn Fn(&Path) -> String, root: &Path| fs::write(root.join(".git"), text(root)).unwrap();
    let ways: [&dyn Fn(&Path); 6] = [
        &|root| file(&|root| format!("gitdir: {}\n", root.join(".repo").display()), root),
        &|root| file(&|_| "gitdir: ../workspace/.repo\n".to_owned(), root),
        &|root| file(&|_| "gitdir: ./.repo/../.repo\r\n".to_owned(), root),
        &|root| symlink(root.join(".repo"), root.join(".git")).unwrap(),
        &|root| symlink("../workspace/.repo", root.join(".git")).unwrap(),
        &|root| {
            symlink(root.join(".repo"), root.join("way")).unwrap();
            fs::write(root.join("elsewhere"), "gitdir: way").unwrap();
            symlink("elsewhere", root.join(".git")).unwrap();
        },
    ];
    for resolver in resolvers() {
        for (number, way) in ways.iter().enumerate() {
            let mut call = Call::new(resolver, Access::ReadWrite, Quotas::default());
            put(&call, ".repo/config", "[core]");
            way(&call.host(""));
            protect(&mut call, &[]);
            nothing_changes(&mut call, ".repo/config");
            nothing_changes(&mut call, ".repo/hooks");
            assert_eq!(call.rename(".repo", "other"), REFUSED, "way {number}");
            call.write("beside", "x").unwrap();
        }
    }
}

#[test]
fn the_directory_that_worktrees_have_in_common_is_protected() {
    for common in ["../..\n", "../../../.bare"] {
        everywhere(|call| {
            put(call, ".bare/config", "[core]");
            put(call, ".bare/worktrees/w/commondir", common);
            put(call, ".git", "gitdir: .bare/worktrees/w\n");
            protect(call, &[]);
            for path in [".bare/config", ".bare/hooks", ".bare/worktrees/w/commondir"] {
                nothing_changes(call, path);
            }
            assert_eq!(call.rename(".bare", "other"), REFUSED);
        });
    }
}

#[test]
fn a_repository_that_is_named_and_not_there_is_not_made() {
    everywhere(|call| {
        put(call, ".git", "gitdir: .repo\n");
        protect(call, &[]);
        assert_eq!(call.mkdir(".repo"), REFUSED);
        assert_eq!(call.rename("dir", ".repo"), REFUSED);
    });
}

#[test]
fn a_repository_elsewhere_protects_nothing_here() {
    for text in ["gitdir: ../outside", "gitdir: ", "ref: dir", "gitdir: \u{0}"] {
        everywhere(|call| {
            put(call, ".git", text);
            protect(call, &[]);
            call.write("dir/file", "x").unwrap();
            call.rename("dir", "other").unwrap();
        });
    }
}
