//! Protected trees behind links, and every form of naming a repository.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::{REFUSED, nothing_changes};
use crate::protected_paths::{HardLinks, ProtectedTree, Protection, Reading};
use crate::tests::{
    Access, Call, FOLLOW, HostDescriptor, OpenFlags, PathFlags, Quotas, WRITE, code, everywhere,
    now, resolvers,
};

/// Protects trees, as a host does.
fn protect(call: &mut Call, trees: &[(&str, Reading)]) {
    let open = |(path, reading): &(&str, Reading)| {
        Arc::new(ProtectedTree::open(&call.host(path), *reading).unwrap())
    };
    let trees = trees.iter().map(open).collect();
    call.keep(Protection::new(HardLinks::Allow, trees));
}

fn put(call: &Call, path: &str, text: &str) {
    let path = call.host(path);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, text).unwrap();
}

#[test]
fn repository_is_protected_under_every_path_form() {
    let file = |text: &dyn Fn(&Path) -> String, root: &Path| {
        fs::write(root.join(".git"), text(root)).unwrap();
    };
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
fn common_directory_of_worktrees_is_protected() {
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
fn missing_named_repository_is_not_created() {
    everywhere(|call| {
        put(call, ".git", "gitdir: .repo\n");
        protect(call, &[]);
        assert_eq!(call.mkdir(".repo"), REFUSED);
        assert_eq!(call.rename("dir", ".repo"), REFUSED);
    });
}

#[test]
fn repository_elsewhere_protects_nothing() {
    for text in ["gitdir: ../outside", "gitdir: ", "ref: dir", "gitdir: \u{0}"] {
        everywhere(|call| {
            put(call, ".git", text);
            protect(call, &[]);
            call.write("dir/file", "x").unwrap();
            call.rename("dir", "other").unwrap();
        });
    }
}

/// Protects a settings file behind a link, with the link at `link` and its target at `target`.
fn linked_settings(call: &mut Call, link: &str, target: PathBuf) {
    put(call, "dotfiles/palisade/palisade.toml", "own");
    put(call, "notes.toml", "[policy]");
    fs::create_dir_all(call.host(link).parent().unwrap()).unwrap();
    symlink(target, call.host(link)).unwrap();
    protect(call, &[(".config/palisade/palisade.toml", Reading::Refused)]);
}

#[test]
fn link_to_a_protected_file_is_not_replaced() {
    for resolver in resolvers() {
        for absolute in [false, true] {
            let mut call = Call::new(resolver, Access::ReadWrite, Quotas::default());
            let relative = PathBuf::from("../../dotfiles/palisade/palisade.toml");
            let target =
                if absolute { call.host("dotfiles/palisade/palisade.toml") } else { relative };
            linked_settings(&mut call, ".config/palisade/palisade.toml", target);
            let link = ".config/palisade/palisade.toml";
            assert_eq!(call.rename("notes.toml", link), REFUSED);
            assert_eq!(call.rename("notes.toml", ".config/palisade/Palisade.toml"), REFUSED);
            assert_eq!(call.rename(link, "away"), REFUSED);
            assert_eq!(call.unlink(link), REFUSED);
            assert_eq!(
                call.open(link, FOLLOW, OpenFlags::CREATE | OpenFlags::EXCLUSIVE, WRITE).map(drop),
                REFUSED
            );
            for above in [".config", ".config/palisade", "dotfiles", "dotfiles/palisade"] {
                assert_eq!(call.rename(above, "away"), REFUSED, "{above}");
            }
            nothing_changes(&mut call, "dotfiles/palisade/palisade.toml");
            assert_eq!(call.open_to_read("dotfiles/palisade/palisade.toml").map(drop), REFUSED);
            assert_eq!(fs::read_to_string(call.host(link)).unwrap(), "own");
            call.write(".config/palisade/other", "x").unwrap();
        }
    }
}

#[test]
fn linked_parent_of_a_protected_file_is_not_replaced() {
    for (link, target) in [(".config/palisade", "../dotfiles/palisade"), (".config", "dotfiles")] {
        everywhere(|call| {
            linked_settings(call, link, target.into());
            assert_eq!(call.rename(link, "away"), REFUSED);
            assert_eq!(call.unlink(link), REFUSED);
            assert_eq!(call.mkdir(link), REFUSED);
            assert_eq!(call.rename("dotfiles", "away"), REFUSED);
            assert_eq!(call.rename("notes.toml", ".config/palisade/palisade.toml"), REFUSED);
            assert_eq!(
                fs::read_to_string(call.host(".config/palisade/palisade.toml")).unwrap(),
                "own"
            );
            call.write("dotfiles/palisade/other", "x").unwrap();
        });
    }
}

#[test]
fn every_link_of_a_protected_chain_is_kept() {
    everywhere(|call| {
        call.link("one", "dir/two");
        call.link("dir/two", "../three");
        call.link("three", "later/plugins");
        protect(call, &[("one", Reading::Allowed)]);
        for link in ["one", "dir/two", "three"] {
            assert_eq!(call.rename(link, "away"), REFUSED, "{link}");
            assert_eq!(call.unlink(link), REFUSED, "{link}");
        }
        assert_eq!(call.rename("dir", "away"), REFUSED);
        assert_eq!(call.mkdir("later"), REFUSED);
    });
}

#[test]
fn circular_links_of_a_protected_path_are_kept() {
    everywhere(|call| {
        call.link("round", "about");
        call.link("about", "round");
        call.link("through", "file.txt/below");
        protect(call, &[("round", Reading::Allowed), ("through", Reading::Refused)]);
        for name in ["round", "about", "through", "file.txt"] {
            assert_eq!(call.unlink(name), REFUSED, "{name}");
        }
    });
}

#[test]
fn link_to_an_outside_path_is_kept() {
    everywhere(|call| {
        symlink(call.outer.path().join("outside"), call.host("plugs")).unwrap();
        protect(call, &[("plugs", Reading::Allowed)]);
        assert_eq!(call.unlink("plugs"), REFUSED);
        assert_eq!(call.rename("dir", "plugs"), REFUSED);
    });
}

#[test]
fn linked_plugin_directory_is_not_recreated() {
    everywhere(|call| {
        put(call, "real/a.wasm", "plugin");
        call.link("plugs", "real");
        protect(call, &[("plugs", Reading::Allowed)]);
        for outcome in [call.rename("plugs", "away"), call.unlink("plugs"), call.mkdir("plugs")] {
            assert_eq!(outcome, REFUSED);
        }
        nothing_changes(call, "plugs/a.wasm");
        nothing_changes(call, "real/b.wasm");
        assert_eq!(call.read("plugs/a.wasm").unwrap(), "plugin");
    });
}

#[test]
fn hidden_path_stays_hidden_when_replaced() {
    for resolver in resolvers() {
        for access in [Access::ReadOnly, Access::ReadWrite] {
            let mut call = Call::new(resolver, access, Quotas::default());
            put(&call, "own.toml", "own");
            put(&call, "cache/key", "key");
            put(&call, "dotfiles/linked.toml", "own");
            call.link("linked.toml", "dotfiles/linked.toml");
            let hidden = ["own.toml", "cache", "linked.toml", "later/own.toml"]
                .map(|path| (path, Reading::Refused));
            protect(&mut call, &hidden);
            // Replaces files by rename, as editors do.
            for (new, name) in [("new", "own.toml"), ("newer", "linked.toml")] {
                put(&call, new, "own");
                fs::rename(call.host(new), call.host(name)).unwrap();
            }
            fs::rename(call.host("cache"), call.host("old")).unwrap();
            put(&call, "cache/key", "key");
            put(&call, "later/own.toml", "own");
            put(&call, "later/other", "free");
            call.link("innocent", "later/own.toml");
            for path in [
                "own.toml",
                "cache",
                "cache/key",
                "old/key",
                "linked.toml",
                "dotfiles/linked.toml",
                "later/own.toml",
                "innocent",
            ] {
                assert_eq!(call.open_to_read(path).map(drop), REFUSED, "{path}");
            }
            assert_eq!(call.read("later/other").unwrap(), "free");
            assert_eq!(call.read("file.txt").unwrap(), "inside");
        }
    }
}

#[test]
fn folded_spelling_of_a_protected_name_is_protected() {
    everywhere(|call| {
        protect(call, &[("palisade.toml", Reading::Allowed)]);
        for name in [
            "Palisade.TOML",
            "palisade\u{200b}.toml",
            "pali\u{17f}ade.toml",
            "\u{ad}palisade.toml\u{fe0f}",
        ] {
            assert_eq!(call.rename("file.txt", name), REFUSED, "{name}");
        }
        call.write("palisades.toml", "x").unwrap();
        call.write("palisäde.toml", "x").unwrap();
    });
}

#[test]
fn recreated_directory_is_protected() {
    everywhere(|call| {
        put(call, "plugs/a.wasm", "plugin");
        put(call, "real/a.wasm", "plugin");
        call.link("linked", "real");
        protect(call, &[("plugs", Reading::Allowed), ("linked", Reading::Allowed)]);
        for name in ["plugs", "linked"] {
            fs::rename(call.host(name), call.host(&format!("old {name}"))).unwrap();
            put(call, &format!("{name}/a.wasm"), "plugin");
            nothing_changes(call, &format!("{name}/a.wasm"));
            nothing_changes(call, &format!("old {name}/b.wasm"));
        }
        call.write("dir/file", "x").unwrap();
    });
}

#[test]
fn stat_of_a_hidden_file_is_allowed() {
    everywhere(|call| {
        put(call, "own.toml", "own");
        protect(call, &[("own.toml", Reading::Refused)]);
        let root = call.root();
        let stat = now(call.view().stat_at(root, PathFlags::empty(), "own.toml".to_owned()));
        assert_eq!(code(stat).map(|stat| stat.size), Ok(3));
        assert!(!call.fs.refused());
    });
}
