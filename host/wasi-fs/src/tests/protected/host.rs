//! The host's own files and its plugins, where they lie in the workspace.

use std::fs;
use std::sync::Arc;

use super::{REFUSED, nothing_changes};
use crate::Refusal;
use crate::protected_paths::{HardLinks, ProtectedTree, Protection, Reading};
use crate::tests::{Access, Call, Quotas, everywhere, resolvers};

/// Creates host files and plugins in the workspace.
fn host_state(call: &mut Call) {
    for dir in ["lib/plugins", "cache"] {
        fs::create_dir_all(call.host(dir)).unwrap();
    }
    for file in ["lib/plugins/a.wasm", "cache/key", "own.toml"] {
        fs::write(call.host(file), "host").unwrap();
    }
    let trees = [
        ("lib/plugins", Reading::Allowed),
        ("later/plugins", Reading::Allowed),
        ("cache", Reading::Refused),
        ("own.toml", Reading::Refused),
    ];
    let trees = trees
        .map(|(path, reading)| Arc::new(ProtectedTree::open(&call.host(path), reading).unwrap()));
    call.keep(Protection::new(HardLinks::Allow, trees.into()));
}

#[test]
fn host_files_cannot_be_changed() {
    everywhere(|call| {
        host_state(call);
        call.link("innocent", "lib/plugins");
        for path in [
            "lib/plugins",
            "lib/plugins/a.wasm",
            "lib/plugins/b.wasm",
            "lib/PLUGINS",
            "innocent/a.wasm",
            "cache/key",
            "cache",
            "own.toml",
            "Own.toml",
            "later",
        ] {
            nothing_changes(call, path);
        }
        call.write("lib/other", "x").unwrap();
        assert_eq!(call.read("lib/plugins/a.wasm").unwrap(), "host");
    });
}

#[test]
fn hidden_host_files_cannot_be_read() {
    for resolver in resolvers() {
        for access in [Access::ReadOnly, Access::ReadWrite] {
            let mut call = Call::new(resolver, access, Quotas::default());
            host_state(&mut call);
            call.link("innocent", "cache");
            call.link("own", "own.toml");
            for path in [
                "cache",
                "cache/key",
                "own.toml",
                "innocent/key",
                "innocent",
                "own",
                "lib/../cache/key",
            ] {
                assert_eq!(call.open_to_read(path).map(drop), REFUSED, "{path}");
            }
            assert_eq!(call.read("file.txt").unwrap(), "inside");
            assert_eq!(call.fs.refusal(), Some(&Refusal::Hidden("cache".into())));
        }
    }
}

#[test]
fn private_names_of_hosts_are_neither_read_nor_changed_in_any_directory() {
    let paths =
        ["palisade.private-a", "dir/palisade.private-b", "dir/palisade.private-b/c", "link"];
    let prepare = |call: &mut Call| {
        fs::write(call.host("palisade.private-a"), "host").unwrap();
        fs::create_dir(call.host("dir/palisade.private-b")).unwrap();
        fs::write(call.host("dir/palisade.private-b/c"), "host").unwrap();
        call.link("link", "dir/palisade.private-b/c");
    };
    for resolver in resolvers() {
        for access in [Access::ReadOnly, Access::ReadWrite] {
            let mut call = Call::new(resolver, access, Quotas::default());
            prepare(&mut call);
            for path in paths {
                assert_eq!(call.open_to_read(path).map(drop), REFUSED, "{path}");
            }
            assert_eq!(call.fs.refusal(), Some(&Refusal::Hidden("palisade.private-a".into())));
        }
    }
    everywhere(|call| {
        prepare(call);
        for path in [&paths[..3], &["palisade.private-new", "PALISADE.Private-x"]].concat() {
            nothing_changes(call, path);
        }
    });
}

#[test]
fn similar_name_of_a_hidden_file_cannot_be_read() {
    everywhere(|call| {
        host_state(call);
        fs::write(call.host("OWN.toml"), "x").unwrap();
        assert_eq!(call.open_to_read("OWN.toml").map(drop), REFUSED);
        fs::write(call.host("lib/own.toml"), "x").unwrap();
        assert_eq!(call.read("lib/own.toml").unwrap(), "x");
    });
}

#[test]
fn parents_of_host_files_cannot_be_moved() {
    everywhere(|call| {
        host_state(call);
        assert_eq!(call.rename("lib", "elsewhere"), REFUSED);
        fs::create_dir(call.host("empty")).unwrap();
        assert_eq!(call.rename("empty", "lib"), REFUSED);
        assert_eq!(
            call.fs.refusal().and_then(Refusal::tree).map(|tree| &**tree),
            Some("lib/plugins")
        );
        assert_eq!(call.rename("dir", "elsewhere"), Ok(()));
    });
}

#[test]
fn hard_link_to_a_host_file_is_protected() {
    everywhere(|call| {
        host_state(call);
        fs::hard_link(call.host("own.toml"), call.host("second")).unwrap();
        nothing_changes(call, "second");
        assert_eq!(call.open_to_read("second").map(drop), REFUSED);
    });
}
