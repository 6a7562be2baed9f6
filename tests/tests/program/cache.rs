//! `palisade cache`: shows, fills and clears the compiled plugins.

use crate::program;
use palisade_tests::World;
use serde_json::Value;

#[test]
fn shown_cache_is_counted_and_cleared() {
    let world = World::new();
    let cache = world.home().join("cache");
    let run = |words: &[&str]| {
        program(&world, words).env("PALISADE_CACHE", cache.as_os_str()).run().exits_with(0)
    };
    let show = || -> Value { run(&["cache", "show", "--json"]).json() };
    let empty = show();
    assert_eq!((&empty["plugins"], &empty["bytes"]), (&0.into(), &0.into()));
    assert!(!cache.exists(), "to look creates nothing");
    let _ = run(&["list"]);
    let full = show();
    assert_eq!(full["directory"], cache.to_str().unwrap());
    assert_eq!((&full["plugins"], &full["limit_bytes"]), (&3.into(), &(1_u64 << 30).into()));
    assert!(full["bytes"].as_u64() > Some(1 << 20), "{full}");
    let text = run(&["cache", "show"]).stdout;
    assert!(text.contains("compiled code of 3 plugins") && text.contains("1.0 GiB"), "{text}");
    let cleared = run(&["cache", "clear", "--json"]).json();
    assert_eq!(
        (&cleared["removed_plugins"], &cleared["removed_bytes"]),
        (&full["plugins"], &full["bytes"])
    );
    assert_eq!((&show()["plugins"], &show()["bytes"]), (&0.into(), &0.into()));
    assert_eq!(run(&["call", "calculate", r#"{"expression": "1"}"#]).stdout, "1");
}

#[test]
fn warm_cache_has_optimised_code_only() {
    let world = World::new();
    let cache = world.home().join("cache");
    let run = |words: &[&str]| {
        program(&world, words).env("PALISADE_CACHE", cache.as_os_str()).run().exits_with(0)
    };
    let _ = run(&["list"]);
    let warm = run(&["cache", "warm", "--json"]).json();
    assert_eq!(warm["plugins"], 3);
    let names: Vec<String> = std::fs::read_dir(&cache)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    assert!(!names.iter().any(|name| name.contains("baseline")), "{names:?}");
}

#[test]
fn absent_cache_is_no_error() {
    let world = World::new();
    for action in ["show", "clear"] {
        let ran = program(&world, &["cache", action]).env("PALISADE_CACHE", "off");
        assert!(ran.run().exits_with(0).stdout.contains("There is no cache"), "{action}");
    }
}

#[test]
fn other_directory_is_not_cleared() {
    let world = World::new();
    let folder = world.home().join("photos");
    std::fs::create_dir(&folder).unwrap();
    let private = std::os::unix::fs::PermissionsExt::from_mode(0o700);
    std::fs::set_permissions(&folder, private).unwrap();
    std::fs::write(folder.join("one.code.jpg"), "precious").unwrap();
    let ran = program(&world, &["cache", "clear"]).env("PALISADE_CACHE", folder.as_os_str());
    ran.run().exits_with(2).stderr_contains(&["which is no cache's"]);
    assert_eq!(std::fs::read_to_string(folder.join("one.code.jpg")).unwrap(), "precious");
}
