//! Cached machine code is run unchecked, so no tool may read the key of a cache or write to one,
//! even if the cache lies in the workspace and another one is in use.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use palisade_tests::mcp::Client;
use palisade_tests::mounted::Mounted;
use palisade_tests::program::Ran;
use palisade_tests::{Program, World};
use serde_json::{Value, json};

/// A home directory that is also used as a workspace.
struct Home {
    home: World,
    elsewhere: World,
}

impl Home {
    /// Creates a home directory in which a run in another workspace has made a cache.
    fn with_cache(cache: &str, named: &str) -> Self {
        let made = Self { home: World::new(), elsewhere: World::new() };
        let named = if named.is_empty() {
            String::new()
        } else {
            made.home.root().join(named).display().to_string()
        };
        let _ = made.call(&made.elsewhere, &named, "list_dir", &json!({})).exits_with(0);
        assert!(made.home.root().join(cache).join("key").exists(), "the cache is there");
        made
    }

    fn call(&self, workspace: &World, cache: &str, tool: &str, input: &Value) -> Ran {
        let words = ["call", tool, "--allow", "write", &input.to_string()];
        Program::new(workspace)
            .env("HOME", self.home.root())
            .env("PALISADE_CACHE", cache)
            .args(words)
            .run()
    }

    /// Checks that every tool is refused access to `cache` while `used` serves the plugins' own
    /// code.
    fn is_out_of_reach(&self, cache: &str, used: &str) {
        let at = |name: &str| format!("{cache}/{name}");
        let key = fs::read(self.home.root().join(at("key"))).unwrap();
        for (tool, input) in [
            ("read_file", json!({"path": at("key")})),
            ("list_dir", json!({"path": cache})),
            ("write_file", json!({"path": at("forged.code"), "content": "x"})),
            ("write_file", json!({"path": at("key"), "content": "x".repeat(32)})),
            ("delete_file", json!({"path": at("key")})),
        ] {
            let ran = self.call(&self.home, used, tool, &input);
            assert_eq!(ran.code, 4, "{tool} {input}: {ran:?}");
        }
        assert_eq!(fs::read(self.home.root().join(at("key"))).unwrap(), key);
        assert!(!self.home.root().join(at("forged.code")).exists());
        let _ = self
            .call(&self.home, used, "write_file", &json!({"path": "free", "content": "x"}))
            .exits_with(0);
    }
}

fn shared() -> String {
    palisade_tests::guest::cache().display().to_string()
}

#[test]
fn default_cache_is_hidden_even_if_another_is_used() {
    let home = Home::with_cache(".cache/palisade/compiled", "");
    home.is_out_of_reach(".cache/palisade/compiled", &shared());
    for used in ["", "off"] {
        let ran = home.call(
            &home.home,
            used,
            "read_file",
            &json!({"path": ".cache/palisade/compiled/key"}),
        );
        assert_eq!(ran.code, 4, "{used:?}: {ran:?}");
    }
}

#[test]
fn previously_named_cache_stays_hidden() {
    let home = Home::with_cache("mine/cache", "mine/cache");
    home.is_out_of_reach("mine/cache", &shared());
    // The record is protected as well: without it the host would forget that the cache exists.
    let records = ".local/state/palisade/paths";
    assert_eq!(
        fs::read_dir(home.home.root().join(records)).unwrap().count(),
        2,
        "and the key of the cache in use"
    );
    assert_eq!(home.call(&home.home, &shared(), "list_dir", &json!({"path": records})).code, 4);
    let moved = home.call(
        &home.home,
        &shared(),
        "write_file",
        &json!({"path": format!("{records}/x"), "content": "/"}),
    );
    assert_eq!(moved.code, 4, "{moved:?}");
}

#[test]
fn cache_is_hidden_through_a_bind_mount() {
    let home = Home::with_cache(".cache/palisade/compiled", "");
    let cache = home.home.root().join(".cache/palisade");
    fs::write(cache.join("free"), "x").unwrap();
    let mounted =
        Mounted::at(home.elsewhere.root().join("bm"), &["--bind", cache.to_str().unwrap()]);
    if mounted.is_none() {
        return;
    }
    let key = fs::read(cache.join("compiled/key")).unwrap();
    for used in ["", "off"] {
        for (tool, input) in [
            ("read_file", json!({"path": "bm/compiled/key"})),
            ("list_dir", json!({"path": "bm/compiled"})),
            ("write_file", json!({"path": "bm/compiled/forged.code", "content": "x"})),
            ("delete_file", json!({"path": "bm/compiled/key"})),
        ] {
            let ran = home.call(&home.elsewhere, used, tool, &input);
            assert_eq!(ran.code, 4, "{used:?} {tool} {input}: {ran:?}");
        }
    }
    assert_eq!(fs::read(cache.join("compiled/key")).unwrap(), key);
    assert!(!cache.join("compiled/forged.code").exists());
    let read =
        home.call(&home.elsewhere, "", "read_file", &json!({"path": "bm/free"})).exits_with(0);
    assert_eq!(read.stdout.trim_end(), "x");
    // `shell`, which no rule of guests binds, could read its key.
    read.stderr_contains(&["lies inside the workspace"]);
}

#[test]
fn missing_default_cache_cannot_be_planted() {
    let home = Home { home: World::new(), elsewhere: World::new() };
    let planted = Path::new(".cache/palisade/compiled/key");
    let input = json!({"path": planted, "content": "x".repeat(32)});
    let ran = home.call(&home.home, &shared(), "write_file", &input);
    assert_eq!(ran.code, 4, "{ran:?}");
    assert!(!home.home.root().join(planted).exists());
}

#[test]
fn removed_known_cache_cannot_be_planted() {
    let home = Home::with_cache("mine", "mine");
    let place = home.home.root().join("mine");
    for entry in fs::read_dir(&place).unwrap() {
        fs::remove_file(entry.unwrap().path()).unwrap();
    }
    let key = json!({"path": "mine/key", "content": "x".repeat(32)});
    let ran = home.call(&home.home, &shared(), "write_file", &key);
    assert_eq!((ran.code, fs::read_dir(&place).unwrap().count()), (4, 0), "{ran:?}");
    fs::remove_dir(&place).unwrap();
    let ran = home.call(&home.home, &shared(), "write_file", &key);
    assert_eq!((ran.code, place.exists()), (4, false), "{ran:?}");
}

#[test]
fn key_written_by_another_program_is_not_used() {
    let home = Home::with_cache("mine", "mine");
    let key = home.home.root().join("mine/key");
    let used = home.home.root().join("mine").display().to_string();
    let run = || {
        let _ = home.call(&home.elsewhere, &used, "list_dir", &json!({})).exits_with(0);
        fs::read(&key).unwrap()
    };
    let own = run();
    assert_eq!(run(), own, "a private key stays");
    for open in [0o644, 0o620, 0o602, 0o604] {
        fs::write(&key, "x".repeat(32)).unwrap();
        fs::set_permissions(&key, Permissions::from_mode(open)).unwrap();
        assert_ne!(run(), "x".repeat(32).as_bytes(), "{open:o}");
        assert_eq!(fs::metadata(&key).unwrap().permissions().mode() & 0o7777, 0o600);
    }
}

#[test]
fn later_cache_of_another_run_is_hidden_from_a_server() {
    let home = Home { home: World::new(), elsewhere: World::new() };
    let root = home.home.root();
    let served = Program::new(&home.home).env("HOME", &root);
    let mut server = Client::start_with(served, &["--allow", "write"]);
    let mut call = |tool: &str, input: Value| {
        let answer = server.request_modern(
            "tools/call",
            json!({"name": tool, "arguments": input}),
            &json!({}),
        );
        answer["result"]["_meta"]["dev.palisade/error"]["class"].as_str().map(str::to_owned)
    };
    assert_eq!(call("write_file", json!({"path": "free", "content": "x"})), None);
    for cache in ["one", "deep/two"] {
        let _ = home
            .call(&home.elsewhere, root.join(cache).to_str().unwrap(), "list_dir", &json!({}))
            .exits_with(0);
        let at = |name: &str| format!("{cache}/{name}");
        for (tool, input) in [
            ("read_file", json!({"path": at("key")})),
            ("write_file", json!({"path": at("key"), "content": "x".repeat(32)})),
            ("list_dir", json!({"path": cache})),
            ("write_file", json!({"path": at("forged.code"), "content": "x"})),
        ] {
            assert_eq!(call(tool, input).as_deref(), Some("permission_denied"), "{tool} {cache}");
        }
        assert!(!root.join(at("forged.code")).exists());
    }
    assert_eq!(call("write_file", json!({"path": "free", "content": "y"})), None);
    let _ = server.end();
}

#[test]
fn cache_is_hidden_under_every_state_directory() {
    let home = Home { home: World::new(), elsewhere: World::new() };
    let root = home.home.root();
    let run = |workspace: &World, state: Option<&str>, cache: &str, tool: &str, input: Value| {
        let words = ["call", tool, "--allow", "write", &input.to_string()].map(str::to_owned);
        let program =
            Program::new(workspace).env("HOME", &root).env("PALISADE_CACHE", cache).args(words);
        match state {
            Some(state) => program.env("XDG_STATE_HOME", root.join(state)).run(),
            None => program.run(),
        }
    };
    let states = [Some("state"), None];
    for (made, cache) in states.into_iter().zip(["named", "usual"]) {
        let place = root.join(cache).display().to_string();
        let _ = run(&home.elsewhere, made, &place, "list_dir", json!({})).exits_with(0);
        for used in states {
            let ran = run(
                &home.home,
                used,
                &shared(),
                "read_file",
                json!({"path": format!("{cache}/key")}),
            );
            assert_eq!(ran.code, 4, "{made:?} {used:?} {ran:?}");
        }
    }
}

#[test]
fn linked_cache_stays_hidden_after_the_link_changes() {
    let home = Home { home: World::new(), elsewhere: World::new() };
    let root = home.home.root();
    fs::create_dir_all(root.join("other")).unwrap();
    std::os::unix::fs::symlink("real", root.join("link")).unwrap();
    fs::create_dir(root.join("real")).unwrap();
    fs::set_permissions(root.join("real"), Permissions::from_mode(0o700)).unwrap();
    let _ = home
        .call(&home.elsewhere, root.join("link").to_str().unwrap(), "list_dir", &json!({}))
        .exits_with(0);
    fs::remove_file(root.join("link")).unwrap();
    std::os::unix::fs::symlink("other", root.join("link")).unwrap();
    home.is_out_of_reach("real", &shared());
}

#[test]
fn recorded_caches_use_no_descriptors() {
    let home = Home { home: World::new(), elsewhere: World::new() };
    let records = home.home.root().join(".local/state/palisade/paths");
    fs::create_dir_all(&records).unwrap();
    for number in 0..500 {
        let cache = home.home.root().join(format!("caches/{number}"));
        fs::create_dir_all(&cache).unwrap();
        fs::write(records.join(number.to_string()), cache.to_str().unwrap()).unwrap();
    }
    let mut shell = std::process::Command::new("sh");
    shell
        .args(["-c", "ulimit -n 1024 && exec \"$@\"", "sh"])
        .arg(palisade_tests::program::executable());
    shell.args(["call", "list_dir", "{}"]).current_dir(home.elsewhere.root());
    shell.env("HOME", home.home.root()).env("PALISADE_CACHE", shared());
    let ran = shell.output().unwrap();
    assert_eq!(ran.status.code(), Some(0), "{ran:?}");
}

#[test]
fn project_directory_does_not_become_a_cache() {
    let home = Home { home: World::new(), elsewhere: World::new() };
    let project = home.home.root().join("project");
    fs::create_dir(&project).unwrap();
    fs::set_permissions(&project, Permissions::from_mode(0o700)).unwrap();
    fs::write(project.join("main.rs"), "fn main() {}").unwrap();
    let ran =
        home.call(&home.elsewhere, project.to_str().unwrap(), "list_dir", &json!({})).exits_with(2);
    ran.stderr_contains(&["it holds `main.rs`"]);
    let _ = home
        .call(&home.home, &shared(), "read_file", &json!({"path": "project/main.rs"}))
        .exits_with(0);
}

#[test]
fn default_cache_is_hidden_in_the_root_workspace() {
    let home = Home::with_cache(".cache/palisade/compiled", "");
    home.home.file("free", "x");
    let read = |name: &str| {
        let path = home.home.root().canonicalize().unwrap().join(name);
        let input = json!({"path": path.strip_prefix("/").unwrap()}).to_string();
        let mut program = std::process::Command::new(palisade_tests::program::executable());
        program
            .args(["--workspace", "/", "call", "read_file", &input])
            .current_dir(home.elsewhere.root());
        program.env("HOME", home.home.root()).env_remove("PALISADE_CACHE").output().unwrap()
    };
    let refused = read(".cache/palisade/compiled/key");
    assert_eq!((refused.status.code(), refused.stdout.len()), (Some(4), 0), "{refused:?}");
    let free = read("free");
    assert_eq!((free.status.code(), free.stdout.as_slice()), (Some(0), &b"x"[..]), "{free:?}");
}

#[test]
fn cache_below_a_shared_directory_is_refused() {
    let home = Home { home: World::new(), elsewhere: World::new() };
    let open = home.home.root().join("open");
    fs::create_dir(&open).unwrap();
    fs::set_permissions(&open, Permissions::from_mode(0o777)).unwrap();
    let run =
        || home.call(&home.elsewhere, open.join("cache").to_str().unwrap(), "list_dir", &json!({}));
    let remedy = format!("`chmod go-w {}`", open.display());
    run().exits_with(2).stderr_contains(&["other users can write to", &remedy, "PALISADE_CACHE"]);
    assert_eq!(fs::read_dir(&open).unwrap().count(), 0, "nothing is made there");
    fs::set_permissions(&open, Permissions::from_mode(0o755)).unwrap();
    let _ = run().exits_with(0);
    assert!(open.join("cache/key").exists());
}
