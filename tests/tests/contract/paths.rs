//! Path arguments are checked before the call and reach the tool as relative paths.

use palisade_tests::guest::CONTRACT_PATHS;
use palisade_tests::{Case, Observed, World};
use serde_json::{Value, json};

fn with_file(world: &World) {
    world.file("dir/file.txt", "in");
}

fn arrived(input: Value) -> Observed {
    Case::new(CONTRACT_PATHS, "arrived").input(input).arrange(with_file).check()
}

#[test]
fn path_argument_arrives_relative_and_normalised() {
    for (given, expected) in [
        ("dir/file.txt", "dir/file.txt"),
        ("./dir//file.txt", "dir/file.txt"),
        ("dir/../dir/file.txt", "dir/file.txt"),
        (".", "."),
        ("not-there-yet.txt", "not-there-yet.txt"),
    ] {
        assert_eq!(arrived(json!({"path": given})).output(), format!("{expected} [] "), "{given}");
    }
}

#[test]
fn absolute_inside_path_arrives_relative() {
    let seen = Case::new(CONTRACT_PATHS, "arrived")
        .arrange(with_file)
        .input_at(|world| json!({"path": world.root().join("dir/file.txt")}))
        .check();
    assert_eq!(seen.output(), "dir/file.txt [] ");
}

#[test]
fn absolute_path_by_the_name_of_the_opened_link_arrives_relative() {
    let world = World::new();
    with_file(&world);
    world.link("../link", "@/workspace");
    let link = world.outer().join("link");
    let host = palisade::Host::builder()
        .workspace(&link)
        .cache(palisade::CacheMode::Directory(palisade_tests::guest::cache()))
        .plugins(CONTRACT_PATHS.directory())
        .build()
        .unwrap();
    for root in [&link, &world.root()] {
        let input = json!({"path": root.join("dir/file.txt")});
        let result = palisade_tests::case::block_on(host.call("arrived", input, json!({})));
        assert_eq!(result.output().as_deref(), Some("dir/file.txt [] "), "{root:?}: {result}");
        let input = json!({"path": root.join("../secret.txt")});
        let result = palisade_tests::case::block_on(host.call("arrived", input, json!({})));
        assert_eq!(palisade_tests::stage::class(&result), "permission_denied", "{root:?}");
    }
}

#[test]
fn outside_path_argument_is_denied_before_the_run() {
    for given in ["..", "../secret.txt", "/etc/passwd", "dir/../../secret.txt"] {
        let seen = arrived(json!({"path": given}));
        assert_eq!(seen.error("permission_denied")["detail"]["reason"], "workspace", "{given}");
        assert!(seen.message("permission_denied").contains("escapes the workspace boundary"));
        assert!(!seen.events.iter().any(|event| event.name() == "tool.called"), "{given}");
    }
}

#[test]
fn paths_in_a_list_are_checked_separately() {
    let seen = arrived(json!({"path": ".", "more": ["./a", "b/../c"]}));
    assert_eq!(seen.output(), ". [a c] ");
    let out = arrived(json!({"path": ".", "more": ["a", "../b"]}));
    assert_eq!(out.error("permission_denied")["detail"]["reason"], "workspace");
}

#[test]
fn unmarked_text_is_not_treated_as_a_path() {
    assert_eq!(arrived(json!({"path": ".", "text": "../../etc"})).output(), ". [] ../../etc");
}

#[test]
fn invalid_path_is_refused_by_name() {
    for given in [String::new(), "a\0b".to_owned(), "x".repeat(5000)] {
        let seen = arrived(json!({"path": given}));
        assert_eq!(seen.error("validation_error")["errors"][0]["pointer"], "/path", "{given:?}");
    }
}

#[test]
fn workspace_is_the_root_of_relative_paths() {
    let case = Case::new(CONTRACT_PATHS, "both_ways").arrange(with_file);
    assert_eq!(case.input(json!({"path": "dir/file.txt"})).check().output(), "in|in|/");
}
