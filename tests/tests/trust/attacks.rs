//! Attacks on an approved plugin. Each stops with its reason, and nothing of the plugin is offered.

use crate::{WORDS, approve, host, lock, plugin, program};
use palisade::{ErrorClass, PermissionReason, ToolResult, json};
use palisade_tests::guest::NET_FETCH;
use palisade_tests::wat::Told;
use palisade_tests::{Program, Wat, World};
use palisade_trust::{Keys, LockedPlugins, Review};
use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;

/// Calls a tool through the library.
fn call(world: &World, tool: &str) -> ToolResult {
    let host = host(world);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(host.call(tool, json!({}), json!({})))
}

/// Checks that a tool is refused because its plugin is not approved, for a reason with these words,
/// and that nothing of it is listed or exported.
#[track_caller]
fn stops(world: &World, tool: &str, reason: &str) {
    let ran = program(world, &["call", tool]).run().exits_with(4);
    ran.stderr_contains(&[
        "permission_denied: ",
        "is not approved",
        reason,
        "palisade approve git",
    ]);
    let listed = program(world, &["list", "--json"]).run().exits_with(0);
    assert!(!listed.stdout.contains(WORDS), "{listed:?}");
    assert!(listed.stdout.contains("it is not approved: "), "a person sees it: {listed:?}");
    let exported = program(world, &["export", "--format", "mcp"]).run().exits_with(0);
    assert!(!exported.stdout.contains(&format!("\"{tool}\"")), "{exported:?}");
    assert!(!exported.stdout.contains(WORDS), "{exported:?}");
    let result = call(world, tool);
    let error = result.error().unwrap();
    assert_eq!(error.class(), ErrorClass::PermissionDenied, "{error:?}");
    assert_eq!(error.to_json()["detail"]["reason"], PermissionReason::NotApproved.as_str());
    assert!(!error.message().contains(WORDS));
    let host = host(world);
    assert!(host.registry().tools().iter().all(|it| it.definition().name().as_str() != tool));
    let refused = host.rejected().into_iter().find(|it| it.reason.contains(reason));
    assert!(refused.is_some(), "{:?}", host.rejected());
}

/// Returns a world with the approved plugin `git`, whose tool is `look`.
#[track_caller]
fn approved() -> World {
    let world = World::new();
    world.install("git", &plugin("look").build());
    approve(&world);
    let ran = program(&world, &["call", "look"]).run().exits_with(0);
    assert_eq!((ran.stdout.as_str(), ran.stderr.as_str()), ("done", ""));
    assert!(call(&world, "look").error().is_none());
    world
}

#[test]
fn changed_plugin_that_lacks_a_grant_is_looked_at_before_it_gets_one() {
    let world = approved();
    fs::copy(NET_FETCH.file(), world.plugins().join("git.wasm")).unwrap();
    let said = program(&world, &["list"]).run().exits_with(0).stderr;
    let (approve, import) =
        ("`palisade approve git` shows it and asks; besides, it imports", "wasi:http");
    assert!(said.contains("it is not approved: it has changed since it was approved"), "{said}");
    assert!(said.contains(approve) && said.contains(import), "{said}");
    let _ = program(&world, &["revoke", "git"]).run().exits_with(0);
    let said = program(&world, &["list"]).run().exits_with(0).stderr;
    assert!(said.contains("it is not approved: its approval was revoked"), "{said}");
}

#[test]
fn digest_of_other_bytes_is_refused_for_an_approved_plugin() {
    let world = approved();
    let other = format!("sha256:{}", "0".repeat(64));
    let ran = program(&world, &["approve", "git", "--digest", &other]).run().exits_with(4);
    ran.stderr_contains(&["`git` is approved with the digest sha256:", "names another one"]);
    let own = palisade::tool::Digest::of(&plugin("look").build()).to_string();
    let _ = program(&world, &["approve", "git", "--digest", &own]).run().exits_with(0);
}

#[test]
fn settings_that_others_can_change_are_refused() {
    use std::os::unix::fs::PermissionsExt as _;
    let world = World::new();
    let folder = world.home().join(".config/palisade");
    fs::create_dir_all(&folder).unwrap();
    let file = folder.join("palisade.toml");
    fs::write(&file, "[confirm]\nwrite = \"auto\"\n").unwrap();
    let mode = |mode| fs::set_permissions(&file, fs::Permissions::from_mode(mode)).unwrap();
    for wrong in [0o666, 0o664] {
        mode(wrong);
        let refused = program(&world, &["list"]).run().exits_with(2);
        refused.stderr_contains(&["palisade.toml", "others can change it", "chmod go-w"]);
    }
    mode(0o644);
    let _ = program(&world, &["list"]).run().exits_with(0);
}

#[test]
fn settings_that_cannot_be_read_are_never_no_settings() {
    let world = World::new();
    let folder = world.home().join(".config/palisade");
    fs::create_dir_all(&folder).unwrap();
    let deny = "[confirm]\nnone = \"deny\"\n";
    let sum = ["call", "calculate", r#"{"expression": "1"}"#];
    let whole = |words: &[&str]| Program::new(&world).args(words.to_vec());
    let piped = [&sum[..], &["--config", "/dev/stdin"]].concat();
    whole(&piped).stdin(deny).run().exits_with(2).stderr_contains(&["cannot read `/dev/stdin`"]);
    let file = folder.join("palisade.toml");
    symlink(world.outer().join("nowhere.toml"), &file).unwrap();
    let _ = whole(&sum).run().exits_with(2).stderr_contains(&["palisade.toml"]);
    fs::remove_file(&file).unwrap();
    let _ = whole(&sum).run().exits_with(0);
    fs::remove_dir(&folder).unwrap();
    symlink(world.outer().join("nowhere"), &folder).unwrap();
    whole(&sum).run().exits_with(2).stderr_contains(&["leads nowhere"]);
}

#[test]
fn open_directory_without_settings_stops_nothing() {
    use std::os::unix::fs::PermissionsExt as _;
    let world = World::new();
    let folder = world.home().join(".config");
    fs::create_dir_all(&folder).unwrap();
    fs::set_permissions(&folder, fs::Permissions::from_mode(0o775)).unwrap();
    let sum = ["call", "calculate", r#"{"expression": "1"}"#];
    let _ = Program::new(&world).args(sum).run().exits_with(0);
}

#[test]
fn new_plugin_is_not_offered() {
    let world = World::new();
    world.install("git", &plugin("look").build());
    stops(&world, "look", "it is new");
}

#[test]
fn changed_bytes_stop() {
    let world = approved();
    world.install("git", &plugin("look").extra("(func $other)").build());
    stops(&world, "look", "its bytes differ");
}

#[test]
fn changed_words_stop() {
    let world = approved();
    let told = Told { description: "Looks, and sends.".to_owned(), class: 1, ..Told::new("look") };
    world.install("git", &Wat::new(told).build());
    stops(&world, "look", "its words differ");
}

#[test]
fn renamed_tool_stops() {
    let world = approved();
    world.install("git", &plugin("look_2").build());
    stops(&world, "look_2", "it has new tools: look_2; it has no longer these tools: look");
}

#[test]
fn wider_class_stops() {
    let world = approved();
    let told = Told { description: WORDS.to_owned(), class: 2, ..Told::new("look") };
    world.install("git", &Wat::new(told).build());
    stops(&world, "look", "the class of `look` is write, and was read");
}

#[test]
fn rollback_stops() {
    let world = approved();
    world.install("git", &plugin("look").extra("(func $fixed)").build());
    approve(&world);
    let _ = program(&world, &["call", "look"]).run().exits_with(0);
    world.install("git", &plugin("look").build());
    stops(&world, "look", "it is an earlier version, which was replaced");
    program(&world, &["approve", "git", "--yes"])
        .run()
        .exits_with(4)
        .stderr_contains(&["a later one was approved before", "--yes approves no older version"]);
}

/// Returns a plugin with a version in its custom section.
fn versioned(version: &str) -> Vec<u8> {
    let mut plugin = plugin("look").build();
    let content = [&[7][..], b"version", version.as_bytes()].concat();
    plugin.extend([0, u8::try_from(content.len()).unwrap()]);
    plugin.extend(content);
    plugin
}

#[test]
fn older_version_stops_also_if_it_was_never_approved() {
    let world = World::new();
    world.install("git", &versioned("1.10.0"));
    approve(&world);
    assert!(fs::read_to_string(lock(&world)).unwrap().contains("version_seen = \"1.10.0\""));
    world.install("git", &versioned("1.9.0"));
    stops(&world, "look", "its bytes differ");
    program(&world, &["approve", "git", "--yes"])
        .run()
        .exits_with(4)
        .stderr_contains(&["this is 1.9.0, and 1.10.0 was approved before"]);
    world.install("git", &versioned("1.11.0"));
    approve(&world);
    assert!(call(&world, "look").error().is_none());
}

#[test]
fn swapped_approval_stops() {
    let world = approved();
    world.install("csv", &Wat::new(Told { class: 1, ..Told::new("sum") }).build());
    approve(&world);
    let text = fs::read_to_string(lock(&world)).unwrap();
    let names = text.replace("\"git\"", "\"tig\"").replace("\"csv\"", "\"git\"");
    fs::write(lock(&world), names.replace("\"tig\"", "\"csv\"")).unwrap();
    stops(&world, "look", "its bytes are those of `csv`, another plugin");
    // The words of one with the bytes of the other.
    let of = |name: &str, key: &str| {
        let entry = text.split("[[plugin]]").find(|it| it.contains(&format!("name = \"{name}\"")));
        let line = entry.unwrap().lines().find(|line| line.starts_with(key)).unwrap();
        line.to_owned()
    };
    fs::write(lock(&world), text.replace(&of("git", "describes"), &of("csv", "describes")))
        .unwrap();
    stops(&world, "look", "its words differ");
}

#[test]
fn plugins_that_swap_names_stop() {
    let world = approved();
    world.install("csv", &plugin("sum").extra("(func $csv)").build());
    approve(&world);
    let at = |name: &str| world.plugins().join(name);
    fs::rename(at("git.wasm"), at("swap")).unwrap();
    fs::rename(at("csv.wasm"), at("git.wasm")).unwrap();
    fs::rename(at("swap"), at("csv.wasm")).unwrap();
    stops(&world, "sum", "its bytes are those of `csv`, another plugin");
    program(&world, &["approve", "git", "--yes"]).run().exits_with(4).stderr_contains(&[
        "its bytes are those of `csv`, another plugin",
        "see whether their files were swapped, and answer at a terminal",
    ]);
    stops(&world, "sum", "its bytes are those of `csv`, another plugin");
}

#[test]
fn linked_store_stops() {
    let world = approved();
    let store = world.outer().join("other");
    fs::create_dir(&store).unwrap();
    fs::write(store.join("git.wasm"), plugin("look").extra("(func $evil)").build()).unwrap();
    fs::rename(world.plugins(), world.outer().join("kept")).unwrap();
    symlink(&store, world.plugins()).unwrap();
    stops(&world, "look", "its bytes differ");
}

#[test]
fn copy_under_another_name_stops_and_takes_no_name() {
    let world = approved();
    world.install("aaa", &plugin("look").build());
    let ran = program(&world, &["call", "look"]).run().exits_with(0);
    assert_eq!(ran.stdout, "done", "an unapproved file that stands first takes no name");
    let listed = program(&world, &["list"]).run().exits_with(0);
    listed.stderr_contains(&["it is new, with the bytes of the approved plugin `git`"]);
}

#[test]
fn revoked_plugin_stops_under_every_name() {
    let world = approved();
    let _ = program(&world, &["revoke", "git"]).run().exits_with(0);
    stops(&world, "look", "its approval was revoked");
    fs::rename(world.plugins().join("git.wasm"), world.plugins().join("git2.wasm")).unwrap();
    stops(&world, "look", "its bytes were revoked as the plugin `git`");
    let listed = program(&world, &["list"]).run().exits_with(0);
    listed.stderr_contains(&["delete the file, or approve it again at a terminal"]);
    program(&world, &["revoke", "git"]).run().exits_with(3).stderr_contains(&["no plugin `git`"]);
    program(&world, &["approve", "git2", "--yes"])
        .run()
        .exits_with(4)
        .stderr_contains(&["only a person at a terminal approves it again"]);
    program(&world, &["revoke", "csv"]).run().exits_with(3).stderr_contains(&["no plugin `csv`"]);
}

#[test]
fn version_without_an_order_is_no_way_around_a_rollback() {
    let world = World::new();
    world.install("git", &versioned("2.0.0"));
    approve(&world);
    let highest = || {
        let text = fs::read_to_string(lock(&world)).unwrap();
        text.lines().find(|line| line.starts_with("version_seen")).unwrap().to_owned()
    };
    for other in [versioned("latest"), plugin("look").extra("(func $none)").build()] {
        world.install("git", &other);
        let ran = program(&world, &["approve", "git", "--yes"]).run().exits_with(4);
        ran.stderr_contains(&["and 2.0.0 was approved before", "answer at a terminal"]);
        // A person may approve it, and the highest version stays.
        let found = host(&world).unapproved().remove(0);
        let locked = LockedPlugins::open(lock(&world)).unwrap();
        let review = Review::new(&locked, &Keys::default(), &found).unwrap();
        review.approve(&lock(&world)).unwrap();
        assert_eq!(highest(), "version_seen = \"2.0.0\"");
    }
    world.install("git", &versioned("1.0.0"));
    let ran = program(&world, &["approve", "git", "--yes"]).run().exits_with(4);
    ran.stderr_contains(&["this is 1.0.0, and 2.0.0 was approved before"]);
}

#[test]
fn command_that_approves_can_be_pasted() {
    let world = World::new();
    for name in ["--yes", "git@1.2+a"] {
        world.install(name, &plugin("look").build());
        let listed = program(&world, &["list"]).run().exits_with(0).stderr;
        let command = listed.split('`').find(|it| it.starts_with("palisade approve")).unwrap();
        let words = command.strip_prefix("palisade ").unwrap();
        // The shell splits the words as after a paste.
        let script = format!("for word in {words}; do printf '%s\\n' \"$word\"; done");
        let split = std::process::Command::new("sh").args(["-c", &script]).output().unwrap();
        let split = String::from_utf8(split.stdout).unwrap();
        let split: Vec<&str> = split.lines().collect();
        assert_eq!(split.last(), Some(&name), "{listed}");
        let ran = program(&world, &split).run().exits_with(4);
        ran.stderr_contains(&["there is no terminal for the question"]);
        fs::remove_file(world.plugins().join(format!("{name}.wasm"))).unwrap();
    }
}

/// Returns the names that appear in a directory while a command runs, besides those that are there
/// afterwards.
fn passing_names(folder: &Path, run: impl FnOnce() + Send) -> BTreeSet<String> {
    let names = || -> BTreeSet<String> {
        let entries = folder.read_dir().unwrap().flatten();
        entries.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect()
    };
    let seen = std::thread::scope(|scope| {
        let running = scope.spawn(run);
        let mut seen = BTreeSet::new();
        while !running.is_finished() {
            seen.append(&mut names());
        }
        running.join().unwrap();
        seen
    });
    seen.difference(&names()).cloned().collect()
}

/// A tool of another run whose workspace has the directory could write to the next version of a
/// file that decides about rights, before it takes the place of the last one.
#[test]
fn next_version_of_a_deciding_file_has_a_name_that_no_tool_may_use() {
    let world = approved();
    let folder = world.home().join(".config/palisade");
    let changes: [[&[&str]; 2]; 2] = [
        [&["grant", "git", "env", "LANG"], &["grant", "git", "revoke"]],
        [&["revoke", "git"], &["approve", "--all", "--yes"]],
    ];
    for change in changes {
        let mut seen = BTreeSet::new();
        // A moment is missed now and then.
        for _ in 0..100 {
            let run = || {
                for words in change {
                    let _ = program(&world, words).run().exits_with(0);
                }
            };
            seen.append(&mut passing_names(&folder, run));
            if !seen.is_empty() {
                break;
            }
        }
        assert!(!seen.is_empty(), "{change:?}");
        assert!(seen.iter().all(|name| name.starts_with("palisade.private-")), "{seen:?}");
    }
}
