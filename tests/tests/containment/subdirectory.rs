//! A plugin that sees one directory of the workspace reaches nothing else.

use std::fs;
use std::ops::ControlFlow;
use std::path::Path;

use palisade::sandbox::PluginSettings;
use palisade::workspace::PathRules;
use palisade::{Call, CallMode, Host, HostBuilder, SideEffects, ToolResult};
use palisade_tests::case::block_on;
use palisade_tests::guest::{CONTAINMENT_FILES, CONTRACT_PATHS};
use palisade_tests::wat::Told;
use palisade_tests::{Case, Wat, World};
use rustix::fs::{RenameFlags, renameat_with};
use serde_json::{Value, json};

/// The content of files of the workspace outside of the directory.
const ELSEWHERE: &str = "content elsewhere in the workspace";

fn furnished() -> World {
    let world = World::new();
    world
        .file("notes/open/file.txt", "inside")
        .file("notes/private.txt", ELSEWHERE)
        .file("other/file.txt", ELSEWHERE)
        .link("notes/open/up", "..")
        .link("notes/open/other", "../../other")
        .link("notes/open/out", "@/outside")
        .link("notes/open/near", "file.txt");
    world
}

fn within(path: &str) -> PluginSettings {
    PluginSettings::default().with_workspace(path).unwrap()
}

fn builder(world: &World, path: &str) -> HostBuilder {
    let case = Case::new(CONTAINMENT_FILES, "in_write").allow(SideEffects::Write);
    case.builder(world).plugin_settings("containment_files", within(path))
}

fn call(host: &Host, tool: &str, input: Value) -> ToolResult {
    block_on(host.dispatch(host.session(), Call::new(tool, input)))
}

fn read(host: &Host, path: &str) -> ToolResult {
    call(host, "in_read", json!({"op": "read", "path": path}))
}

#[test]
fn guest_sees_the_directory_and_nothing_else() {
    for mode in [CallMode::InPlace, CallMode::OWN_THREADS] {
        let world = furnished();
        let host = builder(&world, "notes/open").call_mode(mode).build().unwrap();
        for path in ["file.txt", "./file.txt", "/file.txt", "near"] {
            assert_eq!(read(&host, path).output().as_deref(), Some("inside"), "{path}");
        }
        let listed = call(&host, "in_read", json!({"op": "list", "path": "/"}));
        assert_eq!(listed.output().as_deref(), Some("file.txt near other out up"));
        let whole = world.root().join("other/file.txt").display().to_string();
        for path in [
            "../private.txt",
            "/../private.txt",
            "notes/open/file.txt",
            "up/private.txt",
            "other/file.txt",
            "out/secret.txt",
            "../../other/file.txt",
            &whole,
        ] {
            let result = read(&host, path);
            assert!(!result.is_success(), "{path}: {result}");
            assert!(!result.to_json().to_string().contains(ELSEWHERE), "{path}: {result}");
            let written = call(&host, "in_write", json!({"op": "write", "path": path}));
            assert!(!written.is_success(), "{path}: {written}");
        }
        assert_eq!(world.read("notes/private.txt").as_deref(), Some(ELSEWHERE));
        assert_eq!(world.read("other/file.txt").as_deref(), Some(ELSEWHERE));
    }
}

#[test]
fn changes_are_reported_relative_to_the_whole_workspace() {
    let world = furnished();
    let host = builder(&world, "notes/open").build().unwrap();
    let written = call(&host, "in_write", json!({"op": "write", "path": "new.txt"}));
    assert!(written.is_success(), "{written}");
    assert_eq!(written.files_modified(), [Path::new("notes/open/new.txt")]);
    assert_eq!(world.read("notes/open/new.txt").as_deref(), Some("changed"));
    let to = json!({"op": "rename", "path": "new.txt", "to": "../new.txt"});
    assert!(!call(&host, "in_write", to).is_success());
    assert!(!world.root().join("notes/new.txt").exists());
}

#[test]
fn missing_directory_file_and_link_end_the_call() {
    let world = furnished();
    world.link("linked", "other").link("away", "@/outside");
    for (path, mode) in [
        ("missing", CallMode::InPlace),
        ("missing/deep", CallMode::OWN_THREADS),
        ("linked", CallMode::InPlace),
        ("away", CallMode::OWN_THREADS),
        ("away/folder", CallMode::InPlace),
        ("other/file.txt", CallMode::InPlace),
        (".git", CallMode::InPlace),
    ] {
        if path == ".git" {
            world.file(".git/config", "[core]");
        }
        let host = builder(&world, path).call_mode(mode).build().unwrap();
        let json = read(&host, "file.txt").to_json();
        assert_eq!(json["error"]["class"], "permission_denied", "{path}: {json}");
        assert_eq!(json["error"]["detail"]["reason"], "workspace", "{path}: {json}");
        assert!(json["error"]["message"].as_str().unwrap().contains(path), "{json}");
    }
    let host = builder(&world, "later").build().unwrap();
    assert!(!read(&host, "file.txt").is_success());
    world.file("later/file.txt", "now");
    assert_eq!(read(&host, "file.txt").output().as_deref(), Some("now"), "it is tried again");
}

#[test]
fn directory_that_becomes_a_link_leads_nowhere() {
    let world = furnished();
    world.file("there/file.txt", "inside");
    let host = builder(&world, "there").build().unwrap();
    assert!(read(&host, "file.txt").is_success());
    let root = world.root();
    fs::rename(root.join("there"), root.join("moved")).unwrap();
    world.link("there", "other");
    assert!(!read(&host, "file.txt").is_success());
    fs::remove_file(root.join("there")).unwrap();
    fs::rename(root.join("moved"), root.join("there")).unwrap();
    assert_eq!(read(&host, "file.txt").output().as_deref(), Some("inside"), "it is tried again");
}

#[test]
fn directory_that_is_moved_leads_nowhere() {
    let rules = PathRules::new(None, &["secret/**".to_owned()]).unwrap();
    for (away, rules) in [
        ("../outside/moved", PathRules::default()),
        ("other/moved", PathRules::default()),
        (".git/moved", PathRules::default()),
        ("secret/moved", rules),
    ] {
        let world = furnished();
        world.file(".git/config", "[core]").file("secret/a", "").file("there/file.txt", "inside");
        let host = builder(&world, "there").path_rules(&rules).build().unwrap();
        assert!(read(&host, "file.txt").is_success());
        let moved = world.root().join(away);
        fs::rename(world.root().join("there"), &moved).unwrap();
        fs::write(moved.join("file.txt"), ELSEWHERE).unwrap();
        for made in [false, true] {
            if made {
                world.file("there/other.txt", "");
            }
            assert!(!read(&host, "file.txt").is_success(), "{away}");
            let written = call(&host, "in_write", json!({"op": "write", "path": "file.txt"}));
            assert_eq!(written.is_success(), made, "{away}: {written}");
            assert_eq!(fs::read_to_string(moved.join("file.txt")).unwrap(), ELSEWHERE, "{away}");
            if made {
                assert_eq!(written.files_modified(), [Path::new("there/file.txt")]);
                assert_eq!(world.read("there/file.txt").as_deref(), Some("changed"));
            }
        }
    }
}

#[test]
fn no_race_of_links_opens_another_directory() {
    /// Each attempt builds a host, since an open directory stays.
    const ATTEMPTS: usize = 100;
    let world = World::new();
    world.file("turning/sub/file.txt", "inside").file("other/sub/file.txt", ELSEWHERE);
    world.link("linked", "other");
    let root = fs::File::open(world.root()).unwrap();
    let mut opened = 0;
    super::races::race(
        ATTEMPTS,
        // A directory and a link to another one take turns under the name.
        |_| renameat_with(&root, "turning", &root, "linked", RenameFlags::EXCHANGE).unwrap(),
        || {
            let host = builder(&world, "turning/sub").build().unwrap();
            let result = read(&host, "file.txt");
            assert!(!result.to_json().to_string().contains(ELSEWHERE), "{result}");
            opened += usize::from(result.is_success());
            ControlFlow::Continue(())
        },
    );
    assert!(opened > 0, "sometimes the name was that of the directory");
}

#[test]
fn path_rules_stay_relative_to_the_whole_workspace() {
    let world = furnished();
    world.file("notes/open/keys/a", ELSEWHERE);
    let deny = ["notes/open/keys/**".to_owned(), "file.txt".to_owned()];
    let rules = PathRules::new(None, &deny).unwrap();
    let of_plugin = within("notes/open").with_path_rules(&rules);
    for host in [
        builder(&world, "notes/open").path_rules(&rules),
        builder(&world, "notes/open").plugin_settings("containment_files", of_plugin),
    ] {
        let host = host.build().unwrap();
        assert_eq!(read(&host, "file.txt").output().as_deref(), Some("inside"));
        let denied = read(&host, "keys/a").to_json();
        assert_eq!(denied["error"]["detail"]["reason"], "path_rules", "{denied}");
        let listed = call(&host, "in_read", json!({"op": "list", "path": "."}));
        assert!(!listed.to_string().contains("keys"), "{listed}");
    }
}

#[test]
fn path_rules_of_a_plugin_bind_this_plugin_only() {
    let world = furnished();
    let rules = PathRules::new(None, &["other/**".to_owned()]).unwrap();
    let own = PluginSettings::default().with_path_rules(&rules);
    let case = Case::new(CONTAINMENT_FILES, "in_read");
    let host =
        case.builder(&world).plugin_settings("containment_files", own.clone()).build().unwrap();
    let denied = read(&host, "other/file.txt").to_json();
    assert_eq!(denied["error"]["detail"]["reason"], "path_rules", "{denied}");
    assert_eq!(read(&host, "notes/private.txt").output().as_deref(), Some(ELSEWHERE));
    let host = case.builder(&world).plugin_settings("another", own).build().unwrap();
    assert_eq!(read(&host, "other/file.txt").output().as_deref(), Some(ELSEWHERE));
}

#[test]
fn path_argument_lies_in_the_directory() {
    let world = furnished();
    let case = Case::new(CONTRACT_PATHS, "arrived");
    let host = case.builder(&world).plugin_settings("contract_paths", within("notes/open"));
    let host = host.build().unwrap();
    let arrived = |path: &Path| call(&host, "arrived", json!({"path": path})).to_json();
    let at = |path: &str| world.root().join(path);
    for (path, seen) in
        [("file.txt".into(), "file.txt"), ("a/../b".into(), "b"), (at("notes/open/c"), "c")]
    {
        let result = arrived(&path);
        assert_eq!(result["output"], format!("{seen} [] "), "{result}");
    }
    for path in ["..".into(), "up/private.txt".into(), at("other/file.txt"), at("notes")] {
        let error = arrived(&path)["error"].clone();
        assert_eq!(error["detail"]["reason"], "workspace", "{path:?}: {error}");
    }
    let both = call(&host, "both_ways", json!({"path": "file.txt"}));
    assert_eq!(both.output().as_deref(), Some("inside|inside|/"));
}

#[test]
fn question_and_explanation_show_the_path_in_the_whole_workspace() {
    let world = furnished();
    let path = r#"{"type": "object", "properties": {"path": {"type": "string", "format": "workspace-path"}}}"#;
    let told = Told { class: 2, ..Told::new("put") }.with_input(path);
    world.install("p", &Wat::new(told).build());
    let case = Case::new(CONTAINMENT_FILES, "put");
    let host = case.builder(&world).plugins(world.plugins());
    let host = host.plugin_settings("p", within("notes/open")).build().unwrap();
    let explain = |path: &str| {
        host.explain(host.session(), Call::new("put", json!({"path": path}))).unwrap().changes
    };
    assert_eq!(explain("new.txt").unwrap(), ["notes/open/new.txt"]);
    assert_eq!(explain(".").unwrap(), ["notes/open"]);
    assert!(explain("../x").is_err());
    let description = host.registry().get("put").unwrap().definition().description().to_owned();
    assert!(description.contains("`notes/open`"), "{description}");
}
