//! Path rules: a denied path is in no listing, and the answer to its name does not depend on its
//! existence.

mod moved;

use std::fs;
use std::sync::Arc;

use wasmtime_wasi::p2::bindings::filesystem::types::NewTimestamp;

use super::{
    Call, ErrorCode, FOLLOW, HostDescriptor, OpenFlags, PathFlags, READ, WRITE, code, everywhere,
    now,
};
use crate::protected_paths::{HardLinks, Protection};
use crate::{PathRules, Refusal};

const REFUSED: Result<(), ErrorCode> = Err(ErrorCode::NotPermitted);

fn rules(allow: Option<&[&str]>, deny: &[&str]) -> PathRules {
    let owned = |list: &[&str]| list.iter().map(ToString::to_string).collect::<Vec<_>>();
    PathRules::new(allow.map(owned).as_deref(), &owned(deny)).unwrap()
}

/// Starts a call under path rules.
fn under(call: &mut Call, hard_links: HardLinks, paths: PathRules) {
    call.keep(Protection::new(hard_links, Vec::new()).with_paths(paths));
}

/// Creates a denied directory, a denied name at two depths, and links to them; denies them.
fn secrets(call: &mut Call) {
    for dir in ["secrets/sub", "src/sub"] {
        fs::create_dir_all(call.host(dir)).unwrap();
    }
    for file in ["secrets/key", "secrets/sub/key", ".env", "src/.env.local", "src/main.rs"] {
        fs::write(call.host(file), "content").unwrap();
    }
    call.link("to_key", "secrets/key");
    call.link("to_secrets", "secrets");
    call.link("src/to_env", "../.env");
    call.link("to_nothing", "secrets/missing");
    under(call, HardLinks::Allow, rules(None, &["secrets/**", "**/.env*"]));
}

/// Tries every operation with a path.
fn operations(call: &mut Call, path: &str) -> Vec<(&'static str, Result<(), ErrorCode>)> {
    let set = |call: &mut Call| {
        let root = call.root();
        let times = (NewTimestamp::Now, NewTimestamp::Now);
        code(now(call.view().set_times_at(root, FOLLOW, path.to_owned(), times.0, times.1)))
    };
    let hash = |call: &mut Call| {
        let root = call.root();
        code(now(call.view().metadata_hash_at(root, FOLLOW, path.to_owned()))).map(drop)
    };
    let exclusive = OpenFlags::CREATE | OpenFlags::EXCLUSIVE;
    vec![
        ("read", call.open_to_read(path).map(drop)),
        (
            "read unfollowed",
            call.open(path, PathFlags::empty(), OpenFlags::empty(), READ).map(drop),
        ),
        ("list", call.open(path, FOLLOW, OpenFlags::DIRECTORY, READ).map(drop)),
        ("stat", call.stat(path, FOLLOW).map(drop)),
        ("hash", hash(call)),
        ("create", call.open(path, FOLLOW, exclusive, WRITE).map(drop)),
        ("write", call.open(path, FOLLOW, OpenFlags::CREATE, WRITE).map(drop)),
        ("truncate", call.open(path, FOLLOW, OpenFlags::TRUNCATE, WRITE).map(drop)),
        ("set times", set(call)),
    ]
}

/// Tries every operation with the entry at a path, without following a link there.
fn operations_on_entry(call: &mut Call, path: &str) -> Vec<(&'static str, Result<(), ErrorCode>)> {
    vec![
        ("stat", call.stat(path, PathFlags::empty()).map(drop)),
        ("read link", call.read_link(path).map(drop)),
        ("mkdir", call.mkdir(path)),
        ("rmdir", call.rmdir(path)),
        ("unlink", call.unlink(path)),
        ("rename from", call.rename(path, "moved")),
        ("rename onto", call.rename("file.txt", path)),
        ("rename a directory onto", call.rename("dir", path)),
        ("link from", call.hard_link(path, "linked")),
        ("link to", call.hard_link("file.txt", path)),
    ]
}

fn listed(call: &mut Call, path: &str) -> Vec<String> {
    let dir = call.open(path, FOLLOW, OpenFlags::DIRECTORY, READ).unwrap();
    let stream = code(now(call.view().read_directory(dir))).unwrap().rep();
    names(call, stream)
}

fn names(call: &mut Call, stream: u32) -> Vec<String> {
    use wasmtime::component::Resource;
    use wasmtime_wasi::p2::bindings::filesystem::types::HostDirectoryEntryStream as _;
    let mut found = Vec::new();
    while let Some(entry) =
        code(now(call.view().read_directory_entry(Resource::new_borrow(stream)))).unwrap()
    {
        found.push(entry.name);
    }
    found.sort();
    found
}

#[test]
fn every_operation_on_a_denied_path_is_refused_whether_it_exists_or_not() {
    everywhere(|call| {
        secrets(call);
        for path in [
            "secrets",
            "secrets/key",
            "secrets/missing",
            "secrets/missing/deeper",
            "secrets/key/below_a_file",
            "secrets/sub/key",
            ".env",
            ".env.missing",
            "src/.env.local",
            "dir/../secrets/key",
            "secrets/../file.txt",
            "./secrets/./key",
            "SECRETS/key",
            "src/.ENV.local",
            "secret\u{17f}/key",
            "SECRET~1/key",
        ] {
            for (operation, outcome) in operations(call, path) {
                assert_eq!(outcome, REFUSED, "{operation} {path}");
            }
            if path != "secrets/../file.txt" {
                for (operation, outcome) in operations_on_entry(call, path) {
                    assert_eq!(outcome, REFUSED, "{operation} {path}");
                }
            }
        }
        assert_eq!(fs::read_to_string(call.host("secrets/key")).unwrap(), "content");
        assert_eq!(fs::read_dir(call.host("secrets")).unwrap().count(), 2);
        assert_eq!(call.fs.modified(), [""; 0]);
        assert!(matches!(call.fs.refusal(), Some(Refusal::Excluded(_))));
    });
}

#[test]
fn a_link_to_a_denied_path_is_refused_whether_its_target_exists_or_not() {
    everywhere(|call| {
        secrets(call);
        for path in [
            "to_key",
            "to_secrets/key",
            "to_secrets/missing",
            "to_secrets/missing/deeper",
            "src/to_env",
            "to_nothing",
        ] {
            for (operation, outcome) in operations(call, path) {
                let entry_exists = operation == "create" && !path.contains("secrets/");
                if !entry_exists && operation != "read unfollowed" {
                    assert_eq!(outcome, REFUSED, "{operation} {path}");
                }
            }
        }
        // The links themselves lie at permitted paths.
        assert_eq!(call.read_link("to_key").as_deref(), Ok("secrets/key"));
        assert_eq!(call.unlink("to_key"), Ok(()));
    });
}

#[test]
fn permitted_paths_are_read_and_changed_as_without_rules() {
    everywhere(|call| {
        secrets(call);
        assert_eq!(call.read("src/main.rs").as_deref(), Ok("content"));
        assert_eq!(call.write("src/new.rs", "x"), Ok(()));
        assert_eq!(call.mkdir("src/deep"), Ok(()));
        assert_eq!(call.rename("src/new.rs", "src/deep/old.rs"), Ok(()));
        assert_eq!(call.rename("dir", "moved"), Ok(()));
        assert_eq!(call.hard_link("src/main.rs", "main.rs"), Ok(()));
        assert_eq!(call.unlink("main.rs"), Ok(()));
        assert_eq!(call.rmdir("src/sub"), Ok(()));
        assert!(!call.fs.refused());
        let mut modified = call.fs.modified();
        modified.sort();
        let expected = ["dir", "moved", "src/deep", "src/deep/old.rs", "src/sub"];
        assert_eq!(modified, expected);
    });
}

#[test]
fn denied_entries_are_left_out_of_listings() {
    everywhere(|call| {
        secrets(call);
        let expected = ["dir", "file.txt", "src", "to_key", "to_nothing", "to_secrets"];
        assert_eq!(listed(call, "."), expected);
        assert_eq!(listed(call, "src"), ["main.rs", "sub", "to_env"]);
        assert!(!call.fs.refused());
    });
}

#[test]
fn only_allowed_paths_and_the_directories_on_the_way_exist() {
    everywhere(|call| {
        secrets(call);
        fs::create_dir_all(call.host("docs/en")).unwrap();
        for file in ["docs/en/a.md", "docs/en/b.txt", "docs/c.md"] {
            fs::write(call.host(file), "text").unwrap();
        }
        call.link("docs/link", "en");
        under(call, HardLinks::Allow, rules(Some(&["src/**", "docs/*/*.md"]), &["**/.env*"]));
        assert_eq!(listed(call, "."), ["docs", "src"]);
        assert_eq!(listed(call, "docs"), ["en"]);
        assert_eq!(listed(call, "docs/en"), ["a.md"]);
        assert_eq!(call.read("docs/en/a.md").as_deref(), Ok("text"));
        // A link is followed to a permitted place, and is itself at none.
        assert_eq!(call.read("docs/link/a.md").as_deref(), Ok("text"));
        assert!(call.stat("docs", FOLLOW).is_ok() && call.stat(".", FOLLOW).is_ok());
        for path in [
            "docs/c.md",
            "docs/missing.md",
            "docs/en/b.txt",
            "docs/en/missing.txt",
            "dir/deep.txt",
            "dir/missing",
            "src/.env.local",
        ] {
            for (operation, outcome) in operations(call, path) {
                assert_eq!(outcome, REFUSED, "{operation} {path}");
            }
        }
        assert_eq!(call.stat("docs/link", PathFlags::empty()).map(drop), REFUSED);
        assert_eq!(call.read_link("docs/link").map(drop), REFUSED);
        assert_eq!(call.mkdir("docs/fr"), Ok(()));
        assert_eq!(call.write("docs/fr/a.md", "texte"), Ok(()));
        assert_eq!(call.rename("docs/fr/a.md", "docs/fr/a.txt"), REFUSED);
        assert_eq!(call.rename("docs/en", "src/en"), REFUSED, "it holds a denied file");
        assert_eq!(call.rename("docs/fr", "src/fr"), Ok(()));
    });
}

#[test]
fn a_directory_with_a_denied_entry_is_not_moved() {
    everywhere(|call| {
        secrets(call);
        for (old, new) in [("src", "open"), ("src", "dir/src")] {
            assert_eq!(call.rename(old, new), REFUSED, "{old} {new}");
        }
        fs::create_dir_all(call.host("part/x")).unwrap();
        fs::write(call.host("part/x/key"), "content").unwrap();
        under(call, HardLinks::Allow, rules(None, &["part/*/key", "other/x/**"]));
        assert_eq!(call.rename("part", "elsewhere"), REFUSED, "its entry would come to light");
        assert_eq!(call.rename("part/x", "free"), REFUSED);
        fs::remove_file(call.host("part/x/key")).unwrap();
        fs::write(call.host("part/x/note"), "content").unwrap();
        assert_eq!(call.rename("part", "other"), REFUSED, "its entry would be hidden");
        assert_eq!(call.rename("part", "elsewhere"), Ok(()));
        assert_eq!(call.read("elsewhere/x/note").as_deref(), Ok("content"));
    });
}

#[test]
fn a_file_with_another_name_is_not_read_unless_hard_links_are_allowed() {
    everywhere(|call| {
        secrets(call);
        fs::hard_link(call.host("secrets/key"), call.host("alias")).unwrap();
        assert_eq!(call.read("alias").as_deref(), Ok("content"));
        let denied = || rules(None, &["secrets/**"]);
        under(call, HardLinks::Refuse, denied());
        assert_eq!(call.read("alias").map(drop), REFUSED);
        assert_eq!(call.fs.refusal(), Some(&Refusal::Aliased));
        let open = call.open("alias", FOLLOW, OpenFlags::empty(), READ | WRITE);
        assert_eq!(open.map(drop), REFUSED);
        assert_eq!(call.read("file.txt").as_deref(), Ok("inside"));
        assert_eq!(call.read("secrets/key").map(drop), REFUSED);
        call.keep(Protection::new(HardLinks::Refuse, Vec::new()));
        assert_eq!(call.read("alias").as_deref(), Ok("content"), "without path rules");
    });
}

#[test]
fn rules_of_a_plugin_narrow_those_of_the_host() {
    everywhere(|call| {
        secrets(call);
        call.rules = Arc::new(call.rules.narrowed(&rules(Some(&["src/**", "secrets/**"]), &[])));
        call.again();
        assert_eq!(call.read("src/main.rs").as_deref(), Ok("content"));
        assert_eq!(call.read("file.txt").map(drop), REFUSED);
        assert_eq!(call.read("secrets/key").map(drop), REFUSED);
        assert_eq!(listed(call, "."), ["src"]);
    });
}

#[test]
fn metadata_of_a_directory_counts_no_denied_entry() {
    everywhere(|call| {
        let counted = |call: &mut Call| {
            let stat = call.stat(".", FOLLOW).unwrap();
            (stat.link_count, stat.size)
        };
        fs::create_dir(call.host("extra")).unwrap();
        assert!(counted(call).0 >= 1);
        secrets(call);
        assert_eq!(counted(call), (1, 0));
        let open = call.stat("src", FOLLOW).unwrap();
        assert_eq!((open.link_count, open.size), (1, 0));
        assert_eq!(call.stat("src/main.rs", FOLLOW).unwrap().size, 7, "a file has its size");
    });
}
